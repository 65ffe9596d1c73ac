from __future__ import annotations

from benchmarks.page import PAGE, filled
from benchmarks.results import REFERENCE, Results
from benchmarks.scenarios import SCENARIOS


def test_the_page_shows_the_committed_results() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page, Results.load(REFERENCE)) == page, "make bench ARGS=--render writes it"


def test_the_page_has_a_place_for_every_scenario() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in ("targets", *SCENARIOS) if f"<!-- begin {name} -->" not in page] == []
