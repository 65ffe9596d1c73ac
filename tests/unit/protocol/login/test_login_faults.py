"""What a connection says of logins that end before their mechanism can end them, and of who talks."""

from __future__ import annotations

import pytest

from kafka_dt_protocol import ApiKey, ConnectionClosed, LoginFault, State
from tests.unit.protocol.conversation import Conversation


def test_a_mechanism_that_is_not_offered() -> None:
    talk = Conversation()
    talk.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="GSSAPI")
    assert isinstance(talk.event(), ConnectionClosed)
    assert talk.connection.login_fault is LoginFault.NOT_OFFERED
    assert talk.connection.asked_mechanism == "GSSAPI"


def test_another_mechanism_than_before() -> None:
    talk = Conversation()
    talk.log_in(lifetime_ms=60_000)
    talk.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="SCRAM-SHA-256")
    talk.event()
    talk.tokens(b"token")
    assert isinstance(talk.event(), ConnectionClosed)
    assert talk.connection.login_fault is LoginFault.MECHANISM_CHANGED


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x02xx", b"\xff\xff\xff\xff"])
def test_what_is_no_login_at_all(data: bytes) -> None:
    talk = Conversation()
    talk.connection.receive_data(data)
    assert isinstance(talk.event(), ConnectionClosed)
    assert talk.connection.login_fault is LoginFault.OUT_OF_TURN
    assert talk.connection.asked_mechanism is None


def test_a_request_in_the_midst_of_a_login() -> None:
    talk = Conversation()
    talk.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    talk.event()
    talk.ask(ApiKey.FIND_COORDINATOR, 3, key="group", key_type=0)
    assert isinstance(talk.event(), ConnectionClosed)
    assert talk.connection.login_fault is LoginFault.OUT_OF_TURN
    assert talk.connection.asked_mechanism == "PLAIN"


def test_a_login_that_its_mechanism_has_ended_has_no_other_fault() -> None:
    talk = Conversation()
    talk.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    talk.event()
    talk.tokens(b"token")
    talk.event()
    assert talk.connection.fail("no").delayed
    assert talk.connection.login_fault is None
    assert talk.connection.state is State.CLOSING


def test_who_leaves_or_has_logged_in_has_no_fault() -> None:
    gone = Conversation()
    gone.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    gone.event()
    gone.connection.receive_eof()
    assert isinstance(gone.event(), ConnectionClosed)
    assert gone.connection.login_fault is None
    inside = Conversation()
    inside.log_in()
    inside.connection.receive_data(b"\xff\xff\xff\xff")
    assert isinstance(inside.event(), ConnectionClosed)
    assert inside.connection.login_fault is None
    nobody_asks = Conversation(())
    nobody_asks.connection.receive_data(b"\xff\xff\xff\xff")
    assert isinstance(nobody_asks.event(), ConnectionClosed)
    assert nobody_asks.connection.login_fault is None


def test_who_feeds_the_bytes_may_give_up() -> None:
    before, after = Conversation(), Conversation()
    after.log_in()
    closed = before.connection.give_up("a frame that is too long")
    assert (closed.reason, closed.delayed, closed.error) == ("a frame that is too long", True, True)
    assert before.connection.login_fault is LoginFault.OUT_OF_TURN
    assert not after.connection.give_up("a frame that is too long").delayed
    assert after.connection.login_fault is None
    assert before.event() is None


def test_the_client_id_is_that_of_the_last_request_with_a_header() -> None:
    talk = Conversation()
    assert talk.connection.client_id is None
    talk.ask(ApiKey.SASL_HANDSHAKE, 0, mechanism="PLAIN")
    talk.event()
    assert talk.connection.client_id == "test"
    talk.connection.receive_data(b"\x00\x00\x00\x05token")
    talk.event()
    assert talk.connection.client_id == "test"
