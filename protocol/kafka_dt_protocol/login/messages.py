"""The messages of a login: what the requests say, and the answers that every login gets.

Clients of one library open every connection with the same ApiVersions and the same SaslHandshake, so what these say is
remembered; of a SaslAuthenticate only the bytes of the mechanism are wanted. The general decoder judges a body that has
another form. To make the answers of entities cost as much as the SCRAM arithmetic, so the `encode_` functions make the
content of a frame without one; tests compare it with the encoded entities in every version.

Source: Kafka protocol guide, "SaslHandshake", "SaslAuthenticate"; KIP-368 (session lifetime), KIP-482, KIP-511.
"""

from __future__ import annotations

import re
from functools import lru_cache
from struct import Struct
from typing import Any, Final, Protocol

from kio.schema.errors import ErrorCode

from kafka_dt_protocol.api.registry import APIS, ApiKey, response_type
from kafka_dt_protocol.api.responses import build
from kafka_dt_protocol.api.table import ApiTable
from kafka_dt_protocol.errors import RemoteProtocolError, UnsupportedVersion
from kafka_dt_protocol.login.authentication import Request
from kafka_dt_protocol.wire.decoding import decode
from kafka_dt_protocol.wire.encoding import encode, encode_varint
from kafka_dt_protocol.wire.headers import RequestHeader, parse_request_header
from kafka_dt_protocol.wire.times import to_duration

FIRST_WITH_SOFTWARE: Final = 3
"""The version of ApiVersions from which on a client says what it is (KIP-511)."""

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""KIP-511: what a client may call itself."""

_FIRST_WITH_LIFETIME: Final = 1
"""Version of SaslAuthenticate, as the next."""
_FIRST_FLEXIBLE: Final = 2
_MORE: Final = 0x80
_NO_TAGGED_FIELDS: Final = 0
_REMEMBERED_BYTES: Final = 128
"""Longer bodies are not remembered; real ones have about 30."""
_MOST_REMEMBERED: Final = 256
"""Of each kind; there are more only in a program with very many listeners."""
_LENGTH: Final = Struct(">i")
_CORRELATION_ID: Final = Struct(">i")
_NO_ERROR: Final = Struct(">ihhi")
"""Correlation id, no error, an empty message, the length of the bytes."""
_FLEXIBLE_NO_ERROR: Final = Struct(">ibhb")
"""Correlation id, no tagged fields, no error, an empty message (whose length counts from 1)."""
_LIFETIME: Final = Struct(">q")
_LIFETIME_AND_TAGS: Final = Struct(">qb")


def decode_body(kind: Request, header: RequestHeader, content: bytes, offset: int, apis: ApiTable) -> Any:
    """Read the body of a request; of a SaslAuthenticate only the bytes of the mechanism."""
    match kind:
        case Request.TOKEN:
            return decode_token(header.api_version, content, offset)
        case Request.OTHER:
            api = apis.rows[header.api_key]
            body, _ = decode(api.request[header.api_version], content, offset, max_elements=api.max_elements)
            return body
        case _:
            return decode_opening(header.api_key, header.api_version, content, offset)


def decode_opening(api_key: int, api_version: int, content: bytes, offset: int) -> Any:
    """Read the body of an ApiVersions or a SaslHandshake; raises MalformedMessage if it is none."""
    body = content[offset:]
    return (_remembered if len(body) <= _REMEMBERED_BYTES else _decoded)(api_key, api_version, body)


def decode_token(api_version: int, content: bytes, offset: int) -> bytes:
    """Read the mechanism's bytes out of the body of a SaslAuthenticate; raises MalformedMessage if it is none."""
    token = _flexible_token(content, offset) if api_version >= _FIRST_FLEXIBLE else _token(content, offset)
    if token is None:
        token = _decoded(ApiKey.SASL_AUTHENTICATE, api_version, content[offset:]).auth_bytes
    return token


