"""Long answers with addresses: others have their turns while they are rewritten, and their memory is counted."""

from __future__ import annotations

import struct
import time

import pytest

from kafka_dt.server.connections.reading import LONG_ANSWER_BYTES
from kafka_dt.server.connections.request_memory import RequestMemory
from kafka_dt_protocol import ApiKey
from kafka_dt_protocol.rewriting.replacing import NODES_IN_A_ROW
from kafka_dt_protocol.wire.encoding import encode_varint
from tests.support.server.fake_gateway import JOIN_GROUP, FakeUpstream, GatewayShell, answer, request
from tests.support.server.fake_transport import NeverTaken, turns

FIND_COORDINATOR, VERSION = 10, 6
METADATA = 3
PARTS = 20
MIB = 1024 * 1024
HEAD = bytes(5)
"""An empty header's tagged fields, and no throttling."""


def coordinators(count: int, host: bytes = b"kafka1.internal") -> bytes:
    """The answer about groups whose coordinator is one broker, behind the correlation id."""
    address = encode_varint(len(host) + 1) + host + struct.pack(">i", 9092)
    element = encode_varint(2) + b"g" + struct.pack(">i", 1) + address + bytes(2) + encode_varint(0) + b"\0"
    return HEAD + encode_varint(count + 1) + element * count + b"\0"


async def asked() -> tuple[GatewayShell, FakeUpstream]:
    """Ask for many coordinators."""
    shell = GatewayShell(high_water=2**30)
    shell.send(request(FIND_COORDINATOR, 1, version=VERSION))
    return shell, await shell.upstream()


async def test_others_have_their_turns_while_many_coordinators_are_rewritten() -> None:
    shell, upstream = await asked()
    upstream.answer(1, coordinators(PARTS * NODES_IN_A_ROW))
    assert not upstream.reading
    for _ in range(PARTS - 1):
        assert not shell.transport.written
        await turns(1)
    await turns()
    length = int.from_bytes(shell.transport.written[:4])
    assert len(shell.transport.written) == 4 + length
    assert b"kafka1.internal" not in shell.transport.written
    assert upstream.reading
    shell.send(request(JOIN_GROUP, 2))
    upstream.answer(2, b"content")
    assert shell.transport.written.endswith(answer(2, b"content"))


async def test_a_client_that_goes_meanwhile_gets_nothing_more() -> None:
    shell, upstream = await asked()
    upstream.answer(1, coordinators(PARTS * NODES_IN_A_ROW))
    await turns(1)
    shell.transport.abort()
    await turns()
    assert upstream.closed
    assert not shell.transport.written


async def test_an_answer_that_makes_no_sense_further_on_closes_the_connection() -> None:
    shell, upstream = await asked()
    upstream.answer(1, coordinators(PARTS * NODES_IN_A_ROW)[:-20])
    await turns(PARTS + 2)
    assert shell.transport.closed
    assert upstream.closed


def memory_of(share: int) -> RequestMemory:
    return RequestMemory(share, 30, time.monotonic, NeverTaken())


@pytest.mark.parametrize(("clients", "closed"), [(4, 0), (6, 2)])
async def test_answers_that_are_collected_count_and_beyond_the_share_the_oldest_is_closed(
    clients: int, closed: int
) -> None:
    memory = memory_of(4 * MIB)
    shells = [GatewayShell(memory=memory) for _ in range(clients)]
    for shell in shells:
        shell.send(request(METADATA, 1, version=9))
        upstream = await shell.upstream()
        upstream.listener.upstream_data(struct.pack(">ii", 2 * MIB, 1))
        upstream.listener.upstream_data(bytes(MIB - 8))
    assert memory._unread.size == 4 * MIB
    assert [shell.transport.closed for shell in shells] == [True] * closed + [False] * (clients - closed)


async def test_an_answer_that_was_collected_counts_no_more() -> None:
    memory = memory_of(4 * MIB)
    shell = GatewayShell(memory=memory, high_water=2**30)
    shell.send(request(FIND_COORDINATOR, 1, version=VERSION))
    whole = answer(1, coordinators(2 * PARTS * NODES_IN_A_ROW))
    upstream = await shell.upstream()
    upstream.listener.upstream_data(whole[:-1])
    assert memory._unread.size == len(whole) - 1 > LONG_ANSWER_BYTES
    upstream.listener.upstream_data(whole[-1:])
    await turns(2 * PARTS + 2)
    assert shell.transport.written
    assert memory._unread.size == 0


async def test_a_piece_of_a_request_that_waits_for_one_of_the_clients_own_choice_counts() -> None:
    memory = memory_of(4 * MIB)
    shell = GatewayShell(memory=memory)
    shell.send(request(JOIN_GROUP, 1))
    await shell.upstream()
    waiting = request(ApiKey.API_VERSIONS, 2, version=0) + request(JOIN_GROUP, 3, bytes(MIB))[:100_000]
    shell.send(waiting)
    assert memory._short.size + memory._long.size == len(waiting)
