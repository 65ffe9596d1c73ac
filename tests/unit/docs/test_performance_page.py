from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.page import PAGES, filled
from benchmarks.results import REFERENCE, Results
from benchmarks.scenarios import SCENARIOS


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_page_shows_the_committed_results(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert filled(page, Results.load(REFERENCE)) == page, "make bench ARGS=--render writes it"


def test_the_pages_have_one_place_for_every_scenario() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [name for name in ("targets", *SCENARIOS) if pages.count(f"<!-- begin {name} -->") != 1] == []
