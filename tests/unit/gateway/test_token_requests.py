"""Requests about upstream tokens: to one broker at a time, and past those that do not answer."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.client import (
    Address,
    ConnectionFailed,
    ConnectionLost,
    DelegationToken,
    LoginFailed,
    NoServerReached,
    TokenAuthorizationFailed,
    TokenNotFound,
)
from kafka_dt.gateway.identities import REFUSED_MS
from kafka_dt.gateway.token_requests import AVOIDED_S, MOST_AT_ONCE, MOST_BROKERS, MOST_IDLE, TokenRequests

PATIENCE_S = 0.02
WITHIN_S = 60.0
ALICE = "User:alice"
GATEWAY = "User:gateway"
BROKERS = [Address(f"broker-{number}", 9092) for number in range(1, 5)]
FIRST, SECOND, THIRD, FOURTH = BROKERS


@dataclass
class Cluster:
    """Brokers that can be frozen, each with the requests that it was sent; tokens are shared."""

    now_s: float = 1_000.0
    servers: list[Address] = field(default_factory=lambda: BROKERS[:2])
    frozen: dict[Address, asyncio.Event] = field(default_factory=dict)
    fail: dict[Address, Exception] = field(default_factory=dict)
    asked: list[tuple[Address, str]] = field(default_factory=list)
    tokens: dict[bytes, DelegationToken] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)
    open: list[Address] = field(default_factory=list)
    """Connections."""

    def freeze(self, *brokers: Address) -> None:
        self.frozen |= {broker: asyncio.Event() for broker in brokers}

    def thaw(self, broker: Address) -> None:
        self.frozen.pop(broker).set()

    def asked_of(self, broker: Address) -> list[str]:
        return [what for address, what in self.asked if address == broker]

    def connect(self, address: Address) -> Broker:
        self.open.append(address)
        return Broker(self, address)

    def add(self, owner: str) -> DelegationToken:
        number = next(self.numbers)
        token = DelegationToken(
            token_id=f"token-{number}",
            owner=owner,
            requester=GATEWAY,
            renewers=(),
            issue_timestamp_ms=0,
            expiry_timestamp_ms=1,
            max_timestamp_ms=2,
            hmac=f"hmac-{number}".encode(),
        )
        self.tokens[token.hmac] = token
        return token


@dataclass
class Broker:
    cluster: Cluster
    address: Address

    async def _ask(self, what: str) -> None:
        cluster = self.cluster
        cluster.asked.append((self.address, what))
        if frozen := cluster.frozen.get(self.address):
            await frozen.wait()
        if failure := cluster.fail.get(self.address):
            raise failure

    async def describe(self, owners: Sequence[str]) -> list[DelegationToken]:
        await self._ask("describe")
        return [token for token in self.cluster.tokens.values() if token.owner in owners]

    async def create(self, owner: str, renewers: Sequence[str]) -> DelegationToken:
        await self._ask("create")
        assert renewers == [GATEWAY]
        return self.cluster.add(owner)

    async def renew(self, hmac: bytes) -> int:
        await self._ask("renew")
        assert hmac in self.cluster.tokens
        return 42

    async def expire(self, hmac: bytes) -> int:
        await self._ask("expire")
        if self.cluster.tokens.pop(hmac, None) is None:
            raise TokenNotFound(ErrorCode.delegation_token_not_found, "expire")
        return 0

    async def close(self) -> None:
        self.cluster.open.remove(self.address)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not condition():  # noqa: ASYNC110 - the cluster sends no events
            await asyncio.sleep(PATIENCE_S / 4)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
async def requests(cluster: Cluster) -> AsyncIterator[TokenRequests]:
    requests = TokenRequests(
        cluster.connect,
        lambda: cluster.servers,
        monotonic=lambda: cluster.now_s,
        now_ms=lambda: round(cluster.now_s * 1000),
        patience_s=PATIENCE_S,
    )
    yield requests
    await requests.close()
    assert cluster.open == []


async def test_requests_share_one_connection_while_its_broker_answers(
    cluster: Cluster, requests: TokenRequests
) -> None:
    token = await requests.create(ALICE, [GATEWAY])
    assert await requests.describe([ALICE]) == [token]
    assert await requests.renew(token.hmac) == 42
    assert cluster.asked == [(FIRST, "create"), (FIRST, "describe"), (FIRST, "renew")]
    assert cluster.open == [FIRST]


async def test_a_frozen_broker_holds_up_no_principal(cluster: Cluster, requests: TokenRequests) -> None:
    cluster.freeze(FIRST)
    async with asyncio.timeout(WITHIN_S):
        for number in range(20):
            await requests.describe([f"User:{number}"])
            await requests.create(f"User:{number}", [GATEWAY])
    assert cluster.asked_of(FIRST) == ["describe"]
    assert cluster.asked_of(SECOND) == ["describe", "create"] * 20


async def test_principals_that_come_at_once_pass_a_frozen_broker(cluster: Cluster, requests: TokenRequests) -> None:
    await requests.describe([ALICE])
    cluster.freeze(FIRST)
    async with asyncio.timeout(WITHIN_S):
        await asyncio.gather(*(requests.create(f"User:{number}", [GATEWAY]) for number in range(40)))
    assert len(cluster.asked_of(FIRST)) <= 1 + MOST_AT_ONCE
    assert len(cluster.tokens) == 40


async def test_a_broker_that_was_slow_is_asked_again_after_a_while(cluster: Cluster, requests: TokenRequests) -> None:
    cluster.freeze(FIRST)
    await requests.describe([ALICE])
    cluster.thaw(FIRST)
    await requests.describe([ALICE])
    assert cluster.asked_of(FIRST) == ["describe"]
    cluster.now_s += AVOIDED_S
    cluster.freeze(SECOND)
    await requests.describe([ALICE])
    assert cluster.asked_of(FIRST) == ["describe"] * 2


async def test_the_second_token_of_a_create_at_two_brokers_is_expired(
    cluster: Cluster, requests: TokenRequests
) -> None:
    cluster.freeze(FIRST)
    token = await requests.create(ALICE, [GATEWAY])
    assert list(cluster.tokens) == [token.hmac]
    cluster.thaw(FIRST)
    await until(lambda: cluster.asked_of(FIRST) == ["create", "expire"])
    assert list(cluster.tokens) == [token.hmac]


async def test_a_second_token_that_stays_is_told(
    cluster: Cluster, requests: TokenRequests, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.freeze(FIRST)
    await requests.create(ALICE, [GATEWAY])

    async def refused(*_: object) -> None:
        raise ConnectionLost("broker-1:9092", "it has gone")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Broker, "expire", refused)
        cluster.thaw(FIRST)
        await until(lambda: any("stays until it expires" in line for line in caplog.messages))
    assert not any("hmac" in line for line in caplog.messages)


async def test_changes_that_wait_for_a_controller_hold_up_no_describe(
    requests: TokenRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    await requests.describe([ALICE])
    controller = asyncio.Event()

    async def forwarded(self: Broker, *_: object) -> None:
        await controller.wait()
        raise ConnectionLost(str(self.address), "no controller")

    monkeypatch.setattr(Broker, "create", forwarded)
    creates = [asyncio.create_task(requests.create(f"User:{number}", [GATEWAY])) for number in range(20)]
    async with asyncio.timeout(WITHIN_S):
        for _ in range(20):
            await requests.describe([ALICE])
            await asyncio.sleep(PATIENCE_S / 4)
    controller.set()
    failures = await asyncio.gather(*creates, return_exceptions=True)
    assert all(isinstance(failure, ConnectionLost) for failure in failures)


async def test_so_many_brokers_are_asked_at_once_and_the_first_that_answers_counts(
    cluster: Cluster, requests: TokenRequests
) -> None:
    cluster.servers = BROKERS
    cluster.freeze(*BROKERS)
    waiting = asyncio.create_task(requests.describe([ALICE]))
    await until(lambda: len(cluster.asked) == MOST_BROKERS)
    await asyncio.sleep(2 * PATIENCE_S)
    assert cluster.asked_of(FOURTH) == []
    cluster.thaw(SECOND)
    assert await waiting == []


async def test_a_broker_out_of_reach_is_passed_at_once(cluster: Cluster, requests: TokenRequests) -> None:
    cluster.fail[FIRST] = NoServerReached([("broker-1:9092", "Connection refused")])
    token = await requests.create(ALICE, [GATEWAY])
    assert await requests.describe([ALICE]) == [token]
    assert cluster.asked == [(FIRST, "create"), (SECOND, "create"), (SECOND, "describe")]


async def test_all_brokers_out_of_reach_are_named(cluster: Cluster, requests: TokenRequests) -> None:
    cluster.servers = BROKERS
    for broker in BROKERS:
        cluster.fail[broker] = ConnectionLost(str(broker), "it has gone")
    with pytest.raises(NoServerReached) as caught:
        await requests.describe([ALICE])
    assert [server for server, _ in caught.value.reasons] == [str(broker) for broker in BROKERS]
    cluster.servers = []
    with pytest.raises(ConnectionFailed, match="no address"):
        await requests.describe([ALICE])


async def test_a_create_that_may_have_taken_effect_is_not_repeated(cluster: Cluster, requests: TokenRequests) -> None:
    cluster.fail[FIRST] = ConnectionLost("broker-1:9092", "it has gone")
    with pytest.raises(ConnectionLost):
        await requests.create(ALICE, [GATEWAY])
    assert cluster.asked == [(FIRST, "create")]


async def test_a_refusal_is_an_answer(cluster: Cluster, requests: TokenRequests) -> None:
    refusal = TokenAuthorizationFailed(ErrorCode.delegation_token_authorization_failed, "create")
    cluster.fail[FIRST] = refusal
    with pytest.raises(TokenAuthorizationFailed):
        await requests.create(ALICE, [GATEWAY])
    assert cluster.asked == [(FIRST, "create")]
    assert cluster.open == [FIRST]


async def test_a_refused_login_is_not_tried_again_for_every_principal(
    cluster: Cluster, requests: TokenRequests
) -> None:
    cluster.fail[FIRST] = LoginFailed("broker-1:9092", "PLAIN", "wrong password")
    asked = (requests.describe([f"User:{number}"]) for number in range(100))
    for result in await asyncio.gather(*asked, return_exceptions=True):
        assert isinstance(result, LoginFailed)
    assert cluster.asked == [(FIRST, "describe")]
    cluster.fail.clear()
    cluster.now_s += REFUSED_MS / 1000
    assert await requests.describe([ALICE]) == []


async def test_a_login_that_is_refused_after_a_while_is_tried_as_often_as_requests_run_at_once(
    cluster: Cluster, requests: TokenRequests
) -> None:
    await requests.describe([ALICE])
    cluster.fail[FIRST] = LoginFailed("broker-1:9092", "PLAIN", "wrong password")
    asked = (requests.describe([f"User:{number}"]) for number in range(100))
    await asyncio.gather(*asked, return_exceptions=True)
    assert len(cluster.asked) <= 1 + MOST_AT_ONCE


async def test_few_connections_are_left_when_many_were_needed(cluster: Cluster, requests: TokenRequests) -> None:
    await requests.describe([ALICE])
    cluster.freeze(FIRST, SECOND)
    waiting = [asyncio.create_task(requests.describe([f"User:{number}"])) for number in range(MOST_AT_ONCE)]
    await until(lambda: len(cluster.open) == 2 * MOST_AT_ONCE)
    cluster.thaw(FIRST)
    cluster.thaw(SECOND)
    await asyncio.gather(*waiting)
    await until(lambda: len(cluster.open) == MOST_IDLE)


async def test_connections_to_brokers_that_have_gone_are_closed(cluster: Cluster, requests: TokenRequests) -> None:
    await requests.describe([ALICE])
    cluster.servers = [SECOND]
    await requests.describe([ALICE])
    await until(lambda: cluster.open == [SECOND])


async def test_closing_ends_what_is_under_way(cluster: Cluster, requests: TokenRequests) -> None:
    cluster.freeze(*BROKERS)
    waiting = asyncio.create_task(requests.create(ALICE, [GATEWAY]))
    await until(lambda: len(cluster.asked) == 2)
    await requests.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert cluster.open == []
