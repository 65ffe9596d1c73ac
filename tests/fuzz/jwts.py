"""Any bearer token and any set of keys, whatever their issuer wrote: accepted, or refused with one line."""

from __future__ import annotations

import asyncio
import base64
import json
import math
from collections.abc import Iterable
from typing import Any, Final

from kafka_dt.identity.mechanisms.oauthbearer import MAX_TIMESTAMP_MS, BearerTokens
from kafka_dt.identity.oauth.jwks import JwksUnreadable, parse
from kafka_dt.identity.oauth.settings import OAuthBearerSettings
from kafka_dt_protocol.sasl import BearerAccepted, BearerRejected
from tests.support.identity.issuer import Issuer

NOW_S: Final = 1_700_000_000
TOKENS: Final = BearerTokens(OAuthBearerSettings(jwks_url="", allow_unsigned=True), None, lambda: NOW_S * 1000)
HEADER: Final = b'{"alg":"none"}'
_KEYS, _WHOLE_TOKEN, _CLAIMS = range(3)
"""What the first byte of an input says: the rest is a set of keys, a token, or the claims of an unsigned one."""


def seeds() -> Iterable[bytes]:
    """Give good claims, claims of odd types, a token and a set of keys."""
    claims: dict[str, Any] = {"sub": "alice", "iat": NOW_S, "exp": NOW_S + 3600, "scope": ["a", "b"], "nbf": NOW_S}
    for changed in ({}, {"exp": 1e300}, {"exp": "1"}, {"sub": "\ud800"}, {"iat": math.nan}, {"scope": "a b"}):
        yield bytes((_CLAIMS,)) + json.dumps(claims | changed).encode()
    yield bytes((_WHOLE_TOKEN,)) + _unsigned(json.dumps(claims).encode())
    yield bytes((_KEYS,)) + Issuer().jwks()


def check(data: bytes) -> None:
    """Judge one token or read one set of keys."""
    which, content = data[:1], data[1:]
    if not which:
        return
    match which[0] % 3:
        case 0:
            _read_keys(content)
        case 1:
            _judge(content)
        case _:
            _judge(_unsigned(content))


def _read_keys(content: bytes) -> None:
    try:
        assert parse(content), "no error and no key"
    except JwksUnreadable as error:
        assert "\n" not in str(error), "an error of more than one line"


def _judge(token: bytes) -> None:
    judgement = TOKENS.judge(token.decode("ascii", "replace"))
    assert not asyncio.iscoroutine(judgement), "there are no keys to be read"
    match judgement.verdict:
        case BearerAccepted(name=name):
            name.encode()
            assert name.strip(), "a principal without a name"
            assert judgement.expiry_timestamp_ms is not None
            assert judgement.expiry_timestamp_ms <= MAX_TIMESTAMP_MS
        case BearerRejected(detail=detail):
            detail.encode()
            assert detail.isprintable(), "a line that is not fit for a log"


def _unsigned(claims: bytes) -> bytes:
    return b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in (HEADER, claims)) + b"."
