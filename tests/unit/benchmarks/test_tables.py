from __future__ import annotations

import pytest

from benchmarks.metrics import METRICS, digits
from benchmarks.page import filled
from benchmarks.results import Case, Measurement, Results, ScenarioResults
from benchmarks.scenarios import SCENARIOS
from benchmarks.tables import table, targets_table, terminal_targets
from benchmarks.targets import TARGETS, Target

CREATE = Case("create", 16)
RUN = {
    "rounds": 3,
    "begun": "2026-01-02T03:04:05+00:00",
    "revision": "abc",
    "processor": "a processor",
    "cores": 2,
    "kernel": "6.1",
    "python": "3.11",
    "java": 17,
    "fsync_ms": 0.5,
}
CHANGES = ScenarioResults(
    RUN,
    [
        Measurement(CREATE, subject, round_number, {"rate": rate, "p50_ms": 1.25})
        for round_number in (1, 2, 3)
        for subject, rate in (("broker", 100.0), ("kafka-dt", 1_000.0 * round_number))
    ],
)
RESULTS = Results({"changes": CHANGES})


def test_a_row_has_medians_and_the_spread_of_what_is_compared() -> None:
    _, rows = table(SCENARIOS["changes"], CHANGES)
    assert [list(row) for row in rows] == [
        ["create, 16 connections", "broker", "100 (100 to 100)", "1.25", ""],
        ["", "kafka-dt", "2,000 (1,000 to 3,000)", "1.25", "20.0 (10.0 to 30.0)"],
    ]


def test_there_is_a_column_for_each_value_that_was_measured() -> None:
    headings, _ = table(SCENARIOS["changes"], CHANGES)
    assert list(headings) == ["", "", "a second", "p50, ms", "a second: times the broker's"]


def test_without_a_broker_there_is_nothing_to_divide_by() -> None:
    alone = ScenarioResults(RUN, [Measurement(Case("a month", events=1_000), "ingest", 1, {"rate": 100.0})])
    headings, rows = table(SCENARIOS["pipeline"], alone)
    assert list(headings) == ["", "", "a second"]
    assert [list(row) for row in rows] == [["a month, 1,000 events", "ingest", "100"]]


def test_targets_say_what_was_reached_and_what_was_not_measured() -> None:
    lines = targets_table(RESULTS).splitlines()
    assert "| create at 16 connections | at least 18 | 20.0 (10.0 to 30.0) | yes |" in lines
    assert "| renew at 16 connections | at least 18 | not measured |  |" in lines


@pytest.mark.parametrize(("at_most", "met"), [(1.2, "**no**"), (1.3, "yes")])
def test_a_target_may_be_a_value_with_its_unit(at_most: float, met: str) -> None:
    target = Target("p50 of a create", "changes", CREATE, "p50_ms", at_most=at_most, other=None)
    assert target.words == f"at most {at_most} ms"
    assert f"| p50 of a create | at most {at_most} ms | 1.25 (1.25 to 1.25) | {met} |" in targets_table(
        RESULTS, [target]
    )


def test_a_target_with_a_unit_is_not_measured_where_its_case_is_not() -> None:
    target = Target("p50 of a renewal", "changes", Case("renew", 16), "p50_ms", at_most=1, other=None)
    assert target.reached(RESULTS) is None


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.work)
def test_every_target_is_about_a_scenario_and_a_value(target: Target) -> None:
    assert target.scenario in SCENARIOS
    assert target.metric in METRICS


def test_the_terminal_shows_the_targets_that_were_measured() -> None:
    targets = [
        Target("create", "changes", CREATE, "rate", at_least=5),
        Target("renew", "changes", Case("renew", 16), "rate", at_least=5),
    ]
    shown = terminal_targets(RESULTS, targets)
    assert [list(column.cells) for column in shown.columns] == [
        ["create"],
        ["at least 5"],
        ["20.0 (10.0 to 30.0)"],
        ["yes"],
    ]


def test_only_marked_parts_of_a_page_are_made_anew() -> None:
    kept = "<!-- begin logins -->\nkept\n<!-- end logins -->\n"
    page = f"by hand\n<!-- begin changes -->\nold\n<!-- end changes -->\nmore\n{kept}"
    made = filled(page, RESULTS)
    assert made.startswith("by hand\n<!-- begin changes -->\n")
    assert "old" not in made
    assert "20.0 (10.0 to 30.0)" in made
    assert made.endswith(f"<!-- end changes -->\nmore\n{kept}")
    assert filled(made, RESULTS) == made


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.0123, "0.012"),
        (1.2345, "1.23"),
        (12.345, "12.3"),
        (123.45, "123"),
        (12345.6, "12,346"),
        (-1.5, "-1.50"),
    ],
)
def test_numbers_have_three_digits_that_matter(value: float, text: str) -> None:
    assert digits(value) == text


def test_what_is_about_other_data_in_each_round_has_its_spread() -> None:
    rounds = [
        Measurement(
            Case("a company"), "all", number, {"precision": number / 10, "wrong": 10.0 * number, "visible": 4.0}
        )
        for number in (1, 2, 4)
    ]
    _, rows = table(SCENARIOS["detection"], ScenarioResults(RUN, rounds))
    assert [list(row) for row in rows] == [["a company", "all", "4", "20 (10 to 40)", "0.200 (0.100 to 0.400)"]]
