"""The answers that every login gets, made without an entity: ApiVersions, SaslHandshake and SaslAuthenticate.

A login is four answers, of which the first two are the same for everybody and the others differ in one field. Making
them of entities cost as much as the SCRAM arithmetic; that they are what the entities come to is tested for every
version. All functions give the content of a frame. A server that speaks for others as well, a gateway, says by
`VersionsOffered` what it offers.

Source: Kafka protocol guide, "SaslHandshake", "SaslAuthenticate"; KIP-368 (session lifetime), KIP-482, KIP-511.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import Final, Protocol

from kio.schema.errors import ErrorCode

from kafka_dt_protocol.api.registry import APIS, ApiKey, api_versions_response
from kafka_dt_protocol.wire.encoding import encode, encode_varint

_CORRELATION_ID: Final = Struct(">i")
_V0: Final = Struct(">ihhi")
"""Correlation id, no error, an empty message, the length of the bytes."""
_V2: Final = Struct(">ibhb")
"""Correlation id, no tagged fields, no error, an empty message (whose length counts from 1)."""
_SESSION_LIFETIME: Final = Struct(">q")
_SESSION_LIFETIME_AND_TAGS: Final = Struct(">qb")
_MOST_BODIES: Final = 256
"""Of each kind; more are not there unless somebody makes listeners without end."""


class VersionsOffered(Protocol):
    """Says what is offered where that is more than the registry's table."""

    def body(self, api_version: int) -> bytes:
        """Give the body of an ApiVersions answer without error.

        Args:
            api_version: of the answer, one of the registry's.
        """
        ...


def encode_api_versions(
    api_version: int,
    correlation_id: int,
    error: ErrorCode = ErrorCode.none,
    versions: VersionsOffered | None = None,
) -> bytes:
    """Make the answer to ApiVersions.

    Args:
        api_version: of the answer; 0 for a request of an unknown version.
        correlation_id: of the request.
        error: as `api_versions_response` takes it.
        versions: what is offered; None for the registry's table. Does not matter with an error.
    """
    if versions is None or error is not ErrorCode.none:
        body = _api_versions_body(api_version, error)
    else:
        body = versions.body(api_version)
    return _CORRELATION_ID.pack(correlation_id) + body


def encode_handshake(api_version: int, correlation_id: int, error: ErrorCode, mechanisms: tuple[str, ...]) -> bytes:
    """Make the answer to SaslHandshake.

    Args:
        api_version: of the request.
        correlation_id: of the request.
        error: whether the mechanism that was asked for is offered.
        mechanisms: that are offered.
    """
    return _CORRELATION_ID.pack(correlation_id) + _handshake_body(api_version, error, mechanisms)


def encode_token_answer(api_version: int, correlation_id: int, message: bytes, session_lifetime_ms: int) -> bytes:
    """Make the answer to a SaslAuthenticate that did not fail.

    Args:
        api_version: of the request.
        correlation_id: of the request.
        message: the mechanism's, may be empty.
        session_lifetime_ms: milliseconds, 0 for a session without end and while the exchange goes on.
    """
    return _TOKEN_ANSWERS[api_version](correlation_id, message, session_lifetime_ms)


def _token_answer_v0(correlation_id: int, message: bytes, _session_lifetime_ms: int) -> bytes:
    return _V0.pack(correlation_id, 0, 0, len(message)) + message


def _token_answer_v1(correlation_id: int, message: bytes, session_lifetime_ms: int) -> bytes:
    return _token_answer_v0(correlation_id, message, 0) + _SESSION_LIFETIME.pack(session_lifetime_ms)


def _token_answer_v2(correlation_id: int, message: bytes, session_lifetime_ms: int) -> bytes:
    start = _V2.pack(correlation_id, 0, 0, 1) + encode_varint(len(message) + 1)
    return start + message + _SESSION_LIFETIME_AND_TAGS.pack(session_lifetime_ms, 0)


_TOKEN_ANSWERS: Final[tuple[Callable[[int, bytes, int], bytes], ...]] = (
    _token_answer_v0,
    _token_answer_v1,
    _token_answer_v2,
)
"""By version."""


@lru_cache(_MOST_BODIES)
def _api_versions_body(api_version: int, error: ErrorCode) -> bytes:
    return encode(api_versions_response(api_version, error))


@lru_cache(_MOST_BODIES)
def _handshake_body(api_version: int, error: ErrorCode, mechanisms: tuple[str, ...]) -> bytes:
    response = APIS[ApiKey.SASL_HANDSHAKE].response[api_version]
    return encode(response(error_code=error, mechanisms=mechanisms))
