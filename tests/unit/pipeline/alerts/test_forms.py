"""The forms of SIEMs: OCSF against the models of its schema, ECS, and CEF."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import pytest
from click.testing import CliRunner
from py_ocsf_models.events.findings.detection_finding import DetectionFinding

from kafka_dt.cli import main
from kafka_dt.pipeline.alerts import Alert
from kafka_dt.pipeline.alerts.forms import FORMS, Message
from kafka_dt.pipeline.cases import Sighting, form_cases
from kafka_dt.pipeline.report.signs import Severity
from tests.support.findings import sighting
from tests.support.spark.report_contents import HOSTILE, TURNED

STOLEN = sighting(severity=Severity.HIGH)
GUESSING = sighting(None, None, "198.51.100.0/24", kind="unknown_id_burst")
LOST = sighting("t9", None, None)
ALL = (
    STOLEN,
    GUESSING,
    LOST,
    sighting("t2", "User:bob", "2001:db8::7"),
    sighting(HOSTILE, TURNED, TURNED, evidence=HOSTILE),
)
LEFT_OUT_BY_THE_MODELS = {"evidences.src_endpoint", "evidences.actor"}
"""OCSF has them, and the models mark them as still to be done."""


def messages(form: str, *sightings: Sighting) -> Sequence[Message]:
    return [message for case in form_cases(sightings) for message in FORMS[form](Alert(case, case.sightings))]


def only(form: str, one: Sighting) -> Any:
    (message,) = messages(form, one)
    assert message.id == one.id
    return json.loads(message.text)


def names(document: Any, above: str = "") -> Iterator[str]:
    """Give the names of all fields that have a value."""
    if isinstance(document, dict):
        for name, value in document.items():
            if value not in (None, {}, []):
                yield f"{above}{name}"
                if name != "data":
                    yield from names(value, f"{above}{name}.")
    elif isinstance(document, list):
        for each in document:
            yield from names(each, above)


@pytest.mark.parametrize("one", ALL)
def test_a_finding_is_a_detection_finding_of_ocsf(one: Sighting) -> None:
    document = only("ocsf", one)
    read = json.loads(DetectionFinding.model_validate(document).model_dump_json(exclude_none=True))
    lost = {name for name in names(document) if name not in set(names(read))}
    assert {name for name in lost if not any(name.startswith(each) for each in LEFT_OUT_BY_THE_MODELS)} == set()
    assert document["type_uid"] == document["class_uid"] * 100 + document["activity_id"]
    assert document["finding_info"]["uid"] == document["metadata"]["uid"] == one.id


def test_ocsf_has_who_where_what_and_the_case() -> None:
    document = only("ocsf", STOLEN)
    (case,) = form_cases([STOLEN])
    assert document["metadata"]["correlation_uid"] == case.id
    assert (document["severity_id"], document["risk_score"]) == (4, 100)
    assert document["resources"] == [{"uid": STOLEN.finding.subject, "type": "delegation token"}]
    assert {each["value"] for each in document["observables"]} == {"User:alice", "203.0.113.9", STOLEN.finding.subject}
    assert document["start_time"] == 1_772_409_600_000


def test_ecs_has_the_fields_that_elastics_rules_look_at() -> None:
    document = only("ecs", STOLEN)
    assert document["event"]["kind"] == "alert"
    assert document["event"]["severity"] == 73
    assert document["source"] == {"address": "203.0.113.9", "ip": "203.0.113.9"}
    assert document["related"] == {"user": ["User:alice"], "ip": ["203.0.113.9"]}
    assert document["user"]["name"] == "User:alice"
    assert document["rule"]["id"] == "stolen_token"
    assert datetime.fromisoformat(document["@timestamp"]) == STOLEN.finding.last_seen


def test_in_ecs_what_is_no_address_is_in_no_field_for_addresses() -> None:
    document = only("ecs", GUESSING)
    assert document["source"] == {"address": "198.51.100.0/24"}
    assert "related" not in document


EXTENSION = re.compile(r"(\w+)=((?:\\.|[^\\=])*)(?= \w+=|$)")


def read_cef(line: str) -> tuple[list[str], dict[str, str]]:
    """Read CEF as its definition says: seven fields between bars, and then pairs."""
    *header, extension = re.split(r"(?<!\\)\|", line, maxsplit=7)
    pairs = EXTENSION.findall(extension)
    assert " ".join(f"{key}={value}" for key, value in pairs) == extension
    return header, {key: re.sub(r"\\(.)", r"\1", value) for key, value in pairs}


def test_cef_has_its_seven_fields_and_pairs() -> None:
    (message,) = messages("cef", STOLEN)
    header, pairs = read_cef(message.text)
    assert header[:3] == ["CEF:0", "kafka-dt", "kafka-dt"]
    assert header[4:] == ["stolen_token", "Stolen token", "8"]
    assert pairs["externalId"] == STOLEN.id
    assert (pairs["src"], pairs["duser"], pairs["cs2"]) == ("203.0.113.9", "User:alice", STOLEN.finding.subject)
    assert pairs["end"] == "1772413200000"
    assert message.content_type.startswith("text/plain")


@pytest.mark.parametrize("name", ["User:a=b c=d", "User:a|b", "User:a\\", "User:a\nCEF:0|x", "User:a\\=b src=1.2.3.4"])
def test_a_name_cannot_add_a_field_or_a_line_to_cef(name: str) -> None:
    (message,) = messages("cef", sighting("t1", name))
    header, pairs = read_cef(message.text)
    assert len(header) == 7
    assert message.text.isprintable()
    assert pairs["duser"] == name.replace("\n", "\\n")
    assert pairs["src"] == "203.0.113.9"


def test_cef_has_each_kind_of_address_in_its_own_field() -> None:
    found = [read_cef(messages("cef", one)[0].text)[1] for one in ALL[:4]]
    assert [pairs.get("src") or pairs.get("c6a2") or pairs.get("shost") for pairs in found] == [
        "203.0.113.9", "198.51.100.0/24", None, "2001:db8::7",
    ]  # fmt: skip
    assert "c6a2" in found[3]


@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_message_is_one_line_whatever_clients_chose(form: str) -> None:
    for message in messages(form, *ALL):
        assert message.text.isprintable()
        assert re.fullmatch("[0-9a-f]{16}", message.id)


@pytest.mark.parametrize("form", ["ocsf", "ecs", "cef"])
def test_a_siem_gets_what_is_new_alone(form: str) -> None:
    (case,) = form_cases([STOLEN, sighting("t2")])
    (message,) = FORMS[form](Alert(case, case.sightings[1:]))
    assert message.id == case.sightings[1].id


@pytest.mark.parametrize("given", ["xml", "slack=json", "syslog="])
def test_another_form_is_wrong_usage(given: str) -> None:
    result = CliRunner().invoke(main, ["pipeline", "report", "--table", "t", "--to", "r", "--alert-format", given])
    assert result.exit_code == 2
    assert "is not of the form [KIND=]FORM" in result.output
