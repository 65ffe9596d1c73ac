from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from html import escape
from html.parser import HTMLParser

import pytest

from kafka_dt.pipeline.cases import form_cases
from kafka_dt.pipeline.report.contents import as_json
from kafka_dt.pipeline.report.page import html
from kafka_dt.pipeline.report.page.charts import COLOURS, label
from kafka_dt.pipeline.report.suppressions import Suppressed, Suppression
from tests.support.findings import sighting
from tests.support.spark.report_contents import AT, HOSTILE, contents, empty

BESIDES_TEXT = {"script", "style"}


class Page(HTMLParser):
    """What a browser would make of a page, as far as a test asks."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = [tag] if tag in BESIDES_TEXT else []

    def handle_endtag(self, tag: str) -> None:
        if tag in BESIDES_TEXT:
            self._open = []

    def handle_data(self, data: str) -> None:
        if not self._open:
            self.words.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(html(contents()))


def test_names_are_text_wherever_they_stand(page: Page) -> None:
    assert len(page.of("script")) == 3
    assert not page.of("img")
    assert HOSTILE in "".join(page.words)


def test_what_does_not_print_is_shown_as_an_escape(page: Page) -> None:
    text = "".join(page.words)
    assert "etl\\u202egnp.exe\\x1b[2J" in text
    assert text.replace("\n", "").isprintable()


def test_nothing_is_loaded_from_anywhere(page: Page) -> None:
    sources = [
        value
        for _, attributes in page.elements
        for name, value in attributes.items()
        if name in {"src", "href", "srcset", "data", "action"} and value
    ]
    assert all(source.startswith(("#", "data:")) for source in sources)


def test_only_the_scripts_of_the_page_may_run(page: Page) -> None:
    (policy,) = (each["content"] for each in page.of("meta") if each.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert "script-src 'unsafe-inline'" not in policy


def test_plots_and_headings_have_names_for_who_does_not_see_them(page: Page) -> None:
    plots = [each for each in page.of("div") if each.get("role") == "img"]
    assert plots
    assert all(each.get("aria-label") for each in plots)
    ids = {attributes.get("id") for _, attributes in page.elements}
    assert all(each["aria-labelledby"] in ids for each in page.of("section"))
    assert all(each["href"] and each["href"].removeprefix("#") in ids for each in page.of("a"))


def test_every_plot_has_its_place(page: Page) -> None:
    text = html(contents())
    (figures,) = re.findall(r'<script type="application/json" id="figures">(.*?)</script>', text)
    places = {each.get("id") for each in page.of("div")}
    assert {f"plot-{name}" for name in json.loads(figures)} <= places


def test_each_case_has_a_place_to_link_to_and_its_findings_in_it(page: Page) -> None:
    shown = [each["id"] for each in page.of("details") if "case" in (each.get("class") or "").split()]
    assert shown == [case.id for case in contents().cases]
    (case,) = contents().cases
    text = "".join(page.words)
    assert all(sighting.title in text for sighting in case.sightings)
    assert case.ending.command in text


def test_cases_that_the_page_leaves_out_are_counted() -> None:
    many = form_cases(sighting(f"t{number}", f"User:u{number}", f"10.0.0.{number}") for number in range(302))
    text = " ".join("".join(Page(html(replace(contents(), cases=many))).words).split())
    assert f"302 cases of {contents().finding_total} signs of theft" in text
    assert "Here are the first 300 cases of 302; the JSON has all." in text


def test_what_is_suppressed_is_shown_with_who_accepts_it_and_until_when() -> None:
    whole = contents()
    first, *rest = whole.findings
    accepted = Suppression(HOSTILE, "change 4711", AT + timedelta(days=1), tokens=("t",))
    over = Suppression("Bob", "a test", AT - timedelta(days=1), owners=("User:load",))
    made = replace(
        whole, findings=tuple(rest), suppressions=(accepted, over), suppressed=(Suppressed(first, accepted),)
    )
    text = " ".join("".join(Page(html(made)).words).split())
    assert "1 finding is left out of the cases above" in text
    assert f"{HOSTILE}change 4711 2026-03-07 00:00 token t" in text
    assert f"2026-03-03 00:00 {whole.signs[0].title}: {first.subject}" in text
    assert "Boba test 2026-03-05 00:00 has run out owner User:load none" in text
    entries = json.loads(as_json(made))["suppressions"]
    assert [(entry["who"], entry["has_run_out"], len(entry["findings"])) for entry in entries] == [
        (HOSTILE, False, 1),
        ("Bob", True, 0),
    ]
    assert first.kind == entries[0]["findings"][0]["kind"]


def test_a_list_that_is_cut_says_so(page: Page) -> None:
    assert "the first 25 of 1,200, the Parquet output has all" in "".join(page.words)


def test_a_blast_radius_counts_what_is_still_good_for_something(page: Page) -> None:
    made = contents().blast
    assert made is not None
    assert made.exposed == {"token": 4}
    text = " ".join("".join(page.words).split())
    assert f"4 exposed by {HOSTILE[:39]}…" in text
    assert f"token {'e' * 22} ended" in text


def test_a_blast_radius_of_nothing_says_why() -> None:
    whole = contents()
    assert whole.blast is not None
    nothing = replace(whole.blast, counts=(), reached=(), logins=(), login_total=0)
    text = "".join(Page(html(replace(whole, blast=nothing))).words)
    assert "whatever was tried there was refused" in text


def test_a_report_of_nothing_has_a_page() -> None:
    text = "".join(Page(html(empty())).words)
    assert "None was found." in text
    assert "from 1 event since" in text
    assert "Tokens alive by owner" not in text
    assert "Blast radius" not in text


def test_a_name_in_a_plot_is_short_and_no_markup() -> None:
    assert label("<b>bold</b>") == "&lt;b&gt;bold&lt;/b&gt;"
    assert label("x" * 100) == "x" * 39 + "…"
    assert label("a\u202eb") == "a\\u202eb"
    assert len(set(COLOURS)) == len(COLOURS)


def test_the_document_has_what_the_page_has_and_the_commands() -> None:
    document = json.loads(as_json(contents()))
    assert document["version"] == 1
    assert document["expiring"]["total"] == 1200
    assert document["alive"]["owner"]["values"]["User:alice"] == [5] * 30
    assert document["lines"]["expiring_within"] == 7200
    assert document["findings"][0]["responses"]
    (case,) = document["cases"]
    assert {entry["finding"] for entry in case["timeline"]} == {finding["id"] for finding in document["findings"]}
    assert document["blast"]["reached"][1]["path"][0]["relation"] == "owns"
    assert {"kind": "stolen_token", "severity": "high", "count": 1} in document["finding_counts"]


def test_the_first_screen_has_the_worst_three_cases_with_what_ends_each() -> None:
    told = contents()
    worst = html(told).partition('class="worst"')[2].partition("</section>")[0]
    assert worst.count("<li>") == min(3, len(told.cases))
    for case in told.cases[:3]:
        assert f'href="#{case.id}"' in worst
        assert escape(case.ending.command or case.ending.why, quote=False).split(" -- ")[0] in worst
