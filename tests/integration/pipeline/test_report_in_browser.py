"""The page of a report in a real browser; without one these are skipped, and with CI in the environment they fail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from kafka_dt.pipeline.cases import form_cases
from kafka_dt.pipeline.report.contents import Listing, Series
from kafka_dt.pipeline.report.page import html
from kafka_dt.pipeline.report.signs import SIGNS, Severity
from tests.integration.pipeline.browser import Browser, BrowserMissing, Page, find_browser
from tests.interop.conftest import unavailable
from tests.support.findings import sighting
from tests.support.processes.waiting import eventually
from tests.support.spark.report_contents import AT, contents, empty

WIDE = 1400
PHONE = 390
NARROWER = (900, PHONE)
DRAWN = "document.documentElement.dataset.drawn || null"
PLOTS = "document.querySelectorAll('.plot .main-svg').length > 0 && document.querySelectorAll('.plot').length"
COUNTS = "#plot-never-used .xtick text, #plot-alive-owner .ytick text"
TICKS = f"[...document.querySelectorAll('{COUNTS}')].map((each) => each.textContent)"
AREA = "document.querySelector('#plot-alive-owner .scatterlayer .js-line').getAttribute('d')"
TEXT_COLOUR = "getComputedStyle(document.querySelector('.plot .xtick text')).fill"

SHOWN = "[...document.querySelectorAll('.case')].filter((each) => each.checkVisibility()).map((each) => each.id)"
ENTER = """\
(() => {{
  const field = document.getElementById("filter-{}");
  field.value = "{}";
  field.dispatchEvent(new Event("input"));
}})()"""

FOCUSED = "document.activeElement.closest('details')?.id"
CASES = form_cases(
    sighting(
        f"token-{number:016}",
        f"User:team-{number % 120}",
        f"10.{number % 120}.0.{number % 250}",
        kind=SIGNS[number % 3].kind,
        severity=Severity.HIGH if number % 24 == 0 else Severity.MEDIUM,
        day=number % 28,
    )
    for number in range(240)
)
"""What a report on 340,000 events of a company finds: 240 findings about 120 owners."""


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


def opened(browser: Browser, path: Path, *, width: int = WIDE, dark: bool = False) -> Page:
    page = browser.open(path, width=width, dark=dark)
    eventually(lambda: page.value(DRAWN) is not None or bool(page.complaints), within_s=30)
    return page


@pytest.fixture(scope="module")
def page(browser: Browser, path: Path) -> Page:
    """The page on a wide screen, for tests that only look at it: drawing it takes some seconds of a core."""
    return opened(browser, path)


@pytest.fixture(scope="module")
def company_page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Page:
    path = tmp_path_factory.mktemp("company") / "report.html"
    path.write_text(html(replace(contents(), events=340_000, cases=CASES)), encoding="utf-8")
    return opened(browser, path, width=PHONE)


@pytest.fixture
def company(company_page: Page) -> Page:
    """The page of a month of a company on a phone; nothing is filtered or open."""
    for name in ("text", "kind", "severity"):
        company_page.value(ENTER.format(name, ""))
    company_page.value("for (const each of document.querySelectorAll('details')) each.open = false")
    return company_page


def test_the_page_draws_all_its_plots_without_a_complaint(page: Page) -> None:
    assert page.complaints == []
    assert page.value(DRAWN) == str(page.value(PLOTS))
    assert page.value("document.documentElement.scrollWidth") <= WIDE


@pytest.mark.parametrize("width", NARROWER)
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


def test_living_tokens_are_drawn_as_steps_and_times_without_events_are_covered(page: Page) -> None:
    corners = [command[0] for command in re.findall("[MLHVC][^MLHVC]*", page.value(AREA))]
    assert set(corners) == {"M", "H", "V"}
    assert page.value("document.querySelectorAll('#plot-alive-owner .shapelayer path').length") == 1
    assert "the table has no events" in page.value("document.body.innerText")


def test_it_asks_for_nothing_but_itself(page: Page, path: Path) -> None:
    assert [each for each in page.requests if not each.startswith("data:")] == [path.as_uri()]


def test_names_from_events_run_nothing(page: Page) -> None:
    assert page.value("document.title").startswith("Delegation tokens")
    assert page.value("document.querySelectorAll('img, iframe, object').length") == 0
    assert page.complaints == []


def test_its_policy_lets_no_other_script_run(browser: Browser, path: Path) -> None:
    page = opened(browser, path)
    page.value("document.body.append(Object.assign(document.createElement('script'), {text: 'document.title = 1'}))")
    assert page.value("document.title").startswith("Delegation tokens")
    assert any("Content Security Policy" in each for each in page.complaints)


@pytest.mark.soak
def test_the_page_of_a_company_takes_a_browser_less_than_two_seconds(company: Page) -> None:
    """CPU time of the page's thread with all plots, so that a busy machine does not change it."""
    metrics = company.command("Performance.getMetrics")["metrics"]
    assert 0 < next(each["value"] for each in metrics if each["name"] == "TaskDuration") < 2
    assert company.complaints == []


def test_a_reader_filters_cases_by_owner_sign_and_severity(company: Page) -> None:
    company.value(ENTER.format("text", "TEAM-77 10.77"))
    assert company.value(SHOWN) == [case.id for case in CASES if case.owners == ("User:team-77",)]
    company.value(ENTER.format("text", ""))
    company.value(ENTER.format("severity", "high"))
    assert company.value(SHOWN) == [case.id for case in CASES if case.severity == "high"]
    company.value(ENTER.format("kind", SIGNS[0].kind))
    left = [case.id for case in CASES if case.severity == "high" and SIGNS[0].kind in case.kinds]
    assert company.value(SHOWN) == left
    assert 0 < len(left) < len(CASES)
    assert company.value("document.getElementById('filter-count').textContent") == f"{len(left)} of {len(CASES)} cases"


def test_a_link_opens_its_case_though_it_was_filtered_out(company: Page) -> None:
    last = CASES[-1].id
    company.value(ENTER.format("text", "no such owner"))
    assert company.value(SHOWN) == []
    company.value(f"location.hash = '{last}'")
    eventually(lambda: company.value(FOCUSED) == last, within_s=10)
    assert company.value(f"document.getElementById('{last}').open")


def test_cases_are_read_with_the_keyboard_alone(company: Page) -> None:
    company.value("document.getElementById('filter-severity').focus()")
    for _ in range(2):
        company.press("Tab")
    assert company.value(FOCUSED) == CASES[1].id
    company.press("Enter")
    assert company.value(f"document.getElementById('{CASES[1].id}').open")


def test_open_cases_fit_a_phone(company: Page) -> None:
    company.value("for (const each of document.querySelectorAll('details')) each.open = true")
    assert company.value("document.documentElement.scrollWidth") <= PHONE


def test_all_that_is_shown_is_open_on_paper(company: Page) -> None:
    closed = "document.querySelectorAll('.finding:not([open])').length"
    before = company.value(closed)
    company.value("dispatchEvent(new Event('beforeprint'))")
    assert company.value(closed) == 0
    company.value("dispatchEvent(new Event('afterprint'))")
    assert company.value(closed) == before > 0


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
