"""What a case says: its severity, its reasons, and what ends it."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import pytest

from kafka_dt.pipeline.cases import Case, Sighting, finding_id, form_cases, reaches
from kafka_dt.pipeline.report.signs import Severity
from tests.support.findings import sighting


def case_of(*sightings: Sighting) -> Case:
    (case,) = form_cases(sightings)
    return case


@pytest.mark.parametrize(
    ("signs", "severity"),
    [
        (["low"], "low"),
        (["low", "low"], "low"),
        (["low", "low", "low"], "medium"),
        (["medium", "medium"], "medium"),
        (["medium", "medium", "low"], "medium"),
        (["medium", "medium", "low", "low"], "high"),
        (["medium", "medium", "medium"], "high"),
        (["high"], "high"),
    ],
)
def test_different_weak_signs_of_one_owner_add_up(signs: list[str], severity: str) -> None:
    seen = [sighting(kind=f"kind-{number}", severity=Severity(each)) for number, each in enumerate(signs)]
    assert case_of(*seen).severity == severity


def test_the_same_sign_again_adds_nothing() -> None:
    again = [sighting(f"t{number}") for number in range(50)]
    assert case_of(*again).severity == "medium"
    assert case_of(*again).score == case_of(sighting()).score


def test_it_keeps_its_id_while_it_grows() -> None:
    first = sighting("t1")
    assert case_of(first).id == case_of(first, sighting("t2", day=1), sighting("t3", "User:bob", day=2)).id


def test_a_finding_has_the_same_id_in_each_report() -> None:
    first = sighting("t1")
    later = sighting("t1", severity=Severity.HIGH, day=2, evidence="more")
    assert first.id == later.id == finding_id(first.finding)
    assert len({first.id, sighting("t2").id, sighting("t1", kind="foreign_renewal").id}) == 3


def test_an_address_can_have_the_same_finding_on_another_day() -> None:
    monday, evening, friday = (sighting(None, None, day=day) for day in (0, 0.9, 4))
    assert monday.id == evening.id != friday.id


def test_reasons_are_one_for_each_sign_the_gravest_first() -> None:
    weak, grave = sighting("t1"), sighting("t2", kind="foreign_renewal", severity=Severity.HIGH, evidence="x")
    assert case_of(weak, sighting("t3"), grave).why == (
        "Foreign renewal: in networks x",
        "Stolen token: in networks 203.0.113.0/24",
    )


def test_what_ends_it_is_to_end_its_tokens() -> None:
    (command, *rest) = case_of(sighting("-t1"), sighting("t2")).ending.command.split(" -- ")
    assert command == "kafka-dt token revoke --command-config admin.properties"
    assert rest == ["-t1 t2"]


def test_many_tokens_end_by_their_owners() -> None:
    ending = case_of(*(sighting(f"t{number}", "User:a'b") for number in range(9))).ending
    assert "--owner=User:a'b" in shlex.split(ending.command)
    assert ending.command.endswith("--dry-run")


def test_a_token_that_has_ended_is_not_ended_again() -> None:
    ended = replace(sighting(), ends_token=False)
    assert case_of(ended).ending.why == "Ask the owner."
    assert case_of(ended, sighting("t2", kind="foreign_renewal")).ending.command.endswith("-- t2")


def test_names_that_do_not_print_are_in_no_command() -> None:
    hostile = sighting("\x1b[2J", "User:\x1b[2J")
    assert case_of(hostile).ending.command == ""


def test_the_document_names_findings_by_their_ids() -> None:
    seen = sighting("t1"), sighting("t2", day=1)
    document = json.loads(json.dumps(case_of(*seen).as_document()))
    assert [entry["finding"] for entry in document["timeline"]] == [each.id for each in seen]
    assert document["id"] == f"case-{seen[0].id}"
    assert document["severity"] == "medium"
    assert document["end"]["command"].endswith("-- t1 t2")
    assert document["first_seen"] == "2026-03-02T00:00:00+00:00"


def test_a_level_is_reached_by_it_and_by_graver_ones() -> None:
    assert [reaches(severity, "medium") for severity in ("high", "medium", "low")] == [True, True, False]
