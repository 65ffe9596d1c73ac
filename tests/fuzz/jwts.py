"""Any bearer token and any set of keys, whatever their issuer wrote: accepted, or refused with one line."""

from __future__ import annotations

import asyncio
import base64
import json
import math
from collections.abc import Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from kafka_dt.identity.mechanisms.oauthbearer import MAX_TIMESTAMP_MS, BearerTokens, Judgement
from kafka_dt.identity.oauth.jwks import Jwks, JwksUnreadable, parse
from kafka_dt.identity.oauth.settings import OAuthBearerSettings
from kafka_dt_protocol.sasl import BearerAccepted, BearerRejected
from tests.support.identity.issuer import AUDIENCE, Issuer, segment

NOW_S: Final = 1_700_000_000
NOW_MS: Final = NOW_S * 1000
ISSUER: Final = Issuer()
UNSIGNED: Final = BearerTokens(OAuthBearerSettings(jwks_url="", allow_unsigned=True), None, lambda: NOW_MS)
HEADER: Final = b'{"alg":"none"}'
_KEYS, _WHOLE_TOKEN, _CLAIMS, _SIGNED_TOKEN = range(4)
"""What the first byte of an input says: the rest is a set of keys, a token, the claims of an unsigned one, or a token
for a listener with the keys of an issuer."""


def with_keys() -> BearerTokens:
    """Give what judges with the keys of the issuer."""
    settings = OAuthBearerSettings(jwks_url="https://issuer.example/jwks.json", expected_audience=(AUDIENCE,))
    with ThreadPoolExecutor(1) as threads:
        keys = Jwks(settings, threads, lambda: NOW_MS, ISSUER.jwks)
        asyncio.run(keys.read_again())
    return BearerTokens(settings, keys, lambda: NOW_MS)


SIGNED: Final = with_keys()


def seeds() -> Iterable[bytes]:
    """Give good claims, claims of odd types, a token and a set of keys."""
    claims: dict[str, Any] = {"sub": "alice", "iat": NOW_S, "exp": NOW_S + 3600, "scope": ["a", "b"], "nbf": NOW_S}
    for changed in ({}, {"exp": 1e300}, {"exp": "1"}, {"sub": "\ud800"}, {"iat": math.nan}, {"scope": "a b"}):
        yield bytes((_CLAIMS,)) + json.dumps(claims | changed).encode()
    yield bytes((_WHOLE_TOKEN,)) + _unsigned(json.dumps(claims).encode())
    yield bytes((_KEYS,)) + ISSUER.jwks()
    signed = ISSUER.token(now_s=NOW_S)
    header, rest = signed.split(".", 1)
    for other in (header, segment({"alg": "RS256"}), segment({"alg": "RS256", "kid": "key-2"}), segment(["alg"])):
        yield bytes((_SIGNED_TOKEN,)) + f"{other}.{rest}".encode()


def check(data: bytes) -> None:
    """Judge one token or read one set of keys."""
    which, content = data[:1], data[1:]
    if not which:
        return
    match which[0] % 4:
        case 0:
            _read_keys(content)
        case 1:
            _judge(UNSIGNED, content)
        case 2:
            _judge(UNSIGNED, _unsigned(content))
        case _:
            _judge(SIGNED, content)


def _read_keys(content: bytes) -> None:
    try:
        assert parse(content), "no error and no key"
    except JwksUnreadable as error:
        assert "\n" not in str(error), "an error of more than one line"


def _judge(tokens: BearerTokens, token: bytes) -> None:
    judgement = tokens.judge(token.decode("ascii", "replace"))
    if not isinstance(judgement, Judgement):
        judgement = _at_once(judgement)
    match judgement.verdict:
        case BearerAccepted(name=name):
            name.encode()
            assert name.strip(), "a principal without a name"
            assert judgement.expiry_timestamp_ms is not None
            assert judgement.expiry_timestamp_ms <= MAX_TIMESTAMP_MS
        case BearerRejected(detail=detail):
            detail.encode()
            assert detail.isprintable(), "a line that is not fit for a log"


def _at_once(judging: Coroutine[Any, Any, Judgement]) -> Judgement:
    """Give the judgement on a token whose key is not held; the keys were read just now, so nothing has to wait."""
    try:
        judging.send(None)
    except StopIteration as end:
        judgement: Judgement = end.value
        return judgement
    raise AssertionError("the keys were read again")


def _unsigned(claims: bytes) -> bytes:
    return b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in (HEADER, claims)) + b"."
