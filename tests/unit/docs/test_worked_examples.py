"""The worked examples of CONTRIBUTING.md touch few files, apply to the tree as it is, and pass lint and their tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.docs.worked_examples import Example, copy_of_tree

API = "A new API, and a new version of it"
MECHANISM = "A new SASL mechanism"
SIGN = "A new sign of theft"
ALSO = {
    API: ("tests/unit/protocol/api/test_registry.py",),
    MECHANISM: (),
    SIGN: ("tests/unit/pipeline/report/signs/test_table_of_signs.py",),
}
"""The tests of what an example extends, which must hold with it as without it."""


def run(tree: Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": f"{tree}:{tree / 'protocol'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(params=[API, MECHANISM, SIGN])
def heading(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def example(heading: str) -> Example:
    return Example.of(heading)


@pytest.fixture
def tree(example: Example, tmp_path: Path) -> Path:
    """A copy of the tree with the example in it."""
    copy = copy_of_tree(tmp_path)
    example.apply(copy)
    return copy


def test_an_example_touches_few_files(heading: str, example: Example) -> None:
    assert 1 < len(example.files) <= {API: 5, MECHANISM: 4, SIGN: 3}[heading]


def test_an_example_has_a_test_of_its_own(example: Example) -> None:
    assert any(edit.is_new and edit.path.startswith("tests/") for edit in example.edits)


def test_the_tests_of_an_example_pass(heading: str, example: Example, tree: Path) -> None:
    tests = [path for path in example.files if path.startswith("tests/unit/")]
    run(tree, "pytest", "-q", "-p", "no:cacheprovider", *tests, *ALSO[heading])


def test_an_example_passes_lint(example: Example, tree: Path) -> None:
    pytest.importorskip("ruff")
    run(tree, "ruff", "format", "--check", "--no-cache", *example.files)
    run(tree, "ruff", "check", "--no-cache", *example.files)
