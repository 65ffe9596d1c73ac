"""What is released, and which trees are refused, in small repositories of git."""

from __future__ import annotations

from pathlib import Path

import pytest

from release.tools import NotReleased, run
from release.tree import export, read_notes, read_release, read_version
from tests.support.docs.documents import ROOT

CHANGELOG = """# Changelog

## [1.1.0] - 2026-02-03

### Added

- This.

## [1.0.0] - 2026-01-02

- That.
"""
OURS = '[project]\nversion = "1.1.0"\ndependencies = ["kafka-dt-protocol==1.1.0"]\n'
CHART = "apiVersion: v2\nversion: 1.1.0\nappVersion: 1.1.0\n"
PROTOCOL = '[project]\nversion = "1.1.0"\n'
FILES = {
    "CHANGELOG.md": CHANGELOG,
    "ops/helm/kafka-dt/Chart.yaml": CHART,
    "protocol/pyproject.toml": PROTOCOL,
    "pyproject.toml": OURS,
}


def git(root: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "init.defaultBranch=main"]
    return run(["git", *identity, *arguments], root)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree that can be released."""
    root = tmp_path / "tree"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "init", "--quiet")
    commit(root)
    return root


def commit(root: Path) -> None:
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message=x", "--date=2026-02-03T04:05:06Z")


def test_a_release_is_a_commit_its_version_and_its_section_of_the_changelog(tree: Path) -> None:
    release = read_release(tree)
    assert (release.version, release.notes) == ("1.1.0", "### Added\n\n- This.\n")
    assert f"{release.commit} {release.time_s}" == git(tree, "log", "-1", "--format=%H %ct")


@pytest.mark.parametrize("name", ["CHANGELOG.md", "new"])
def test_a_tree_that_differs_from_its_commit_is_refused(tree: Path, name: str) -> None:
    with (tree / name).open("a") as file:
        file.write("more\n")
    with pytest.raises(NotReleased, match=rf"not committed.*\n.*{name}"):
        read_release(tree)


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("protocol/pyproject.toml", "1.1.0", "1.0.0", "has version 1.1.0, protocol/pyproject.toml 1.0.0"),
        ("pyproject.toml", "protocol==1.1.0", "protocol>=1.1.0", "must have kafka-dt-protocol==1.1.0"),
        (
            "ops/helm/kafka-dt/Chart.yaml",
            "appVersion: 1.1.0",
            "appVersion: 1.0.0",
            "has 1.1.0 and 1.0.0: .* must be 1.1.0",
        ),
        ("CHANGELOG.md", "[1.1.0]", "[Unreleased]", r"begins with ## \[Unreleased\] - 2026-02-03; rename it"),
        ("CHANGELOG.md", "[1.1.0]", "[1.2.0]", r"begins with ## \[1.2.0\]"),
        ("CHANGELOG.md", "## [1", "## 1", "begins with no section"),
        ("CHANGELOG.md", " - 2026-02-03", "", "needs its date"),
    ],
)
def test_versions_that_disagree_are_refused(tree: Path, name: str, old: str, new: str, said: str) -> None:
    path = tree / name
    path.write_text(path.read_text().replace(old, new))
    commit(tree)
    with pytest.raises(NotReleased, match=said):
        read_release(tree)


def test_a_folder_without_git_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotReleased, match=r"git status .*ended with status 128"):
        read_release(tmp_path)


def test_packages_are_made_of_the_commits_files_alone(tree: Path, tmp_path: Path) -> None:
    (tree / "later").write_text("not committed")
    export(tree, "HEAD", tmp_path / "source")
    found = {str(path.relative_to(tmp_path / "source")) for path in (tmp_path / "source").rglob("*") if path.is_file()}
    assert found == FILES.keys()


def test_the_versions_of_this_tree_agree() -> None:
    assert read_notes((ROOT / "CHANGELOG.md").read_text(), read_version(ROOT))
