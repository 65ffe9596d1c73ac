"""The answers of a login are the bytes that their entities come to, in every version."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from kafka_dt_protocol.api.registry import APIS, ApiKey
from kafka_dt_protocol.api.responses import build
from kafka_dt_protocol.login.messages import encode_handshake, encode_token_answer, encode_versions
from kafka_dt_protocol.wire.headers import encode_response

CORRELATION_IDS = st.integers(-(2**31), 2**31 - 1)
LONGEST_DURATION_MS = timedelta.max // timedelta(milliseconds=1)


@pytest.mark.parametrize("error", [ErrorCode.none, ErrorCode.unsupported_version, ErrorCode.invalid_request])
@pytest.mark.parametrize("version", APIS[ApiKey.API_VERSIONS].response)
def test_api_versions(version: int, error: ErrorCode) -> None:
    whole = encode_response(ApiKey.API_VERSIONS, version, 7, APIS.api_versions(version, error))
    assert encode_versions(7, APIS.body(version, error)) == whole


@pytest.mark.parametrize("version", APIS[ApiKey.SASL_HANDSHAKE].response)
@given(
    correlation_id=CORRELATION_IDS,
    error=st.sampled_from([ErrorCode.none, ErrorCode.unsupported_sasl_mechanism]),
    mechanisms=st.lists(st.text(max_size=20), max_size=5).map(tuple),
)
def test_handshake(version: int, correlation_id: int, error: ErrorCode, mechanisms: tuple[str, ...]) -> None:
    entity = build(APIS[ApiKey.SASL_HANDSHAKE].response[version], error_code=error, mechanisms=mechanisms)
    whole = encode_response(ApiKey.SASL_HANDSHAKE, version, correlation_id, entity)
    assert encode_handshake(version, correlation_id, error, mechanisms) == whole


@pytest.mark.parametrize("version", APIS[ApiKey.SASL_AUTHENTICATE].response)
@given(
    correlation_id=CORRELATION_IDS,
    message=st.binary(max_size=20_000),
    lifetime_ms=st.integers(0, LONGEST_DURATION_MS),
)
def test_token_answer(version: int, correlation_id: int, message: bytes, lifetime_ms: int) -> None:
    entity = build(
        APIS[ApiKey.SASL_AUTHENTICATE].response[version],
        error_code=ErrorCode.none,
        error_message="",
        auth_bytes=message,
        session_lifetime=timedelta(milliseconds=lifetime_ms),
    )
    whole = encode_response(ApiKey.SASL_AUTHENTICATE, version, correlation_id, entity)
    assert encode_token_answer(version, correlation_id, message, lifetime_ms) == whole


@pytest.mark.parametrize("version", [1, 2])
def test_a_session_lifetime_longer_than_durations_of_python_is_exact(version: int) -> None:
    answer = encode_token_answer(version, 0, b"", 2**63 - 1)
    assert (2**63 - 1).to_bytes(8) in answer
