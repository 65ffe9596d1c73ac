"""Alerts in a topic of a real broker."""

from __future__ import annotations

import asyncio
import json
import uuid

import aiokafka
import pytest

from kafka_dt.pipeline.alerts import Alert, NotDelivered, destination
from kafka_dt.pipeline.alerts.forms import FORMS
from kafka_dt.pipeline.cases import form_cases
from tests.support.brokers.broker import USERS, Broker
from tests.support.findings import MONDAY, sighting

WITHIN_S = 60
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def test_an_alert_is_a_record_that_the_broker_has_acknowledged(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = f"alerts-{uuid.uuid4().hex}"
    monkeypatch.setenv("KAFKA_DT_TEST_LOGIN", f'{PLAIN} username="bob" password="{USERS["bob"]}";')
    settings = {
        "kafka.bootstrap.servers": broker.sasl,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": "env:KAFKA_DT_TEST_LOGIN",
    }
    alerts = [Alert(case, case.sightings) for case in form_cases([sighting(), sighting("t2", "User:bob", "10.0.0.2")])]
    made = destination(f"kafka:{topic}", settings, lambda: MONDAY)
    for alert in alerts:
        made.send([alert])
    assert asyncio.run(records(broker.plaintext, topic, len(alerts))) == [alert.as_document() for alert in alerts]


def test_a_case_with_many_findings_is_sent_in_the_form_of_a_siem(broker: Broker) -> None:
    topic = f"alerts-{uuid.uuid4().hex}"
    (case,) = form_cases([sighting(f"token-{number}") for number in range(40)])
    alert = Alert(case, case.sightings)
    messages = FORMS["ocsf"](alert)
    assert sum(len(each.text) for each in messages) > 32 * 1024  # twice what aiokafka puts into a batch by default
    settings = {"kafka.bootstrap.servers": broker.plaintext}
    destination(f"kafka:{topic}", settings, lambda: MONDAY, FORMS["ocsf"]).send([alert])
    got = asyncio.run(records(broker.plaintext, topic, len(messages)))
    assert got == [json.loads(each.text) for each in messages]


def test_an_alert_that_is_too_large_for_the_topic_is_refused_for_good(broker: Broker) -> None:
    (case,) = form_cases([sighting(f"token-{number}") for number in range(6000)])
    alert = Alert(case, case.sightings)
    assert len(alert.as_json()) > 1024 * 1024
    made = destination(
        f"kafka:alerts-{uuid.uuid4().hex}", {"kafka.bootstrap.servers": broker.plaintext}, lambda: MONDAY
    )
    with pytest.raises(NotDelivered, match="MessageSizeTooLarge") as refused:
        made.send([alert])
    assert not refused.value.again


async def records(servers: str, topic: str, count: int) -> list[object]:
    consumer = aiokafka.AIOKafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest", group_id=None)
    async with consumer, asyncio.timeout(WITHIN_S):
        return [json.loads((await consumer.getone()).value) for _ in range(count)]


def test_a_password_that_is_wrong_is_a_failure(broker: Broker) -> None:
    settings = {
        "kafka.bootstrap.servers": broker.sasl,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": f'{PLAIN} username="bob" password="wrong";',
    }
    (case,) = form_cases([sighting()])
    with pytest.raises(NotDelivered):
        destination("kafka:alerts", settings, lambda: MONDAY).send([Alert(case, case.sightings)])