def _token(content: bytes, offset: int) -> bytes | None:
    """Give the bytes if nothing else is in the body."""
    start = offset + _LENGTH.size
    usual = start <= len(content) and _LENGTH.unpack_from(content, offset)[0] == len(content) - start
    return content[start:] if usual else None


def _flexible_token(content: bytes, offset: int) -> bytes | None:
    """Give the bytes if nothing else is in the body, and there are fewer than 16 KiB."""
    end = len(content) - 1
    if end < offset + 2 or content[end] != _NO_TAGGED_FIELDS:
        return None
    length, start = content[offset], offset + 1
    if length >= _MORE:
        # A second byte of 128 or more makes a length beyond the end.
        length += (content[start] << 7) - _MORE
        start += 1
    return content[start:end] if length - 1 == end - start else None


def _decoded(api_key: int, api_version: int, body: bytes) -> Any:
    api = APIS[ApiKey(api_key)]
    return decode(api.request[api_version], body, max_elements=api.max_elements)[0]


_remembered: Final = lru_cache(_MOST_REMEMBERED)(_decoded)


def has_header(content: bytes, apis: ApiTable) -> bool:
    """Say whether a broken first request is a request at all: what is none counts as one of the wrong kind."""
    try:
        parse_request_header(content, apis)
    except UnsupportedVersion as error:
        return error.api_key == ApiKey.SASL_HANDSHAKE
    except RemoteProtocolError:
        return False
    return True


def names_its_software(body: Any) -> bool:
    """Say whether the client's name and version in an ApiVersions are such as KIP-511 allows."""
    return bool(_SOFTWARE.fullmatch(body.client_software_name) and _SOFTWARE.fullmatch(body.client_software_version))


class VersionsOffered(Protocol):
    """Says what ApiVersions is answered with: an `ApiTable`, or what a gateway offers."""

    def body(self, api_version: int) -> bytes:
        """Give the body of an answer without error, in one of the versions of the registry."""
        ...


def encode_versions(correlation_id: int, body: bytes) -> bytes:
    """Make the answer to ApiVersions; its header is the same in all versions."""
    return _CORRELATION_ID.pack(correlation_id) + body


def encode_handshake(api_version: int, correlation_id: int, error: ErrorCode, mechanisms: tuple[str, ...]) -> bytes:
    """Make the answer to SaslHandshake: whether the mechanism that was asked for is offered, and which ones are."""
    return _CORRELATION_ID.pack(correlation_id) + _handshake_body(api_version, error, mechanisms)


@lru_cache(_MOST_REMEMBERED)
def _handshake_body(api_version: int, error: ErrorCode, mechanisms: tuple[str, ...]) -> bytes:
    response = APIS[ApiKey.SASL_HANDSHAKE].response[api_version]
    return encode(response(error_code=error, mechanisms=mechanisms))


def encode_token_answer(api_version: int, correlation_id: int, message: bytes, session_lifetime_ms: int) -> bytes:
    """Make the answer to a SaslAuthenticate that did not fail.

    Args:
        api_version: of the request.
        correlation_id: of the request.
        message: the mechanism's, may be empty.
        session_lifetime_ms: milliseconds, 0 for a session without end and while the exchange goes on.
    """
    if api_version >= _FIRST_FLEXIBLE:
        start = _FLEXIBLE_NO_ERROR.pack(correlation_id, 0, 0, 1) + encode_varint(len(message) + 1)
        return start + message + _LIFETIME_AND_TAGS.pack(session_lifetime_ms, 0)
    answer = _NO_ERROR.pack(correlation_id, 0, 0, len(message)) + message
    return answer + _LIFETIME.pack(session_lifetime_ms) if api_version >= _FIRST_WITH_LIFETIME else answer


def failed_login(header: RequestHeader, message: str) -> Any:
    """Make the entity of the answer to the SaslAuthenticate that fails."""
    return build(
        response_type(header),
        error_code=ErrorCode.sasl_authentication_failed,
        error_message=message,
        auth_bytes=b"",
        session_lifetime=to_duration(0),
    )
