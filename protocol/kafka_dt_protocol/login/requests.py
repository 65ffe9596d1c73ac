"""The requests of a login, read without the general decoder where they have the form that clients give them.

Clients of one library open every connection with the same ApiVersions and the same SaslHandshake, so what these say is
remembered; of a SaslAuthenticate only the bytes of the mechanism are wanted. What has another form is left to the
general decoder, which judges it.

Source: Kafka protocol guide, "SaslHandshake", "SaslAuthenticate"; KIP-482, KIP-511.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Any, Final

from kafka_dt_protocol.api.registry import APIS, ApiKey
from kafka_dt_protocol.wire.decoding import decode

_LENGTH: Final = Struct(">i")
_FIRST_FLEXIBLE: Final = 2
"""Version of SaslAuthenticate."""
_MORE: Final = 0x80
_NO_TAGGED_FIELDS: Final = 0
_REMEMBERED_BYTES: Final = 128
"""Longer bodies are not remembered; real ones have about 30."""
_MOST_REMEMBERED: Final = 256


def decode_opening(api_key: int, api_version: int, content: bytes, offset: int) -> Any:
    """Read the body of an ApiVersions or a SaslHandshake.

    Args:
        api_key: which of them.
        api_version: one of the registry's.
        content: of the frame.
        offset: where the body begins in it.

    Raises:
        MalformedMessage: it is none.
    """
    body = content[offset:]
    return (_remembered if len(body) <= _REMEMBERED_BYTES else _decoded)(api_key, api_version, body)


def decode_token(api_version: int, content: bytes, offset: int) -> bytes:
    """Read the mechanism's bytes out of the body of a SaslAuthenticate.

    Args:
        api_version: one of the registry's.
        content: of the frame.
        offset: where the body begins in it.

    Raises:
        MalformedMessage: it is none.
    """
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
