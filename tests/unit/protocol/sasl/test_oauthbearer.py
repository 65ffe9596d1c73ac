"""The server side of OAUTHBEARER by RFC 7628, message by message."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl import (
    BearerAccepted,
    BearerRejected,
    Challenge,
    Failure,
    OAuthBearerServer,
    Success,
    VerdictRequest,
)

TOKEN = "aaa.bbb-_.ccc=="
FIRST = f"n,,\x01auth=Bearer {TOKEN}\x01\x01".encode()
ALICE = BearerAccepted("alice")


def test_a_good_token_logs_in() -> None:
    server = OAuthBearerServer()
    assert server.step(FIRST) == VerdictRequest(TOKEN)
    assert server.resume(ALICE) == Success(b"", "alice", {})


def test_extensions_come_along() -> None:
    server = OAuthBearerServer()
    server.step(f"n,,\x01auth=bearer   {TOKEN}\x01logicalCluster=lkc-1 a=b\x01traceId=123\x01\x01".encode())
    assert server.resume(ALICE) == Success(b"", "alice", {"logicalCluster": "lkc-1 a=b", "traceId": "123"})


@pytest.mark.parametrize(
    ("escaped", "name"), [("alice", "alice"), ("a=2Cb=3Dc", "a,b=c"), ("=3D2C", "=2C"), ("é", "é")]
)
def test_an_authorization_id_has_to_be_the_tokens_name(escaped: str, name: str) -> None:
    for verdict, outcome in ((BearerAccepted(name), Success), (BearerAccepted("bob"), Failure)):
        server = OAuthBearerServer()
        assert isinstance(server.step(f"n,a={escaped},\x01auth=Bearer x\x01\x01".encode()), VerdictRequest)
        assert isinstance(server.resume(verdict), outcome)


def test_a_refused_token_is_told_as_json_and_again_when_the_client_has_heard_it() -> None:
    server = OAuthBearerServer()
    server.step(FIRST)
    challenge = server.resume(BearerRejected("expired"))
    assert challenge == Challenge(b'{"status": "invalid_token"}')
    assert server.step(b"\x01") == Failure("expired", '{"status": "invalid_token"}')
    with pytest.raises(LocalProtocolError):
        server.step(b"\x01")


def test_no_second_token_is_taken_after_a_refusal() -> None:
    server = OAuthBearerServer()
    server.step(FIRST)
    server.resume(BearerRejected("expired"))
    assert isinstance(server.step(FIRST), Failure)


def test_the_scope_that_is_missing_is_told() -> None:
    message = BearerRejected("not enough", "insufficient_scope", 'a "b"').message
    assert json.loads(message) == {"status": "insufficient_scope", "scope": 'a "b"'}


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,auth=Bearer x\x01\x01",
        b"n,,\x01auth=Bearer x\x01",
        b"n,,\x01auth=Bearer x",
        b"n,,\x01auth=Bearer x\x01\x01\x01",
        b"n,,\x01auth=Bearer x\x01\x01trailing",
        b"y,,\x01auth=Bearer x\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer x\x01\x01",
        b"n,a=,\x01auth=Bearer x\x01\x01",
        b"n,a=b=4Cc,\x01auth=Bearer x\x01\x01",
        b"n,,\x01auth=Basic x\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer x y\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer =x\x01\x01",
        b"n,,\x01auth=Bearer x\x01auth=Bearer y\x01\x01",
        b"n,,\x01auth=Bearer x\x01key\x01\x01",
        b"n,,\x01auth=Bearer x\x01key=\x01\x01",
        b"n,,\x01auth=Bearer x\x01k1=v\x01\x01",
        b"n,,\x01auth=Bearer x\x01key=\xc3\xa9\x01\x01",
        b"n,,\x01AUTH=Bearer x\x01\x01",
        b"n,,\x01auth=Bearer \xff\x01\x01",
    ],
)
def test_what_rfc_7628_does_not_allow_is_refused(message: bytes) -> None:
    outcome = OAuthBearerServer().step(message)
    assert isinstance(outcome, Failure)
    assert outcome.message is None


def test_the_token_shows_nowhere() -> None:
    server = OAuthBearerServer()
    assert TOKEN not in repr(server.step(FIRST))
    failure = OAuthBearerServer().step(FIRST + b"x")
    assert isinstance(failure, Failure)
    assert TOKEN not in failure.detail


def test_a_driver_that_calls_what_is_not_due_is_told() -> None:
    server = OAuthBearerServer()
    with pytest.raises(LocalProtocolError):
        server.resume(ALICE)
    server.step(FIRST)
    with pytest.raises(LocalProtocolError):
        server.step(FIRST)
    server.resume(ALICE)
    with pytest.raises(LocalProtocolError):
        server.resume(ALICE)


@settings(max_examples=300)
@given(
    st.one_of(
        st.binary(),
        st.text().map(str.encode),
        st.lists(st.sampled_from(["n,", ",", "a=", "=2C", "\x01", "auth=", "Bearer", " ", "x", "=", "é", "key"])).map(
            lambda parts: "".join(parts).encode()
        ),
    )
)
def test_any_bytes_are_a_request_for_a_verdict_or_a_failure(message: bytes) -> None:
    assert isinstance(OAuthBearerServer().step(message), VerdictRequest | Failure)
