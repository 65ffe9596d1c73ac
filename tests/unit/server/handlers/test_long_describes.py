"""Describing many tokens leaves the event loop to others, and ends with the client that asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from kafka_dt.config import Endpoint, SecurityProtocol
from kafka_dt.server.handlers import RequestContext, dispatcher
from kafka_dt.tokens import Principal, StoredToken, Token
from kafka_dt.tokens.sharing import BATCH, LONG_ITEMS, SHORT_ITEMS, SLICE_S
from kafka_dt_protocol import APIS, ApiKey, RequestHeader, build, element_type
from tests.support.identity.authorization import authorizer
from tests.support.server.fake_transport import turns
from tests.support.server.parts import token_handlers
from tests.support.tokens.nodes import ALICE, DAY, START, Cluster, Node

DESCRIBE = ApiKey.DESCRIBE_DELEGATION_TOKEN
REQUEST = APIS[DESCRIBE].request[3]
TOKENS = 2 * LONG_ITEMS
OWNERS = [Principal.user(f"owner-{number}") for number in range(25)]


class Clock:
    """Time passes with each look at it, so that a batch of items takes half a slice."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return self.looks * SLICE_S / 2


class Server:
    """The handler of describe on a node with many tokens."""

    def __init__(self) -> None:
        self.node: Node = Cluster().node()
        for number in range(TOKENS):
            owner = OWNERS[number % len(OWNERS)]
            token = Token(f"token-{number:05}", owner, owner, (), START, START + DAY, START + DAY)
            self.node.cache.put(StoredToken(token, version=0, revision=number + 1))
        self.clock = Clock()
        self._describe = dispatcher(token_handlers(self.node, authorizer(enabled=False), self.clock))
        self.ends_with_client = 0

    def describe(self, *owners: Principal, everyone: bool = True) -> asyncio.Task[Any]:
        owner = element_type(REQUEST, "owners")
        named = tuple(owner(principal_type=each.type, principal_name=each.name) for each in owners)
        body = build(REQUEST, owners=None if everyone and not owners else named)
        return asyncio.create_task(self._ask(body))

    async def _ask(self, body: Any) -> Any:
        context = RequestContext(
            header=RequestHeader(DESCRIBE, 3, 1, "test"),
            principal=ALICE,
            client_host="127.0.0.1",
            token_login=False,
            security_protocol=SecurityProtocol.SASL_PLAINTEXT,
            endpoint=Endpoint("SASL_PLAINTEXT", "localhost", 9092),
            end_with_client=self._end_with_client,
        )
        return await self._describe(context, body)

    def _end_with_client(self) -> None:
        self.ends_with_client += 1


@pytest.fixture
def server() -> Server:
    return Server()


async def test_between_two_turns_of_the_loop_a_describe_works_for_one_slice(server: Server) -> None:
    task = server.describe()
    looks = [0]
    while not task.done():
        await asyncio.sleep(0)
        looks.append(server.clock.looks)
    assert len((await task).tokens) == TOKENS
    batches = TOKENS // BATCH
    a_turn = [after - before for before, after in pairwise(looks)]
    assert max(a_turn) <= 4, "a slice is two batches"
    assert sum(map(bool, a_turn)) >= batches // 3


async def most_looks_in_a_turn(server: Server, tasks: Sequence[asyncio.Task[Any]]) -> int:
    """Wait for all tasks; return how often one turn of the loop looked at the clock, at the most."""
    most = 0
    while not all(task.done() for task in tasks):
        before = server.clock.looks
        await asyncio.sleep(0)
        most = max(most, server.clock.looks - before)
    return most


async def test_however_many_describes_are_asked_for_few_work_in_one_turn_of_the_loop(server: Server) -> None:
    tasks = [server.describe() for _ in range(20)]
    assert await most_looks_in_a_turn(server, tasks) <= 4
    assert {len((await task).tokens) for task in tasks} == {TOKENS}


@pytest.mark.parametrize("owners", [1, 5])
async def test_a_shorter_describe_does_not_wait_for_long_ones(server: Server, owners: int) -> None:
    long = [server.describe() for _ in range(20)]
    await turns(5)
    shorter = server.describe(*OWNERS[:owners])
    assert len((await shorter).tokens) == owners * TOKENS // len(OWNERS)
    assert sum(task.done() for task in long) <= 1
    for task in long:
        task.cancel()


async def test_many_describes_that_are_not_long_work_one_after_the_other(server: Server) -> None:
    tasks = [server.describe(*OWNERS[:5]) for _ in range(50)]
    assert 5 * TOKENS // len(OWNERS) > SHORT_ITEMS
    assert await most_looks_in_a_turn(server, tasks) <= 4


async def test_a_store_that_does_not_answer_holds_up_no_describe_behind_another(server: Server) -> None:
    """All of them wait for its answer together, and none of them has a place meanwhile."""
    asked = server.node.store.catch_ups
    tasks = [server.describe() for _ in range(20)]
    for task in tasks:
        await task
    assert server.node.store.catch_ups - asked <= 2


async def test_only_a_long_describe_ends_with_its_client(server: Server) -> None:
    await server.describe(OWNERS[0])
    assert server.ends_with_client == 0
    await server.describe()
    assert server.ends_with_client == 1


async def test_describes_that_are_called_off_make_way_for_the_next(server: Server) -> None:
    tasks = [server.describe() for _ in range(20)]
    await turns(5)
    for task in tasks[:-1]:
        task.cancel()
    before = server.clock.looks
    assert len((await tasks[-1]).tokens) == TOKENS
    assert server.clock.looks - before < 2 * 2 * TOKENS // BATCH


async def test_an_owner_that_is_named_often_is_no_more_work_than_one_that_is_named_once(server: Server) -> None:
    once = await server.describe(OWNERS[0])
    looks = server.clock.looks
    often = await server.describe(*(OWNERS[:1] * 4_000))
    assert list(often.tokens) == list(once.tokens)
    assert looks <= server.clock.looks <= 2 * looks
    assert server.ends_with_client == 0
