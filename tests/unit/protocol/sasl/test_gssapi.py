"""The order of GSSAPI's messages and the negotiation of the security layer, with a context that only pretends."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl import Challenge, Failure, GssapiServer, GssRefused, Success

OFFER = Challenge(b"wrapped:\x01\x00\x00\x00")
CHOICE = b"wrapped:\x01\x00\x00\x00"


@dataclass
class Pretended:
    """Answers context tokens from a list and is established when the list is used up."""

    answers: list[bytes] = field(default_factory=lambda: [b"answer"])
    initiator: str = "alice@EXAMPLE.COM"

    @property
    def established(self) -> bool:
        return not self.answers

    def accept(self, token: bytes) -> bytes:
        if not token.startswith(b"token"):
            raise GssRefused("a token that is none")
        return self.answers.pop(0)

    def wrap(self, message: bytes) -> bytes:
        return b"wrapped:" + message

    def unwrap(self, message: bytes) -> bytes:
        if not message.startswith(b"wrapped:"):
            raise GssRefused("not wrapped")
        return message.removeprefix(b"wrapped:")


def offered() -> GssapiServer:
    server = GssapiServer(Pretended([b""]))
    assert server.step(b"token") == OFFER
    return server


def test_a_client_that_authenticates_the_server_is_answered_before_the_offer() -> None:
    server = GssapiServer(Pretended())
    assert server.step(b"token") == Challenge(b"answer")
    assert server.step(b"") == OFFER
    assert server.step(CHOICE) == Success(None, "alice@EXAMPLE.COM")


def test_without_a_last_token_the_offer_follows_at_once() -> None:
    assert offered().step(CHOICE) == Success(None, "alice@EXAMPLE.COM")


def test_a_context_may_take_several_tokens() -> None:
    server = GssapiServer(Pretended([b"first", b"second"]))
    assert server.step(b"token 1") == Challenge(b"first")
    assert server.step(b"token 2") == Challenge(b"second")
    assert server.step(b"") == OFFER


@pytest.mark.parametrize("authorization_id", [b"alice@EXAMPLE.COM", b"kafka@localhost", b"\xff"])
def test_whoever_is_asked_for_the_client_acts_as_itself(authorization_id: bytes) -> None:
    assert offered().step(CHOICE + authorization_id) == Success(None, "alice@EXAMPLE.COM")


def test_the_size_that_a_client_names_for_no_layer_does_not_matter() -> None:
    assert isinstance(offered().step(b"wrapped:\x01\x01\x00\x00"), Success)


@pytest.mark.parametrize(
    "choice",
    [b"", b"wrapped:", b"wrapped:\x01\x00\x00", b"\x01\x00\x00\x00", *(b"wrapped:%c\0\0\0" % n for n in (0, 2, 3, 4))],
)
def test_a_layer_that_was_not_offered_fails(choice: bytes) -> None:
    server = offered()
    outcome = server.step(choice)
    assert isinstance(outcome, Failure)
    assert outcome.message is None
    with pytest.raises(LocalProtocolError):
        server.step(CHOICE)


def test_a_message_where_none_is_due_fails() -> None:
    server = GssapiServer(Pretended())
    server.step(b"token")
    assert isinstance(server.step(CHOICE), Failure)


def test_a_refused_token_fails() -> None:
    server = GssapiServer(Pretended())
    assert server.step(b"") == Failure("a token that is none")
    with pytest.raises(LocalProtocolError):
        server.step(b"token")


def test_gssapi_asks_for_nothing() -> None:
    with pytest.raises(LocalProtocolError):
        offered().resume(None)


@given(st.lists(st.binary() | st.sampled_from([b"token", b"", CHOICE, b"wrapped:\x02"])))
def test_only_an_established_context_and_the_right_choice_log_in(messages: list[bytes]) -> None:
    server = GssapiServer(Pretended())
    taken = []
    for message in messages:
        outcome = server.step(message)
        taken.append(message)
        if not isinstance(outcome, Challenge):
            break
    else:
        return
    if isinstance(outcome, Success):
        assert taken[0].startswith(b"token")
        assert taken[1] == b""
        assert taken[2].startswith(b"wrapped:\x01")
    else:
        assert isinstance(outcome, Failure)
