"""A Kafka topic: each message of an alert is the value of a record, acknowledged by all replicas in sync.

The connection is described as for Kafka's own clients: `kafka.bootstrap.servers`, `kafka.sasl.jaas.config` and so on.
It needs aiokafka, an extra (`audit-kafka`).

Source: kafka_dt/audit/topic.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Final

from kio.schema.errors import ErrorCode

from kafka_dt.audit.delivery import SinkFailed
from kafka_dt.audit.topic import AiokafkaMissing, EventTopic
from kafka_dt.client import ClientConfig, ClientConfigError
from kafka_dt.client.producing import producer_arguments
from kafka_dt.extras import installed_by
from kafka_dt.pipeline.alerts.alert import Alert
from kafka_dt.pipeline.alerts.destination import AlertError, NotDelivered, key_of
from kafka_dt.pipeline.alerts.forms import Form

PREFIX = "kafka."
_TOO_LARGE: Final = frozenset({ErrorCode.message_too_large.value, ErrorCode.record_list_too_large.value})
"""The codes of errors of Kafka's about the message: the same one is always refused."""


class AlertTopic:
    """Sends alerts to a topic.

    Args:
        topic: its name.
        form: writes alerts.
        properties: Kafka's client properties.

    Raises:
        AlertError: they cannot be used, or the extra is missing.
    """

    digest = False

    def __init__(self, topic: str, form: Form, properties: Mapping[str, str]) -> None:
        try:
            client = ClientConfig.from_properties(properties)
            arguments = {**producer_arguments(client), "acks": "all"}
        except ClientConfigError as error:
            raise AlertError(f"{PREFIX}{error.key}: {error.reason}") from None
        self._timeout_s = client.request_timeout_ms / 1000
        self._topic = topic
        self._form = form
        self._arguments = arguments
        try:
            EventTopic(topic, self._timeout_s, arguments)
        except AiokafkaMissing:
            raise AlertError(f"alerts in a topic need aiokafka; {installed_by('audit-kafka')}") from None
        self.name = f"topic {topic}"
        self.key = key_of("kafka", f"{topic} {properties.get('bootstrap.servers')}")

    def send(self, alerts: Sequence[Alert]) -> None:
        """Write alerts."""
        sink = EventTopic(self._topic, self._timeout_s, self._arguments)
        sink.open()
        with closing(sink):
            try:
                sink.write([f"{message.text}\n".encode() for alert in alerts for message in self._form(alert)])
            except SinkFailed as error:
                again = getattr(error.__cause__, "errno", None) not in _TOO_LARGE
                raise NotDelivered(error.reason, again=again) from None
