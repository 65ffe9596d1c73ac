"""Cut connections and kill brokers: records are neither lost nor doubled, and no client waits for ever."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

import confluent_kafka
import pytest

from kafka_dt.client import DelegationToken
from tests.interop.gateway.conftest import GatewayMaker
from tests.support.brokers.broker import USERS
from tests.support.brokers.kraft import KraftCluster
from tests.support.brokers.kraft_operator import FETCH, MIB, request_records
from tests.support.java.records_client import ReadBack, RecordsClient
from tests.support.nodes.gateway import GATED_HOST, PORTS, Gateway
from tests.support.processes.process import hanging
from tests.support.processes.tcp_gate import TcpGate
from tests.support.protocol.raw import METADATA

RECORDS: Final = 100_000
"""For each time that a broker is killed."""
PER_SECOND: Final = 15_000
"""So that sending takes long enough for things to happen."""
CUT_EVERY_S: Final = 0.5
PATIENT: Final = {"delivery.timeout.ms": "120000", "max.block.ms": "120000", "reconnect.backoff.max.ms": "200"}


@contextlib.asynccontextmanager
async def gates(gateway: Gateway) -> AsyncIterator[list[TcpGate]]:
    """Relays before every port of the listener GATED, where its clients are told to go."""
    async with contextlib.AsyncExitStack() as stack:
        first = int(gateway.address("GATED").rpartition(":")[2])
        yield [
            await stack.enter_async_context(TcpGate("127.0.0.1", port, at=(GATED_HOST, port)))
            for port in range(first, first + PORTS - 1)
        ]


async def cut_again_and_again(relays: list[TcpGate], cuts: list[TcpGate]) -> None:
    """Break every connection through one of the gates at a time, wherever in a frame it is."""
    while True:
        await asyncio.sleep(random.uniform(0.5, 1.5) * CUT_EVERY_S)  # noqa: S311 - no secret
        if in_use := [relay for relay in relays if relay.in_use]:
            relay = random.choice(in_use)  # noqa: S311 - no secret
            relay.shut()
            relay.open()
            cuts.append(relay)


@contextlib.asynccontextmanager
async def cutting(relays: list[TcpGate]) -> AsyncIterator[list[TcpGate]]:
    """Cut while the block runs; gives the gates at which it has happened."""
    cuts: list[TcpGate] = []
    task = asyncio.ensure_future(cut_again_and_again(relays, cuts))
    try:
        yield cuts
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("kills", [1, pytest.param(4, marks=pytest.mark.soak)])
async def test_nothing_is_lost_and_nothing_comes_twice_when_connections_and_a_broker_break(
    gateway: Gateway,
    alice: DelegationToken,
    *,
    make_topic: Callable[..., str],
    cluster: KraftCluster,
    records: RecordsClient,
    kills: int,
) -> None:
    topic, unused = make_topic(1, 2, replicas=2), make_topic(2)
    count = kills * RECORDS
    client = {**gateway.settings(alice, "java"), **PATIENT}
    async with gates(gateway) as relays:
        client["bootstrap.servers"] = f"{GATED_HOST}:{relays[0].port}"
        async with cutting(relays) as cuts:
            sending = asyncio.create_task(asyncio.to_thread(records.send, client, topic, count, per_second=PER_SECOND))
            for _ in range(kills):
                await asyncio.sleep(1)
                await asyncio.to_thread(kill_and_see_who_waits, gateway, alice, cluster, unused)
                await asyncio.to_thread(cluster.brokers[2].start)
            assert (await sending).acknowledged == count
            read = await asyncio.to_thread(records.read, client, topic, count, timeout_s=50 * kills)
    assert read == ReadBack.of(count, partitions=2)
    assert len(cuts) > 5


def kill_and_see_who_waits(gateway: Gateway, token: DelegationToken, cluster: KraftCluster, topic: str) -> None:
    """Kill broker 2; who waits for its answer is told at once, and who comes then does not wait."""
    address = gateway.address_of_broker(2)
    with gateway.reach_broker(token, 2) as waiting:
        request_records(waiting, topic, max_wait_ms=30_000)
        cluster.brokers[2].kill()
        assert waiting.closed(within_s=2)
    with contextlib.suppress(ConnectionRefusedError), gateway.connect_by_token(token, to=address) as late:
        request_records(late, topic)
        assert late.closed(within_s=5)


def test_a_frozen_broker_holds_up_no_principal_that_is_new(other_gateway: GatewayMaker, cluster: KraftCluster) -> None:
    with other_gateway("frozen") as gateway:
        tokens = [gateway.make_token(user) for user in USERS]
        gateway.reach_broker(tokens.pop(), 1).close()
        with hanging(cluster.brokers[2].process.pid):
            # The gateway waits 30 s for an answer of a broker, these connections wait 10 s for one of the gateway.
            for token in tokens:
                gateway.reach_broker(token, 1).close()
                with gateway.connect_by_token(token) as anywhere:
                    anywhere.ask(METADATA, 1, topics=())
        gateway.reach_broker(tokens[0], 2).close()


def test_a_client_that_does_not_read_costs_no_memory(
    gateway: Gateway, alice: DelegationToken, make_topic: Callable[..., str], cluster: KraftCluster
) -> None:
    topic = make_topic(1)
    direct = confluent_kafka.Producer({"bootstrap.servers": cluster.plaintext, "compression.type": "none"})
    for _ in range(16):
        direct.produce(topic, random.randbytes(MIB // 2), partition=0)  # noqa: S311 - no secret
    assert direct.flush(30) == 0
    with gateway.reach_broker(alice, 1) as lazy:
        request_records(lazy, topic, max_bytes=8 * MIB)
        lazy.answer(FETCH, 12)
        before = gateway.resident_kib()
        asked = 12
        for _ in range(asked):
            request_records(lazy, topic, max_bytes=8 * MIB)
        grown = []
        end = time.monotonic() + 1
        while time.monotonic() < end:
            grown.append(gateway.resident_kib() - before)
            time.sleep(0.1)
        assert max(grown) < 16 * 1024
        for _ in range(asked):
            assert len(lazy.receive_frame()) > 7 * MIB
