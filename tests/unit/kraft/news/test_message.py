"""A message proves that its writer knows the token, and gives no secret away."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.kraft.news.message import MAX_BYTES, Revocation
from kafka_dt.tokens.token import MAX_TIMESTAMP_MS
from tests.support.tokens.store_contract import new_token

TOKEN_ID = "c0Y_FVnxcocCHW2nRDg2Sw"
HMAC, OTHER = bytes(range(64)), bytes(64)

ends = st.none() | st.integers(0, MAX_TIMESTAMP_MS)


@given(end_ms=ends, hmac=st.binary(min_size=32, max_size=64))
def test_a_message_is_read_as_it_was_written_and_shows_no_secret(end_ms: int | None, hmac: bytes) -> None:
    message = Revocation.of(TOKEN_ID, hmac, end_ms)
    text = message.encode()
    assert Revocation.decode(text) == message
    assert message.is_proved_by(hmac)
    assert hmac not in text
    assert base64.b64encode(hmac) not in text


def test_who_does_not_know_the_token_proves_nothing() -> None:
    message = Revocation.of(TOKEN_ID, HMAC, 5)
    assert not message.is_proved_by(OTHER)
    assert not Revocation(TOKEN_ID, 4, message.proof).is_proved_by(HMAC), "of another end"
    assert not Revocation(TOKEN_ID, None, message.proof).is_proved_by(HMAC)
    assert not Revocation(new_token().token_id, 5, message.proof).is_proved_by(HMAC), "of another token"


GOOD = json.loads(Revocation.of(TOKEN_ID, HMAC, 5).encode())


def test_fields_of_a_later_release_are_left_out() -> None:
    text = json.dumps(GOOD | {"more": 1}).encode()
    assert Revocation.decode(text) == Revocation.of(TOKEN_ID, HMAC, 5)


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"[]",
        b"\xff",
        b"[" * 1_000,
        json.dumps(GOOD | {"version": 2}).encode(),
        json.dumps(GOOD | {"token_id": "short"}).encode(),
        json.dumps(GOOD | {"token_id": 7}).encode(),
        json.dumps(GOOD | {"end_timestamp": -1}).encode(),
        json.dumps(GOOD | {"end_timestamp": 2**63}).encode(),
        json.dumps(GOOD | {"end_timestamp": True}).encode(),
        json.dumps(GOOD | {"end_timestamp": "5"}).encode(),
        json.dumps(GOOD | {"proof": "no base64!"}).encode(),
        json.dumps({key: value for key, value in GOOD.items() if key != "proof"}).encode(),
        json.dumps(GOOD | {"more": "x" * MAX_BYTES}).encode(),
    ],
)
def test_what_is_no_message_is_none(value: bytes | None) -> None:
    assert Revocation.decode(value) is None


@given(st.binary())
def test_any_bytes_are_a_message_or_none(value: bytes) -> None:
    assert Revocation.decode(value) is None
