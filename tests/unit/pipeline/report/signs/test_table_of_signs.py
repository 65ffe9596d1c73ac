"""A sign of theft is one value: page, plot, JSON, commands and the demo's verdicts follow from their table."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace

import pytest

from kafka_dt.pipeline.cases import form_cases
from kafka_dt.pipeline.demo import Verdict, judge
from kafka_dt.pipeline.generator import IncidentKind
from kafka_dt.pipeline.report.cases import sightings
from kafka_dt.pipeline.report.contents import as_json
from kafka_dt.pipeline.report.page import html
from kafka_dt.pipeline.report.signs import SIGNS, Finding, Severity, Sign
from tests.support.spark.report_contents import AT, BUSY, contents

FOUND = Finding(
    BUSY.kind, Severity.LOW, BUSY.subject_type, "10.1.2.3", None, None, "10.1.2.3", AT, AT, 2000, evidence=()
)
WITH_BUSY = replace(
    contents(),
    signs=(BUSY,),
    findings=(FOUND,),
    finding_counts={(BUSY.kind, Severity.LOW): 1},
    cases=form_cases(sightings([FOUND], (BUSY,), "/data/audit")),
)


def test_the_page_shows_a_sign_as_it_names_itself() -> None:
    page = html(WITH_BUSY)
    for words in (BUSY.title, BUSY.meaning, "Logins of an address that are too many", "Look at its jobs.", "1000"):
        assert words in page
    (figures,) = re.findall(r'<script type="application/json" id="figures">(.*?)</script>', page)
    assert json.loads(figures)["theft"]["layout"]["yaxis"]["ticktext"] == [BUSY.title]


def test_the_document_has_its_findings_thresholds_and_commands() -> None:
    document = json.loads(as_json(WITH_BUSY))
    assert document["thresholds"] == {"most_logins": "1000"}
    assert document["finding_counts"] == [{"kind": "busy_address", "severity": "low", "count": 1}]
    (finding,) = document["findings"]
    assert finding["kind"] == "busy_address"
    assert finding["responses"][0] == {"why": "Look at its jobs."}
    assert "--address=10.1.2.3" in finding["responses"][1]["command"]


def test_more_signs_than_colours_still_have_a_plot() -> None:
    signs = tuple(replace(BUSY, kind=f"busy_{number}") for number in range(20))
    findings = tuple(replace(FOUND, kind=sign.kind) for sign in signs)
    assert "Logging in too often" in html(replace(contents(), signs=signs, findings=findings))


def test_a_demo_judges_every_sign_of_its_report() -> None:
    assert judge([], [FOUND], (BUSY,)) == (Verdict("busy_address", planted=0, found=0, others=1),)


def test_every_kind_that_the_generator_plants_has_its_sign() -> None:
    assert {sign.kind for sign in SIGNS} >= set(IncidentKind)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([sign.kind for sign in SIGNS], id="kinds"),
        pytest.param([row.name for sign in SIGNS for row in sign.threshold_rows], id="thresholds"),
    ],
)
def test_no_two_signs_share_a_name(names: list[str]) -> None:
    assert [name for name, count in Counter(names).items() if count > 1] == []


@pytest.mark.parametrize("sign", SIGNS, ids=[sign.kind for sign in SIGNS])
def test_the_manual_says_what_a_sign_does_not_see_and_names_its_thresholds(sign: Sign[object]) -> None:
    assert "Not seen:" in sign.manual
    assert any(f"`{row.name}`" in sign.manual for row in sign.threshold_rows)
