"""Two nodes on an ensemble of three ZooKeepers whose members, links and clocks fail: no answer contradicts another.

`make test` breaks things for less than a minute, `make soak` for ten. A failed run prints its seed; set
KAFKA_DT_TEST_SEED to it to have the same faults again, if not at the same instants.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.chaos.fault_run import clients, clock_jumps, faults_of, in_turn, now_ms
from tests.chaos.history import Bounds, History, Kind, Operation, Outcome, violations
from tests.support.nodes.node import Node, node_properties
from tests.support.processes.wall_clock import NoCompiler, WallClock
from tests.support.zookeeper.ensemble import Ensemble

_LOG = logging.getLogger(__name__)
"""The faults and the counts, shown with `--log-cli-level=INFO`."""

SOAK = bool(os.environ.get("KAFKA_DT_TEST_SOAK"))
SECONDS = 600 if SOAK else 40
NAMES = ("one", "two")
SHORTEST_FAULT_S, LONGEST_FAULT_S = 1.0, 25.0 if SOAK else 9.0
RECOVERY_S = 120.0
SESSION_TIMEOUT_MS = 3_000
MAX_STALENESS_MS = 4_000
NOTICE_MS = 1_000
"""The other workers of a node that is not cut off know of a revocation within this time."""
CUT_OFF = Bounds(listing_ms=MAX_STALENESS_MS + NOTICE_MS, login_ms=MAX_STALENESS_MS + NOTICE_MS)
CALM = Bounds(listing_ms=0, login_ms=NOTICE_MS)
SETTLING_S, CALM_S = 2.0, 1.5
"""After a fault every worker settles, and then nothing may be late at all, unless a node loses ZooKeeper once more."""
DISCONNECTED = "connection to ZooKeeper suspended"
TOKEN_LIFETIME_MS = 1_800_000
"""Longer than any run, and shorter than a clock jumps: a node that trusts its own clock deletes tokens for all."""


@pytest.fixture
def ensemble(tmp_path: Path) -> Iterator[Ensemble]:
    with Ensemble(tmp_path / "ensemble") as made:
        yield made


@pytest.fixture
def clocks(tmp_path: Path) -> dict[str, WallClock]:
    """The clocks of the nodes by their names; none where there is no compiler, and then no clock jumps."""
    try:
        return {name: WallClock(tmp_path / f"clock-{name}") for name in NAMES}
    except NoCompiler as reason:
        if os.environ.get("CI"):
            raise
        _LOG.warning("No clock jumps: %s", reason)
        return {}


@contextlib.contextmanager
def two_nodes(folder: Path, connect: str, clocks: Mapping[str, WallClock]) -> Iterator[list[Node]]:
    properties = node_properties(
        connect,
        kafka_dt_workers=2 if SOAK else 1,
        zookeeper_session_timeout_ms=SESSION_TIMEOUT_MS,
        kafka_dt_zookeeper_max_staleness_ms=MAX_STALENESS_MS,
        delegation_token_max_lifetime_ms=TOKEN_LIFETIME_MS,
        connection_failed_authentication_delay_ms=0,  # else logins by deleted tokens would soon be rare
    )
    with contextlib.ExitStack() as stack:
        nodes = []
        for name in NAMES:
            environment = clocks[name].environment if clocks else None
            nodes.append(stack.enter_context(Node(folder / name, properties, name, environment)))
        yield nodes
        for node in nodes:
            node.check_log()


@pytest.mark.timeout(SECONDS + 300)
async def test_no_answer_contradicts_another_while_zookeepers_and_nodes_fail(
    ensemble: Ensemble, clocks: dict[str, WallClock], tmp_path: Path
) -> None:
    with two_nodes(tmp_path, ensemble.connect, clocks) as nodes:
        await run_with_faults(ensemble, nodes, clocks)


async def run_with_faults(ensemble: Ensemble, nodes: list[Node], clocks: Mapping[str, WallClock]) -> None:
    """Break one or two things at a time, let everything recover, and again; then judge all answers."""
    seed = int(os.environ.get("KAFKA_DT_TEST_SEED", random.randrange(10**6)))  # noqa: S311
    chance = random.Random(seed)  # noqa: S311
    history = History()
    calm: list[tuple[float, float]] = []
    async with clients(nodes, history, chance) as shared:
        faults = in_turn([*clock_jumps(clocks, shared, chance), *faults_of(ensemble, nodes, chance)], chance)
        await recovered(history, nodes)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end or not calm:
            async with contextlib.AsyncExitStack() as broken:
                for fault in itertools.islice(faults, chance.choice((1, 1, 2))):
                    _LOG.info("Seed %d: %s", seed, await broken.enter_async_context(fault()))
                await asyncio.sleep(chance.uniform(SHORTEST_FAULT_S, LONGEST_FAULT_S))
            await asyncio.to_thread(ensemble.heal)
            await recovered(history, nodes)
            disconnected = [node.log().count(DISCONNECTED) for node in nodes]
            await asyncio.sleep(SETTLING_S)
            began_ms = now_ms()
            await asyncio.sleep(CALM_S)
            ended_ms = now_ms()
            # On a busy machine the faults have effects for longer, and connections end without a fault.
            if disconnected == [node.log().count(DISCONNECTED) for node in nodes]:
                calm.append((began_ms, ended_ms))
    check(history, calm, seed)
    first, second = [await listed(node) for node in nodes]
    assert first == second, f"seed {seed}: nodes differ"


async def recovered(history: History, nodes: list[Node]) -> None:
    """Wait until every node has acknowledged a change and let a token in since now."""
    since_ms = now_ms()
    wanted = {(node.process.name, kind) for node in nodes for kind in (Kind.CREATE, Kind.LOGIN, Kind.DESCRIBE)}
    async with asyncio.timeout(RECOVERY_S):
        while wanted:
            await asyncio.sleep(0.1)
            wanted -= {(each.node, each.kind) for each in history.since(since_ms) if each.outcome is Outcome.DONE}


async def listed(node: Node) -> set[str]:
    async with node.client() as client:
        return {token.token_id for token in await client.describe()}


def check(history: History, calm: Sequence[tuple[float, float]], seed: int) -> None:
    """See that the history has no violation, and that it is one of much that was acknowledged."""

    def bounds_of(operation: Operation) -> Bounds:
        within = any(began <= operation.began_ms and operation.ended_ms <= ended for began, ended in calm)
        return CALM if within else CUT_OFF

    _LOG.info("Seed %d: %s", seed, history)
    found = list(violations(history.operations, bounds_of))
    assert not found, f"seed {seed}: {len(found)} violations, such as\n" + "\n".join(map(str, found[:20]))
    for kind in Kind:
        assert any(each.kind is kind and each.outcome is Outcome.DONE for each in history.operations), kind
