"""The changelog: a merge that keeps the lines of both sides may repeat a heading or an entry."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Final

KINDS: Final = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
"""The headings of Keep a Changelog, in its order."""
CHANGELOG: Final = (Path(__file__).parents[3] / "CHANGELOG.md").read_text("utf-8")
VERSIONS: Final = CHANGELOG.split("\n## ")[1:]


def test_each_version_has_each_heading_once_and_in_order() -> None:
    assert VERSIONS
    for version in VERSIONS:
        found = [KINDS.index(line[4:]) for line in version.splitlines() if line.startswith("### ")]
        assert all(first < second for first, second in pairwise(found)), version.splitlines()[0]


def test_no_entry_is_there_twice() -> None:
    entries = [line for line in CHANGELOG.splitlines() if line.startswith("- ")]
    assert sorted(entries) == sorted(set(entries))
