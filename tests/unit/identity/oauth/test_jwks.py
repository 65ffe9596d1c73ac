"""Reading the issuer's keys: files, a web server on loopback, what cannot be read, and how often it is asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kafka_dt.config import ConfigError
from kafka_dt.identity.oauth.jwks import MAX_BYTES, MIN_INTERVAL_MS, Jwks, JwksUnreadable, KeyNotHeld, parse, reader
from kafka_dt.identity.oauth.settings import OAuthBearerSettings
from tests.support.identity.issuer import NOT_HTTP, Issuer, publishing, signing_key

ISSUER = Issuer()


class Header:
    """What `Jwks.select` looks at."""

    def __init__(self, **headers: str) -> None:
        self._headers: dict[str, Any] = headers

    def headers(self) -> dict[str, Any]:
        return self._headers

    def set_kid(self, kid: str) -> None:
        self._headers["kid"] = kid


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


def settings(url: str, **more: Any) -> OAuthBearerSettings:
    return OAuthBearerSettings(jwks_url=url, **more)


async def test_a_file_is_read(executor: ThreadPoolExecutor, tmp_path: Path) -> None:
    path = tmp_path / "with a blank.json"
    path.write_bytes(ISSUER.jwks())
    keys = Jwks(settings(path.as_uri()), executor, lambda: 0)
    await keys.start()
    assert keys.select(Header(alg="RS256", kid="key-1")).kid == "key-1"
    with pytest.raises(KeyNotHeld):
        keys.select(Header(alg="RS256", kid="key-2"))
    with pytest.raises(KeyNotHeld):
        keys.select(Header(alg="ES256", kid="key-1"))
    await keys.close()


@pytest.mark.parametrize("content", [None, b"", b"{}", b"[]", b'{"keys": []}', b'{"keys": {}}', b"x" * (MAX_BYTES + 1)])
async def test_a_file_without_keys_ends_the_start(
    executor: ThreadPoolExecutor, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "jwks.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"^sasl\.oauthbearer\.jwks\.endpoint\.url: .* holds no key"):
        await Jwks(settings(path.as_uri()), executor, lambda: 0).start()


async def test_a_web_server_is_asked_once_until_it_is_time(executor: ThreadPoolExecutor) -> None:
    with publishing(ISSUER.jwks()) as published:
        keys = Jwks(settings(published.url), executor, lambda: 0)
        await keys.start()
        for _ in range(10):
            keys.select(Header(alg="RS256", kid="key-1"))
        assert published.requests == 1
        await keys.close()


async def test_keys_are_read_again_in_time_and_a_failure_keeps_the_old_ones(executor: ThreadPoolExecutor) -> None:
    with publishing(ISSUER.jwks()) as published:
        often = settings(published.url, jwks_refresh_ms=10, jwks_retry_backoff_ms=10, jwks_retry_backoff_max_ms=20)
        keys = Jwks(often, executor, lambda: 0)
        await keys.start()
        published.status = 500
        seen = published.requests
        await until(lambda: published.requests > seen + 2)
        assert holds(keys, "key-1")
        published.body, published.status = Issuer(signing_key("key-2")).jwks(), 200
        await until(lambda: holds(keys, "key-2"))
        assert not holds(keys, "key-1")
        await keys.close()


async def test_a_server_that_is_away_at_the_start_is_tried_again(executor: ThreadPoolExecutor) -> None:
    with publishing(b"") as published:
        published.status = 503
        soon = settings(published.url, jwks_retry_backoff_ms=10)
        keys = Jwks(soon, executor, lambda: 0)
        await keys.start()
        assert not holds(keys, "key-1")
        published.body, published.status = ISSUER.jwks(), 200
        await until(lambda: holds(keys, "key-1"))
        await keys.close()


@pytest.mark.parametrize("wire", NOT_HTTP.values(), ids=NOT_HTTP)
async def test_an_answer_that_is_not_http_ends_neither_the_start_nor_the_refreshing(
    executor: ThreadPoolExecutor, wire: bytes
) -> None:
    with publishing(ISSUER.jwks()) as published:
        published.wire = wire
        keys = Jwks(settings(published.url, jwks_refresh_ms=10, jwks_retry_backoff_ms=10), executor, lambda: 0)
        await keys.start()
        await until(lambda: published.requests > 1)
        published.wire = None
        await until(lambda: holds(keys, "key-1"))
        await keys.close()


async def test_unknown_keys_make_us_ask_once_for_all_and_not_again_soon(executor: ThreadPoolExecutor) -> None:
    now = [0]
    reads = []

    def read() -> bytes:
        reads.append(now[0])
        return ISSUER.jwks()

    keys = Jwks(settings("https://issuer.example/jwks"), executor, lambda: now[0], read=read)
    await keys.start()
    assert await asyncio.gather(*(keys.read_again() for _ in range(50))) == [False] * 50
    now[0] = MIN_INTERVAL_MS
    assert await asyncio.gather(*(keys.read_again() for _ in range(50))) == [True] * 50
    assert await keys.read_again() is False
    assert reads == [0, MIN_INTERVAL_MS]
    now[0] = -3_600_000  # the clock was set back
    assert await keys.read_again() is True
    await keys.close()


async def test_a_client_that_goes_away_does_not_end_what_others_wait_for(executor: ThreadPoolExecutor) -> None:
    keys = Jwks(settings("https://issuer.example/jwks"), executor, lambda: 0, read=ISSUER.jwks)
    first, second = asyncio.create_task(keys.read_again()), asyncio.create_task(keys.read_again())
    await asyncio.sleep(0)
    first.cancel()
    assert await second
    await keys.close()


def test_a_redirect_must_keep_the_scheme() -> None:
    with publishing(ISSUER.jwks()) as target, publishing(b"") as published:
        published.status, published.location = 302, target.url
        assert reader(settings(published.url))() == ISSUER.jwks()
        for elsewhere in ("https://127.0.0.1:1/", "file:///etc/hostname"):
            published.location = elsewhere
            with pytest.raises(JwksUnreadable):
                reader(settings(published.url))()


def test_a_server_that_gives_a_jwks_only_under_its_own_media_type_gives_it() -> None:
    with publishing(ISSUER.jwks()) as published:
        published.media_type = "application/jwk-set+json"
        assert reader(settings(published.url))() == ISSUER.jwks()


def test_a_huge_answer_is_not_read_to_its_end() -> None:
    with publishing(b"x" * (MAX_BYTES + 1)) as published, pytest.raises(JwksUnreadable, match="more than"):
        reader(settings(published.url))()


def test_trust_in_the_server_can_be_set_in_the_jaas_line() -> None:
    broken = settings("https://issuer.example/jwks", jwks_tls={"ssl.truststore.location": "/nowhere.pem"})
    with pytest.raises(ConfigError, match="ssl options for the JWKS"):
        reader(broken)


def test_keys_that_are_not_understood_are_left_out() -> None:
    published = json.loads(ISSUER.jwks())
    strange: list[Any] = [
        {"kty": "AKP", "kid": "post-quantum"},
        {"kty": "RSA", "kid": "half", "n": "AQAB"},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kty": "RSA", "n": 1, "e": 2},
        {"kty": ["RSA"]},
        {"kid": "no type"},
        "text",
        None,
    ]
    published["keys"] = strange + published["keys"]
    assert [key.kid for key in parse(json.dumps(published).encode())] == ["key-1"]


def holds(keys: Jwks, kid: str) -> bool:
    try:
        return keys.select(Header(alg="RS256", kid=kid)).kid == kid
    except KeyNotHeld:
        return False


async def until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - a condition of another thread
            await asyncio.sleep(0.005)
