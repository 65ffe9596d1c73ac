"""Measure the time until a real node's challenge: it does not reveal which tokens exist, even on the node's machine.

A client there shares its cores with the node, so it sees also what the node does once the challenge is written.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from kafka_dt.client import DelegationToken
from tests.support.identity.timing import in_turns, told_apart
from tests.support.nodes.node import SHA_256, Node, node_properties
from tests.support.protocol.raw import SASL_AUTHENTICATE

ATTEMPTS = 300
PAUSE_S = 0.003
"""Between attempts; without it client and node stay on different cores."""
WARM = 20
BEYOND = 0.08
"""How far from one half the chance may be that one kind takes longer; with so many attempts, 0.02 is a usual error. It
was 0.1 to 0.2 while the search for a token began as soon as the challenge was written."""
TRIES = 3


@pytest.fixture
def lone_worker(zookeeper_connect: str, tmp_path: Path) -> Iterator[Node]:
    with Node(tmp_path, node_properties(zookeeper_connect, kafka_dt_workers=1)) as node:
        yield node
    node.check_log()


async def test_the_challenge_takes_the_same_time_for_ids_that_the_store_is_asked_for(lone_worker: Node) -> None:
    cold, warm = await _created(lone_worker, TRIES * ATTEMPTS), await _created(lone_worker, WARM)
    for token in warm:
        lone_worker.connect_by_token(token).close()
    kinds = {
        "a token that was used": _first_answers(lone_worker, _forever(warm)),
        "a token that is to be derived": _first_answers(lone_worker, (token.token_id for token in cold)),
        "no token": _first_answers(lone_worker, iter(_unknown_id, "")),
    }
    told: Mapping[tuple[str, str], float] = {}
    for _ in range(TRIES):
        told = told_apart(await in_turns(kinds, ATTEMPTS), beyond=BEYOND)
        if not told:
            break
    assert told == {}


async def _created(node: Node, count: int) -> list[DelegationToken]:
    async with node.client() as client:
        return await asyncio.gather(*(client.create() for _ in range(count)))


def _forever(tokens: list[DelegationToken]) -> Iterator[str]:
    while True:
        for token in tokens:
            yield token.token_id


def _unknown_id() -> str:
    return f"{secrets.token_urlsafe(15)}AA"[:22]


def _first_answers(node: Node, names: Iterable[str]) -> Callable[[], Awaitable[float]]:
    """Ask for the challenge of one name after the other, one at each call, which gives how many seconds that took."""
    left = iter(names)

    async def first_answer() -> float:
        await asyncio.sleep(PAUSE_S)
        with node.connect() as connection:
            connection.handshake(SHA_256)
            message = f"n,,n={next(left)},r={secrets.token_urlsafe(12)}".encode()
            request = connection.encode(SASL_AUTHENTICATE, 2, auth_bytes=message)
            began_s = time.perf_counter()
            connection.send_frame(request)
            connection.receive_frame()
            return time.perf_counter() - began_s

    return first_answer
