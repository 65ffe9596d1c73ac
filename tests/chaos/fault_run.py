"""A run of clients and faults whose history is judged.

    run = FaultRun(nodes=nodes, seconds=40, longest_fault_s=9, staleness_ms=4_000, heal=ensemble.heal, cut_off="...")
    await run.go(lambda shared, stopped: ensemble_faults(ensemble, stopped) + node_faults(nodes, stopped))

It breaks one or two things at a time, lets everything recover, and again. Then it judges all answers. While something
is broken, and for as long as a node says that it is cut off, a node may answer from what is as old as its bound of
staleness. In calm moments nothing may be late.

A failed run prints its seed; set KAFKA_DT_TEST_SEED to it to have the same faults again, if not at the same instants.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

from tests.chaos.history import Bounds, History, Kind, Operation, Outcome, violations
from tests.chaos.recorded_clients import PAUSE_S, RETRY_S, Clients, asking, now_ms
from tests.support.nodes.node import Node
from tests.support.processes.process import hanging

_LOG = logging.getLogger(__name__)
"""The faults and the counts, shown with `--log-cli-level=INFO`."""

NOTICE_MS: Final = 1_000
"""The other workers of a node that is not cut off know of a revocation within this time."""
SHORTEST_FAULT_S: Final = 1.0
RECOVERY_S: Final = 120.0
SETTLING_S, CALM_S = 2.0, 1.5
"""After a fault every worker settles, and then nothing may be late at all, unless a node is cut off once more."""

Fault = Callable[[], AbstractAsyncContextManager[str]]
"""Breaks something for the length of a block; gives what it has broken, in words."""

_T = TypeVar("_T")


class Stopped:
    """What faults have killed or frozen; another fault takes something else, whose processes are there."""

    def __init__(self, chance: random.Random) -> None:
        self.chance: Final = chance
        self._chosen: list[object] = []

    @contextlib.contextmanager
    def one_of(self, candidates: Sequence[_T]) -> Iterator[_T]:
        """Choose one that is not stopped already."""
        chosen = self.chance.choice([each for each in candidates if each not in self._chosen])
        self._chosen.append(chosen)
        yield chosen
        self._chosen.remove(chosen)


def node_faults(nodes: Sequence[Node], stopped: Stopped) -> list[Fault]:
    """Give the faults of nodes."""

    @asynccontextmanager
    async def killed() -> AsyncIterator[str]:
        with stopped.one_of(nodes) as node:
            node.check_log()
            await asyncio.to_thread(node.kill)
            yield f"{node.name} is killed"
            await asyncio.to_thread(node.start)

    @asynccontextmanager
    async def frozen() -> AsyncIterator[str]:
        with contextlib.ExitStack() as stack:
            node = stack.enter_context(stopped.one_of(nodes))
            for worker in node.workers():
                stack.enter_context(hanging(worker))
            yield f"all workers of {node.name} are frozen"

    @asynccontextmanager
    async def worker_killed() -> AsyncIterator[str]:
        with stopped.one_of(nodes) as node:
            for worker in node.workers()[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
            yield f"a worker of {node.name} is killed"

    return [killed, frozen, worker_killed]


@dataclass(slots=True, kw_only=True)
class FaultRun:
    """One run."""

    nodes: Sequence[Node]
    seconds: float
    longest_fault_s: float
    staleness_ms: float
    """How old may be what a node answers from while it is cut off from where its tokens are."""
    heal: Callable[[], None]
    """Ends the faults of links, and waits until what is behind the nodes serves."""
    cut_off: str
    """What a node logs when it loses what is behind it."""
    notice_ms: float = NOTICE_MS
    """How soon a node that is not cut off lets a revoked token in no more."""
    pause_s: float = PAUSE_S
    """Between two changes of a client."""
    at_once: Sequence[int] = (1, 1, 2)
    """How many things may be broken at a time; one of the numbers is drawn each time."""
    history: History = field(default_factory=History)
    calm: list[tuple[float, float]] = field(default_factory=list)
    """Beginnings and ends of the calm moments, in milliseconds of the history's clock."""
    seed: int = field(
        default_factory=lambda: int(os.environ.get("KAFKA_DT_TEST_SEED", random.randrange(10**6)))  # noqa: S311
    )

    async def go(
        self,
        faults_of: Callable[[Clients, Stopped], Sequence[Fault]],
        beside: Callable[[Clients], AbstractAsyncContextManager[None]] = lambda _: contextlib.nullcontext(),
    ) -> None:
        """Break and judge.

        Args:
            faults_of: gives what may break, and what is broken first.
            beside: makes a further load.
        """
        chance = random.Random(self.seed)  # noqa: S311
        shared = Clients(self.history, chance, self.pause_s)
        async with asking(self.nodes, shared), beside(shared):
            faults = _in_turn(faults_of(shared, Stopped(chance)), chance)
            await self._recovered()
            end = time.monotonic() + self.seconds
            while time.monotonic() < end or not self.calm:
                async with contextlib.AsyncExitStack() as broken:
                    for fault in itertools.islice(faults, chance.choice(self.at_once)):
                        _LOG.info("Seed %d: %s", self.seed, await broken.enter_async_context(fault()))
                    await asyncio.sleep(chance.uniform(SHORTEST_FAULT_S, self.longest_fault_s))
                await asyncio.to_thread(self.heal)
                await self._recovered()
                await self._look_at_calm()
            await self._done(set(Kind), lambda each: each.kind, since_ms=0)
        self._check()
        await self._compare_nodes(shared)

    async def _recovered(self) -> None:
        """Wait until every node has acknowledged a change and let a token in since now."""
        since_ms = now_ms()
        wanted = {(node.name, kind) for node in self.nodes for kind in (Kind.CREATE, Kind.LOGIN, Kind.DESCRIBE)}
        await self._done(wanted, lambda each: (each.node, each.kind), since_ms)
        _LOG.info("Seed %d: recovered after %.1f s", self.seed, (now_ms() - since_ms) / 1000)

    async def _done(self, wanted: set[_T], of: Callable[[Operation], _T], since_ms: float) -> None:
        """Wait until something was acknowledged, since an instant, of everything that is wanted."""
        deadline = time.monotonic() + RECOVERY_S
        while wanted:
            wanted = wanted - {of(each) for each in self.history.since(since_ms) if each.outcome is Outcome.DONE}
            assert not wanted or time.monotonic() < deadline, f"seed {self.seed}: never done: {wanted}"
            await asyncio.sleep(0.1)

    async def _look_at_calm(self) -> None:
        before = self._losses()
        await asyncio.sleep(SETTLING_S)
        began_ms = now_ms()
        await asyncio.sleep(CALM_S)
        # On a busy machine the faults have effects for longer, and connections end without a fault.
        if before == self._losses():
            self.calm.append((began_ms, now_ms()))

    def _losses(self) -> list[int]:
        return [node.log().count(self.cut_off) for node in self.nodes]

    def _check(self) -> None:
        """See that the history has no violation."""
        late_ms = self.staleness_ms + self.notice_ms

        def bounds_of(operation: Operation) -> Bounds:
            if any(began <= operation.began_ms and operation.ended_ms <= ended for began, ended in self.calm):
                return Bounds(listing_ms=0, login_ms=self.notice_ms)
            return Bounds(listing_ms=late_ms, login_ms=late_ms)

        _LOG.info("Seed %d: %s", self.seed, self.history)
        found = list(violations(self.history.operations, bounds_of))
        told = f"seed {self.seed}: {len(found)} violations, and what was asked about the first:"
        # Who acknowledged what it contradicts shows which way the news came too late.
        assert not found, "\n".join([told, *map(str, found[:20]), self._asked(found[0].token_id)])

    async def _compare_nodes(self, shared: Clients) -> None:
        """See that all nodes list the same tokens, and that no acknowledged renewal is lost."""
        acknowledged = shared.expiries
        _LOG.info("Seed %d: %d acknowledged renewals are compared", self.seed, len(acknowledged))
        # What was asked for last may still be under way.
        deadline = time.monotonic() + RECOVERY_S
        while True:
            first, *others = [await _expiries(node) for node in self.nodes]
            lost = [token_id for token_id, expiry_ms in acknowledged.items() if first.get(token_id) != expiry_ms]
            if not lost and all(each == first for each in others):
                return
            assert time.monotonic() < deadline, self._told(lost, first, acknowledged)
            await asyncio.sleep(RETRY_S)

    def _told(self, lost: Sequence[str], found: Mapping[str, int], wanted: Mapping[str, int]) -> str:
        if not lost:
            return f"seed {self.seed}: nodes differ"
        token_id = lost[0]
        told = f"seed {self.seed}: a renewal or a token is lost, {found.get(token_id)} instead of {wanted[token_id]}"
        return f"{told}; what was asked:\n{self._asked(token_id)}"

    def _asked(self, token_id: str) -> str:
        return "\n".join(str(each) for each in self.history.operations if each.token_id == token_id)


def _in_turn(faults: Sequence[Fault], chance: random.Random) -> Iterator[Fault]:
    """Give the first fault, then the others in a random order; then all of them again, and so on for ever."""
    yield faults[0]
    yield from chance.sample(faults[1:], len(faults) - 1)
    while True:
        yield from chance.sample(faults, len(faults))


async def _expiries(node: Node) -> dict[str, int]:
    async with node.client() as client:
        return {token.token_id: token.expiry_timestamp_ms for token in await client.describe()}
