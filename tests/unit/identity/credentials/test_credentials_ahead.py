"""Credentials of new tokens are derived in idle time, the newest first, once for all workers, not for ended tokens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, cast

import pytest

from kafka_dt.identity.credentials import ahead as ahead_module
from kafka_dt.identity.credentials.ahead import CredentialsAhead
from kafka_dt.identity.credentials.derivation import Salts, TokenCredentials
from kafka_dt.identity.credentials.shared import MEMORY_BYTES, SharedCredentials
from kafka_dt.idle import IdleTime
from kafka_dt.tokens import Keyring, SecretKey, StoredToken, Token, TokenCache
from kafka_dt_protocol.sasl import ScramCredential, ScramMechanism
from tests.support.tokens.store_contract import new_token

pytestmark = pytest.mark.usefixtures("steady_time")

SHA_256, SHA_512 = ScramMechanism
KEY, NEXT_KEY = SecretKey("the key of new tokens"), SecretKey("the next one")


class Node:
    """What the workers of a node have in common: memory, tokens, and idle time that the test gives."""

    def __init__(self, executor: ThreadPoolExecutor) -> None:
        self.keyring = Keyring(KEY)
        self.memory = bytearray(MEMORY_BYTES)
        self.executor = executor
        self.turns = asyncio.Semaphore(0)
        self.derived: list[tuple[ScramMechanism, bytes]] = []
        self.workers: list[Worker] = []
        self.work_s = 0.0

    def derive(self, mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> ScramCredential:
        self.derived.append((mechanism, password.encode()))
        return ScramCredential(salt, bytes(mechanism.hash_bytes), bytes(mechanism.hash_bytes), iterations)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        await self.turns.acquire()
        yield

    async def run(self, work: Callable[[], Any]) -> Any:
        if self.work_s:
            await asyncio.sleep(self.work_s)
        return work()

    def tell(self, token: Token) -> None:
        for worker in self.workers:
            worker.cache.put(StoredToken(token))

    async def idle(self, turns: int = 100) -> None:
        """Let all workers derive."""
        for _ in range(turns):
            self.turns.release()
        for _ in range(20):
            await asyncio.sleep(0)
        await asyncio.sleep(ahead_module.HEAD_START_S)  # then workers derive for each other
        for _ in range(20 * turns):
            await asyncio.sleep(0)

    def close(self) -> None:
        for worker in self.workers:
            worker.ahead.close()


class Worker:
    def __init__(self, node: Node, mechanisms: tuple[ScramMechanism, ...], number: int, workers: int) -> None:
        self.cache = TokenCache(node.keyring)
        self.credentials = TokenCredentials(
            Salts(b"secret"),
            node.executor,
            known=self.cache.get,
            shared=SharedCredentials(node.memory),
            derive=node.derive,
        )
        self.ahead = CredentialsAhead(
            self.credentials, self.cache.get, mechanisms, cast("IdleTime", node), number=number, workers=workers
        )
        self.cache.on_change(self.ahead.token_changed)

    def finds(self, token: Token, mechanism: ScramMechanism = SHA_256) -> bool:
        held = self.cache.get(token.token_id)
        assert held is not None
        return self.credentials.find(mechanism, held) is not None


@pytest.fixture
def make() -> Iterator[Callable[..., Node]]:
    made: list[Node] = []
    with ThreadPoolExecutor(1) as executor:

        def node(workers: int = 1, mechanisms: tuple[ScramMechanism, ...] = (SHA_256,)) -> Node:
            made.append(Node(executor))
            made[-1].workers = [Worker(made[-1], mechanisms, number, workers) for number in range(workers)]
            return made[-1]

        yield node
        for each in made:
            each.close()


def token_of(key: SecretKey = KEY) -> Token:
    return new_token(key_id=key.id)


def tokens_of(worker: Worker, count: int) -> list[Token]:
    """Make tokens that belong to a worker."""
    made = (token_of() for _ in iter(int, 1))
    return list(islice((token for token in made if worker.ahead._turn(token.token_id) == 0), count))


async def test_a_login_with_a_new_token_derives_nothing_after_idle_time(make: Callable[..., Node]) -> None:
    node = make(mechanisms=tuple(ScramMechanism))
    token = token_of()
    node.tell(token)
    assert not node.workers[0].finds(token)
    await node.idle()
    assert [mechanism for mechanism, _ in node.derived] == [SHA_256, SHA_512]
    assert all(node.workers[0].finds(token, mechanism) for mechanism in ScramMechanism)


async def test_without_idle_time_nothing_is_derived(make: Callable[..., Node]) -> None:
    node = make()
    node.tell(token_of())
    await node.idle(0)
    await asyncio.sleep(0)
    assert node.derived == []


async def test_mechanisms_that_no_listener_has_are_not_derived(make: Callable[..., Node]) -> None:
    node = make(mechanisms=())
    node.tell(token_of())
    await node.idle()
    assert node.derived == []


async def test_the_newest_comes_first(make: Callable[..., Node]) -> None:
    node = make()
    tokens = [token_of() for _ in range(4)]
    for token in tokens:
        node.tell(token)
    await node.idle(2)
    assert [node.workers[0].finds(token) for token in tokens] == [False, False, True, True]


async def test_the_oldest_are_left_to_their_logins_when_too_many_wait(
    make: Callable[..., Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead_module, "MOST_WAITING", 2)
    node = make()
    tokens = [token_of() for _ in range(4)]
    for token in tokens:
        node.tell(token)
    await node.idle()
    assert [node.workers[0].finds(token) for token in tokens] == [False, False, True, True]


async def test_each_token_is_derived_once_a_node_and_found_by_all_workers(make: Callable[..., Node]) -> None:
    node = make(workers=3)
    tokens = [token_of() for _ in range(20)]
    for token in tokens:
        node.tell(token)
    await node.idle()
    assert len(node.derived) == len(set(node.derived)) == len(tokens)
    assert all(worker.finds(token) for worker in node.workers for token in tokens)


async def test_one_idle_worker_derives_for_those_that_are_busy(make: Callable[..., Node]) -> None:
    node = make(workers=2)
    idle, busy = node.workers
    busy.ahead.close()
    tokens = [token_of() for _ in range(10)]
    for token in tokens:
        idle.cache.put(StoredToken(token))
    await node.idle()
    assert all(idle.finds(token) for token in tokens)


@pytest.mark.parametrize(("tokens", "head_start_s"), [(1, 0.5), (300, 0.01)])
async def test_idle_workers_rarely_derive_the_same_tokens_of_one_that_is_absent(
    make: Callable[..., Node], monkeypatch: pytest.MonkeyPatch, tokens: int, head_start_s: float
) -> None:
    monkeypatch.setattr(ahead_module, "HEAD_START_S", head_start_s)
    node = make(workers=3)
    node.work_s = 0.001  # the second one begins before the first one has derived 300
    absent, *present = node.workers
    absent.ahead.close()
    for token in tokens_of(absent, tokens):
        for worker in present:
            worker.cache.put(StoredToken(token))
    await node.idle(3 * tokens)
    for worker in present:
        assert worker.ahead._deriving is not None
        await worker.ahead._deriving
    assert len(set(node.derived)) == tokens
    assert len(node.derived) <= 1.2 * tokens


async def test_a_worker_that_is_closed_derives_no_token_that_comes_later(make: Callable[..., Node]) -> None:
    node = make()
    node.workers[0].ahead.close()
    node.tell(token_of())
    await node.idle()
    assert node.derived == []


async def test_what_a_login_has_derived_the_other_workers_find(make: Callable[..., Node]) -> None:
    node = make(workers=2)
    here, there = node.workers
    token = token_of()
    node.tell(token)
    held = here.cache.get(token.token_id)
    assert held is not None
    await here.credentials.derive(SHA_256, held)
    assert there.finds(token)
    await node.idle()
    assert len(node.derived) == 1


async def test_nothing_is_left_of_a_token_that_ends(make: Callable[..., Node]) -> None:
    node = make(workers=2)
    token = token_of()
    node.tell(token)
    await node.idle()
    assert any(node.memory)
    for worker in node.workers:
        worker.cache.remove(token.token_id)
    assert not any(node.memory)


async def test_a_token_that_ends_while_it_waits_is_not_derived(make: Callable[..., Node]) -> None:
    node = make()
    ended, stays = token_of(), token_of()
    for token in (stays, ended):
        node.tell(token)
    node.workers[0].cache.remove(ended.token_id)
    await node.idle()
    assert len(node.derived) == 1
    assert node.workers[0].finds(stays)


async def test_a_token_that_ends_while_it_is_derived_is_not_shared(make: Callable[..., Node]) -> None:
    node = make()
    token = token_of()
    node.tell(token)
    derive = node.workers[0].credentials._derive

    def ends(*of_what: Any) -> ScramCredential:
        node.workers[0].cache.remove(token.token_id)
        return derive(*of_what)

    node.workers[0].credentials._derive = ends
    await node.idle()
    assert len(node.derived) == 1
    assert not any(node.memory)


async def test_a_token_of_another_key_is_another_token(make: Callable[..., Node]) -> None:
    node = make()
    token = token_of()
    node.tell(token)
    await node.idle()
    node.keyring.replace(NEXT_KEY, ())
    node.tell(replace(token, key_id=NEXT_KEY.id))
    assert not node.workers[0].finds(token)
    await node.idle()
    assert node.workers[0].finds(token)
    assert len(set(node.derived)) == 2


async def test_a_renewed_token_is_not_derived_again(make: Callable[..., Node]) -> None:
    node = make()
    token = token_of()
    node.tell(token)
    await node.idle()
    node.tell(token.expiring_at(token.expiry_timestamp_ms + 1))
    await node.idle()
    assert len(node.derived) == 1


async def test_a_token_that_comes_while_others_wait_for_idle_time_is_the_newest(make: Callable[..., Node]) -> None:
    node = make()
    tokens = [token_of() for _ in range(2)]
    for token in tokens:
        node.tell(token)
        await asyncio.sleep(0)  # it waits for idle time now
    await node.idle(1)
    assert [node.workers[0].finds(token) for token in tokens] == [False, True]


async def test_a_worker_keeps_credentials_of_its_own_only_for_logins(make: Callable[..., Node]) -> None:
    node = make(workers=2)
    token = token_of()
    node.tell(token)
    await node.idle()
    assert [len(worker.credentials._derived) for worker in node.workers] == [0, 0]
    assert node.workers[0].finds(token)
    assert [len(worker.credentials._derived) for worker in node.workers] == [1, 0]
