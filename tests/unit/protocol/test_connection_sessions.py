"""Sessions that end, and logging in again."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt_protocol import (
    ApiKey,
    ConnectionClosed,
    MechanismChosen,
)
from tests.unit.protocol.conversation import NOW, Conversation


def test_the_next_request_after_the_end_of_the_session_closes() -> None:
    client = Conversation()
    client.log_in(lifetime_ms=1000)
    client.now = NOW + 1000
    client.ask(ApiKey.API_VERSIONS, 0)
    assert client.event() is None
    assert len(client.answers()) == 1
    client.now = NOW + 1001
    client.ask(ApiKey.API_VERSIONS, 0)
    assert isinstance(client.event(), ConnectionClosed)
    assert client.frames() == []


def test_a_session_can_be_made_to_end_earlier_but_not_later() -> None:
    client = Conversation()
    client.log_in(lifetime_ms=1000)
    client.connection.session.cut(NOW + 2000)
    assert client.connection.session.end_ms == NOW + 1000
    client.connection.session.cut(NOW + 500)
    assert client.connection.session.end_ms == NOW + 500
    client.connection.session.cut(NOW + 700)
    assert client.connection.session.end_ms == NOW + 700


def test_a_session_without_end_is_not_given_one() -> None:
    client = Conversation()
    client.log_in()
    client.connection.session.cut(NOW + 500)
    assert client.connection.session.end_ms is None


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("passed_ms", [10, 5000], ids=["within the session", "as the first request after its end"])
def test_a_session_with_a_lifetime_may_log_in_again(version: int, passed_ms: int) -> None:
    client = Conversation()
    client.log_in(lifetime_ms=1000)
    client.now = NOW + passed_ms
    client.log_in(lifetime_ms=1000, version=version)
    assert client.connection.session.end_ms == NOW + passed_ms + 1000


def test_logging_in_again_is_refused_within_a_second_of_the_last_time() -> None:
    client = Conversation()
    client.log_in(lifetime_ms=10_000)
    client.log_in(lifetime_ms=10_000)
    client.now = NOW + 999
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    assert client.event() is None
    assert client.answer().error_code is ErrorCode.illegal_sasl_state
    client.now = NOW + 1000
    client.log_in(lifetime_ms=10_000)


def test_another_mechanism_at_a_second_login_is_closed_at_its_first_token() -> None:
    client = Conversation()
    client.log_in(lifetime_ms=1000)
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="SCRAM-SHA-256")
    assert client.event() == MechanismChosen("SCRAM-SHA-256")
    assert client.answer().error_code is ErrorCode.none
    client.tokens(b"token")
    closed = client.event()
    assert isinstance(closed, ConnectionClosed)
    assert closed.delayed
    assert client.frames() == []


def test_a_mechanism_that_is_not_offered_at_a_second_login_is_refused() -> None:
    client = Conversation()
    client.log_in(lifetime_ms=1000)
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="GSSAPI")
    assert isinstance(client.event(), ConnectionClosed)
    assert client.answer().error_code is ErrorCode.unsupported_sasl_mechanism


def test_another_request_during_a_second_login_is_refused_and_closes() -> None:
    client = Conversation()
    client.log_in(lifetime_ms=1000)
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    client.event()
    client.answers()
    client.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, owners=None)
    assert isinstance(client.event(), ConnectionClosed)
    assert client.answer().error_code is ErrorCode.illegal_sasl_state
