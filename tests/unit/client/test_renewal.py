"""Renewal: when it renews, how it retries, when it ends; on a clock that only its own sleeping moves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.client import (
    DelegationToken,
    EndReason,
    NoServerReached,
    Renewal,
    RenewalEnd,
    TokenClient,
    TokenClientError,
    TokenNotFound,
)
from kafka_dt.client.errors import refused
from kafka_dt_protocol.api.registry import ApiKey
from tests.support.protocol.scripted_server import ScriptedServer
from tests.unit.client.conftest import TOKEN, expiry

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
START_MS = 1_800_000_000_000
FRESH = replace(TOKEN, expiry_timestamp_ms=START_MS + DAY_MS, max_timestamp_ms=START_MS + 7 * DAY_MS)
UNREACHED = NoServerReached([("a:1", "Connection refused")])


class Scene:
    """A clock, a server that answers renewals as scripted, and what the callbacks were told."""

    def __init__(self, *failures: TokenClientError, max_timestamp_ms: int = FRESH.max_timestamp_ms) -> None:
        self.now_ms = START_MS
        self.failures = list(failures)
        self.max_timestamp_ms = max_timestamp_ms
        self.asked_at: list[int] = []
        self.renewed: list[DelegationToken] = []
        self.ended: list[RenewalEnd] = []
        self.over = asyncio.Event()

    async def renew(self, hmac: bytes, period_ms: int) -> int:
        assert (hmac, period_ms) == (TOKEN.hmac, -1)
        self.asked_at.append(self.now_ms)
        if self.failures:
            raise self.failures.pop(0)
        return min(self.now_ms + DAY_MS, self.max_timestamp_ms)

    async def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now_ms += round(seconds * 1000)
        await asyncio.sleep(0)

    async def play(self, token: DelegationToken = FRESH, jitter: float = 0.0) -> Renewal:
        renewal = self.renewal(token, jitter)
        async with asyncio.timeout(60), renewal:
            await self.over.wait()
        return renewal

    def _end(self, end: RenewalEnd) -> None:
        self.ended.append(end)
        self.over.set()

    def renewal(self, token: DelegationToken, jitter: float = 0.0) -> Renewal:
        return Renewal(
            token,
            self.renew,
            on_renewed=self.renewed.append,
            on_end=self._end,
            now_ms=lambda: self.now_ms,
            sleep=self.sleep,
            jitter=lambda: jitter,
        )


@pytest.mark.parametrize(("jitter", "share"), [(0.0, 0.75), (0.5, 0.775), (1.0, 0.80)])
async def test_the_first_renewal_is_at_75_to_80_percent_of_what_is_left(jitter: float, share: float) -> None:
    scene = Scene()
    await scene.play(jitter=jitter)
    assert scene.asked_at[0] == START_MS + round(share * DAY_MS)


async def test_renewals_go_on_until_the_maximum_lifetime() -> None:
    scene = Scene()
    renewal = await scene.play()
    assert scene.renewed[-1].expiry_timestamp_ms == FRESH.max_timestamp_ms
    assert renewal.token == scene.renewed[-1]
    assert scene.ended == [RenewalEnd(EndReason.MAX_LIFETIME, renewal.token)]
    assert len(scene.asked_at) == 8
    assert scene.now_ms < FRESH.max_timestamp_ms


async def test_a_token_at_its_maximum_is_not_renewed() -> None:
    scene = Scene()
    renewal = await scene.play(replace(FRESH, expiry_timestamp_ms=FRESH.max_timestamp_ms))
    assert scene.asked_at == []
    assert renewal.end is not None
    assert renewal.end.reason is EndReason.MAX_LIFETIME


async def test_failures_that_may_pass_are_retried_with_longer_and_longer_waits() -> None:
    scene = Scene(*[UNREACHED] * 9)
    await scene.play(jitter=1.0)
    waits = [later - earlier for earlier, later in zip(scene.asked_at[:10], scene.asked_at[1:10], strict=False)]
    assert waits == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]
    assert scene.renewed


async def test_the_waits_of_many_clients_differ() -> None:
    early, late = Scene(UNREACHED), Scene(UNREACHED)
    await early.play(jitter=0.0)
    await late.play(jitter=1.0)
    assert early.asked_at[1] - early.asked_at[0] == 500
    assert late.asked_at[1] - late.asked_at[0] == 1_000


async def test_it_ends_when_the_token_expires_before_a_renewal_succeeds() -> None:
    scene = Scene(*[UNREACHED] * 10_000)
    renewal = await scene.play()
    assert renewal.end == RenewalEnd(EndReason.EXPIRED, FRESH, UNREACHED)
    assert scene.ended == [renewal.end]
    assert FRESH.expiry_timestamp_ms <= scene.now_ms < FRESH.expiry_timestamp_ms + 1_000
    assert scene.asked_at[-1] < FRESH.expiry_timestamp_ms


async def test_an_expired_token_is_not_asked_for() -> None:
    scene = Scene()
    renewal = await scene.play(replace(FRESH, expiry_timestamp_ms=START_MS - 1))
    assert scene.asked_at == []
    assert renewal.end is not None
    assert renewal.end.reason is EndReason.EXPIRED


@pytest.mark.parametrize("code", [62, 63, 66])
async def test_a_final_refusal_ends_it(code: int) -> None:
    error = refused(ErrorCode(code), "renew")
    scene = Scene(UNREACHED, error)
    renewal = await scene.play()
    assert renewal.end == RenewalEnd(EndReason.REFUSED, FRESH, error)
    assert len(scene.asked_at) == 2


async def test_a_renewal_that_does_not_move_the_expiry_does_not_spin() -> None:
    scene = Scene(max_timestamp_ms=START_MS + DAY_MS)
    renewal = await scene.play(FRESH)
    assert len(scene.asked_at) < 200
    assert renewal.end is not None


async def test_leaving_the_block_stops_it() -> None:
    scene = Scene()

    async def for_ever(_seconds: float) -> None:
        await asyncio.Event().wait()

    renewal = Renewal(FRESH, scene.renew, now_ms=lambda: scene.now_ms, sleep=for_ever)
    async with renewal:
        await asyncio.sleep(0)
    assert renewal.end is None
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("which", ["on_renewed", "on_end"])
async def test_what_a_callback_raises_comes_out_of_the_block(which: str) -> None:
    scene = Scene()
    called = asyncio.Event()

    def broken(_what: object) -> None:
        called.set()
        raise ZeroDivisionError

    callbacks: dict[str, Callable[[object], object]] = {which: broken}
    renewal = Renewal(FRESH, scene.renew, now_ms=lambda: scene.now_ms, sleep=scene.sleep, **callbacks)  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError):
        async with renewal:
            await asyncio.wait_for(called.wait(), 60)


@pytest.mark.usefixtures("steady_time")
async def test_a_client_keeps_its_token_renewed(server: ScriptedServer) -> None:
    """A token whose time has come is renewed over the wire until it reaches its maximum."""
    now_ms = time.time_ns() // 1_000_000
    token = replace(TOKEN, expiry_timestamp_ms=now_ms + HOUR_MS, max_timestamp_ms=now_ms + DAY_MS)
    server.scripts[ApiKey.RENEW_DELEGATION_TOKEN] = lambda _header, _request: expiry(token.max_timestamp_ms)
    ended = asyncio.Event()
    ends: list[RenewalEnd] = []

    def on_end(end: RenewalEnd) -> None:
        ends.append(end)
        ended.set()

    async with (
        TokenClient.from_config({"bootstrap.servers": server.address}) as client,
        client.keep_renewed(token, on_end=on_end) as renewal,
    ):
        await ended.wait()
    assert ends[0].reason is EndReason.MAX_LIFETIME
    assert renewal.token.expiry_timestamp_ms == token.max_timestamp_ms


@pytest.mark.usefixtures("steady_time")
async def test_a_client_tells_why_a_token_cannot_be_kept(server: ScriptedServer) -> None:
    server.scripts[ApiKey.RENEW_DELEGATION_TOKEN] = lambda _header, _request: {
        **expiry(-1),
        "error_code": ErrorCode.delegation_token_not_found,
    }
    now_ms = time.time_ns() // 1_000_000
    token = replace(TOKEN, expiry_timestamp_ms=now_ms + HOUR_MS, max_timestamp_ms=now_ms + DAY_MS)
    ended: asyncio.Future[RenewalEnd] = asyncio.get_running_loop().create_future()
    async with (
        TokenClient.from_config({"bootstrap.servers": server.address}) as client,
        client.keep_renewed(token, on_end=ended.set_result),
    ):
        end = await ended
    assert end.reason is EndReason.REFUSED
    assert isinstance(end.error, TokenNotFound)
