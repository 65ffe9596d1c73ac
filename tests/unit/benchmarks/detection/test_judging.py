"""A finding is right only if it is about an incident, and each incident counts once."""

from dataclasses import replace

from benchmarks.detection.judging import DAILY_WORK, Found, judge
from benchmarks.detection.stories import Story

THEFT = Story(
    "theft",
    "stolen-outside",
    incident=True,
    owners={"User:etl"},
    principals={"User:etl"},
    token_ids={"T1"},
    addresses={"198.51.100.7"},
    differs={"zone"},
    first_ms=1_000,
    last_ms=2_000,
)
HIDDEN = replace(THEFT, name="hidden", kind="peer-pod", token_ids={"T2"}, addresses=set(), differs=set())
MOVE = replace(THEFT, name="move", kind="cluster-move", incident=False, token_ids={"T3"}, addresses=set())
FOUND = Found("stolen_token", "high", "T1", "User:etl", "198.51.100.7", 1_500, 1_600)


def test_several_findings_about_one_incident_count_as_one() -> None:
    judgement = judge([FOUND, replace(FOUND, kind="other", severity="medium")], [THEFT, HIDDEN])
    assert (judgement.precision, judgement.recall, judgement.high_precision) == (1.0, 1.0, 1.0)


def test_a_finding_about_another_token_or_time_is_wrong() -> None:
    other, late = replace(FOUND, token_id="T9"), replace(FOUND, first_ms=2_001, last_ms=2_002)
    judgement = judge([FOUND, other, late], [THEFT])
    assert judgement.precision == 1 / 3
    assert [each.look_alike for each in judgement.wrong] == [DAILY_WORK] * 2


def test_a_finding_about_honest_events_is_wrong_and_says_what_they_are() -> None:
    judgement = judge([replace(FOUND, token_id="T3", severity="medium"), FOUND], [THEFT, MOVE])
    assert judgement.wrong_by_rule() == {"stolen_token": {"cluster-move": 1}}
    assert (judgement.precision, judgement.high_precision) == (0.5, 1.0)


def test_an_incident_that_is_not_visible_may_be_missed_but_finding_it_is_right() -> None:
    assert judge([FOUND], [THEFT, HIDDEN]).recall == 1.0
    found = judge([replace(FOUND, token_id="T2")], [THEFT, HIDDEN])
    assert (found.precision, found.recall) == (1.0, 0.0)
    assert found.by_kind() == {"stolen-outside": (1, 0)}


def test_without_a_token_the_address_counts_and_without_both_the_owner() -> None:
    address = replace(FOUND, token_id=None, owner=None)
    assert judge([address], [THEFT]).recall == 1.0
    assert judge([replace(address, address="203.0.113.1")], [THEFT]).recall == 0.0
    assert judge([replace(FOUND, token_id=None, address=None)], [THEFT]).recall == 1.0


def test_of_an_incident_with_many_tokens_the_address_counts_too() -> None:
    many = replace(THEFT, token_ids={f"T{number}" for number in range(20)})
    judgement = judge([FOUND, replace(FOUND, address="10.0.0.1")], [many])
    assert (judgement.recall, judgement.precision) == (1.0, 0.5)


def test_each_kind_of_findings_has_the_incidents_that_it_found_and_its_errors() -> None:
    other = replace(FOUND, kind="other", token_id="T2")
    judgement = judge([FOUND, FOUND, other, replace(FOUND, kind="third", token_id="T9")], [THEFT, HIDDEN])
    assert judgement.by_rule() == {"other": (1, 0, 0), "stolen_token": (1, 1, 0), "third": (0, 0, 1)}


def test_of_nothing_found_there_is_no_precision() -> None:
    judgement = judge([], [THEFT])
    assert (judgement.precision, judgement.high_precision, judgement.recall) == (None, None, 0.0)
    assert judgement.as_json()["missed"] == [{"name": "theft", "differs": ["zone"], "events": 0}]
