"""What is released: a commit, its version and its notes; a tree that is not ready is refused.

The version stands in both `pyproject.toml`, in the requirement of one on the other, in the chart and in the changelog.

Source: https://keepachangelog.com/en/1.1.0/.
"""

from __future__ import annotations

import re
import tarfile
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from release.tools import NotReleased, run

if TYPE_CHECKING:
    from pathlib import Path

CHART: Final = "ops/helm/kafka-dt/Chart.yaml"
_CHART_VERSION: Final = re.compile(r"^(?:v|appV)ersion: (\S+)$", re.MULTILINE)
_HEADING: Final = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<date>\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Release:
    """What is released."""

    version: str
    commit: str
    """The commit's id, 40 hexadecimal digits."""
    time_s: int
    """When the commit was made, in seconds since the epoch."""
    notes: str
    """The section of the changelog, without its heading; Markdown."""


def read_release(root: Path) -> Release:
    """Read what the commit at `root` releases.

    Raises:
        NotReleased: files differ from the commit, the versions disagree, or the changelog is not ready.
    """
    if changed := run(["git", "status", "--porcelain"], root):
        raise NotReleased(f"the tree has changes that are not committed; commit or remove them:\n{changed}")
    version = read_version(root)
    notes = read_notes((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    commit, time_s = run(["git", "log", "-1", "--format=%H %ct"], root).split()
    return Release(version, commit, int(time_s), notes)


def read_version(root: Path) -> str:
    """Read the version of both distributions and of the chart.

    Raises:
        NotReleased: they have different ones, or kafka-dt needs another version of the protocol.
    """
    ours, protocol = (
        tomllib.loads((root / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for folder in (".", "protocol")
    )
    version: str = ours["version"]
    if protocol["version"] != version:
        raise NotReleased(f"pyproject.toml has version {version}, protocol/pyproject.toml {protocol['version']}")
    if (needed := f"kafka-dt-protocol=={version}") not in ours["dependencies"]:
        raise NotReleased(f"pyproject.toml: the dependencies must have {needed}")
    chart = _CHART_VERSION.findall((root / CHART).read_text(encoding="utf-8"))
    if set(chart) != {version}:
        raise NotReleased(f"{CHART} has {' and '.join(chart)}: version and appVersion must be {version}")
    return version


def read_notes(changelog: str, version: str) -> str:
    """Cut the section of a version out of the changelog.

    Raises:
        NotReleased: it is not the first section, or has no date.
    """
    headings = list(_HEADING.finditer(changelog))
    if not headings or headings[0]["version"] != version:
        found = headings[0][0] if headings else "no section"
        raise NotReleased(f"CHANGELOG.md begins with {found}; rename it to ## [{version}] - and the date")
    if headings[0]["date"] is None:
        raise NotReleased(f"CHANGELOG.md: ## [{version}] needs its date, as in ## [{version}] - 2026-01-31")
    end = headings[1].start() if len(headings) > 1 else len(changelog)
    return changelog[headings[0].end() : end].strip() + "\n"


def export(root: Path, commit: str, folder: Path) -> None:
    """Write the files of a commit into a new folder, so that no other file of the tree gets into a package.

    Raises:
        NotReleased: git cannot give them.
    """
    archive = folder.with_suffix(".tar")
    run(["git", "archive", "--output", archive, commit], root)
    unpack(archive, folder)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar archive that git or a builder of packages has made."""
    with tarfile.open(archive) as files:
        # Python 3.11.3 and older have no filters of what is unpacked (PEP 706).
        files.extraction_filter = getattr(tarfile, "data_filter", None)
        files.extractall(folder)  # noqa: S202 - our own archives, and filtered where Python can
