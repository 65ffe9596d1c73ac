"""The page of a report in a real browser; without one these are skipped, and with CI in the environment they fail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from kafka_dt.pipeline.report.contents import Listing, Series
from kafka_dt.pipeline.report.page import html
from tests.integration.pipeline.browser import Browser, BrowserMissing, Page, find_browser
from tests.interop.conftest import unavailable
from tests.support.processes.waiting import eventually
from tests.support.spark.report_contents import AT, contents, empty

WIDTHS = (1400, 900, 390)
DRAWN = "document.documentElement.dataset.drawn || null"
PLOTS = "document.querySelectorAll('.plot .main-svg').length > 0 && document.querySelectorAll('.plot').length"
COUNTS = "#plot-never-used .xtick text, #plot-alive-owner .ytick text"
TICKS = f"[...document.querySelectorAll('{COUNTS}')].map((each) => each.textContent)"
AREA = "document.querySelector('#plot-alive-owner .scatterlayer .js-line').getAttribute('d')"
TEXT_COLOUR = "getComputedStyle(document.querySelector('.plot .xtick text')).fill"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    try:
        program = find_browser()
    except BrowserMissing as missing:
        unavailable(missing)
    with Browser(program, tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(html(contents()), encoding="utf-8")
    return path


def opened(browser: Browser, path: Path, *, width: int = 1400, dark: bool = False) -> Page:
    page = browser.open(path, width=width, dark=dark)
    eventually(lambda: page.value(DRAWN) is not None or bool(page.complaints), within_s=30)
    return page


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_draws_all_its_plots_and_fits_any_width(browser: Browser, path: Path, width: int) -> None:
    page = opened(browser, path, width=width)
    assert page.complaints == []
    assert page.value(DRAWN) == str(page.value(PLOTS))
    assert page.value("document.documentElement.scrollWidth") <= width


def test_what_is_counted_has_ticks_at_whole_numbers_only(browser: Browser, tmp_path: Path) -> None:
    few = Listing(3, (), (("User:alice", 2), ("User:bob", 1)))
    series = Series((AT - timedelta(days=2), AT), {"User:alice": (1, 2)})
    path = tmp_path / "few.html"
    path.write_text(html(replace(contents(), never_used=few, alive={"owner": series})), encoding="utf-8")
    assert opened(browser, path).value(TICKS) == ["0", "1", "2", "0", "1", "2"]


def test_living_tokens_are_drawn_as_steps_and_times_without_events_are_covered(browser: Browser, path: Path) -> None:
    page = opened(browser, path)
    corners = [command[0] for command in re.findall("[MLHVC][^MLHVC]*", page.value(AREA))]
    assert set(corners) == {"M", "H", "V"}
    assert page.value("document.querySelectorAll('#plot-alive-owner .shapelayer path').length") == 1
    assert "the table has no events" in page.value("document.body.innerText")


def test_it_asks_for_nothing_but_itself(browser: Browser, path: Path) -> None:
    page = opened(browser, path)
    assert [each for each in page.requests if not each.startswith("data:")] == [path.as_uri()]


def test_names_from_events_run_nothing(browser: Browser, path: Path) -> None:
    page = opened(browser, path)
    assert page.value("document.title").startswith("Delegation tokens")
    assert page.value("document.querySelectorAll('img, iframe, object').length") == 0
    assert page.complaints == []


def test_its_policy_lets_no_other_script_run(browser: Browser, path: Path) -> None:
    page = opened(browser, path)
    page.value("document.body.append(Object.assign(document.createElement('script'), {text: 'document.title = 1'}))")
    assert page.value("document.title").startswith("Delegation tokens")
    assert any("Content Security Policy" in each for each in page.complaints)


def test_plots_follow_when_the_reader_turns_to_dark(browser: Browser, path: Path) -> None:
    page = opened(browser, path)
    light = page.value(TEXT_COLOUR)
    page.turn(dark=True)
    eventually(lambda: page.value(TEXT_COLOUR) != light, within_s=10)
    assert page.complaints == []


def test_a_report_of_nothing_opens_as_well(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "empty.html"
    path.write_text(html(empty()), encoding="utf-8")
    page = opened(browser, path, dark=True)
    assert page.complaints == []
    assert page.value(DRAWN) == "0"
