"""The load under which clusters fail: clients at nodes, others at the brokers, and producers with tokens."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import aiokafka
from aiokafka.errors import KafkaError

from kafka_dt.client import DelegationToken, TokenClient
from tests.chaos.fault_run import FaultRun, node_faults
from tests.chaos.recorded_clients import RETRY_S, Clients, running
from tests.interop.kraft.cluster_faults import cluster_faults
from tests.interop.kraft.conftest import TOPIC, at_brokers
from tests.support.brokers.controller_links import ControllerLinks
from tests.support.brokers.kraft import GATEWAY, KraftCluster
from tests.support.nodes.gateway import Gateway

CUT_OFF: Final = "cannot follow the tokens of the upstream cluster"
CHANGE_PAUSE_S: Final = 0.25
"""Brokers derive two credentials from each new token, and fall behind where tokens come faster than they do that."""
NOTICE_MS: Final = 2_000
"""A worker looks twice a second, and a broker is some tenths of a second behind its controllers, or more."""
PRODUCE_PAUSE_S: Final = 0.1
STOPPING_S: Final = 10.0
SERVING_S: Final = 60.0

Nodes = tuple[Gateway, Gateway]


@dataclass(frozen=True, slots=True)
class Brokers:
    """The brokers themselves, as a place where tokens are changed."""

    cluster: KraftCluster
    name: str

    def client(self, **settings: Any) -> TokenClient:
        """A client of User:alice."""
        return at_brokers(self.cluster, "alice", **settings)


@dataclass
class Producers:
    """What producers with tokens have written through nodes."""

    acknowledged: set[bytes] = field(default_factory=set)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    async def produce(self, node: Gateway, token: DelegationToken) -> None:
        """Write one number after the other, for ever."""
        while True:
            producer = aiokafka.AIOKafkaProducer(
                **node.settings(token, "aiokafka"), acks="all", request_timeout_ms=5_000
            )
            with contextlib.suppress(KafkaError, OSError):
                try:
                    await producer.start()
                    for number in self._numbers:
                        value = f"number {number}".encode()
                        await producer.send_and_wait(TOPIC, value)
                        self.acknowledged.add(value)
                        await asyncio.sleep(PRODUCE_PAUSE_S)
                finally:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(producer.stop(), STOPPING_S)
            await asyncio.sleep(RETRY_S)

    async def check(self, node: Gateway, token: DelegationToken) -> None:
        """Read everything, and see that nothing acknowledged is missing."""
        assert self.acknowledged
        missing = set(self.acknowledged)
        settings = node.settings(token, "aiokafka")
        async with aiokafka.AIOKafkaConsumer(TOPIC, **settings, auto_offset_reset="earliest") as consumer:
            async with asyncio.timeout(SERVING_S):
                while missing:
                    record = await consumer.getone()
                    missing.discard(record.value)


async def run_with_faults(
    cluster: KraftCluster,
    nodes: Nodes,
    links: ControllerLinks | None,
    *,
    seconds: float,
    longest_fault_s: float,
    staleness_ms: int,
) -> None:
    producers = Producers()
    async with nodes[0].client("alice") as alice:
        token = await alice.create()

    @asynccontextmanager
    async def beside(shared: Clients) -> AsyncIterator[None]:
        # A controller finds a token some tenths of a second after its create has been acknowledged.
        brokers = Brokers(cluster, "the brokers")
        shared.believed_since_ms[brokers.name] = math.inf
        async with running(
            shared.change(brokers, renewers=[f"User:{GATEWAY}"]),
            *(producers.produce(node, token) for node in nodes),
        ):
            yield

    def heal() -> None:
        if links is not None:
            links.heal()

    run = FaultRun(
        nodes=nodes,
        seconds=seconds,
        longest_fault_s=longest_fault_s,
        staleness_ms=staleness_ms,
        heal=heal,
        cut_off=CUT_OFF,
        notice_ms=NOTICE_MS,
        pause_s=CHANGE_PAUSE_S,
        at_once=(1, 1, 2) if links else (1,),
    )
    await run.go(
        lambda _, stopped: [*cluster_faults(cluster, stopped, links), *(node_faults(nodes, stopped) if links else [])],
        beside,
    )
    await producers.check(nodes[1], token)
