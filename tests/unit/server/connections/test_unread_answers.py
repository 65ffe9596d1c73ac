"""What answers cost that clients do not read: all of it is counted, and whose client reads nothing is closed."""

from __future__ import annotations

import pytest

from kafka_dt.server.connections.reading import LONG_ANSWER_BYTES
from kafka_dt.server.connections.request_memory import RequestMemory
from kafka_dt_protocol import ApiKey
from kafka_dt_protocol.wire.frames import LONG_WRITE_BYTES
from tests.support.server.fake_transport import NeverTaken, Shell, turns, unused
from tests.support.server.long_answers import DESCRIBE, PARTS, TOKEN_BYTES, TOKENS, at_length

ANSWER_BYTES = TOKENS * TOKEN_BYTES
LIMIT = 4 * 1024 * 1024
FIT = LIMIT // ANSWER_BYTES
"""How many unread answers there may be."""


def memory_of_worker() -> RequestMemory:
    return RequestMemory(LIMIT, 30, lambda: 0, NeverTaken())


def counted(memory: RequestMemory) -> int:
    return memory._unread.size


async def describes(memory: RequestMemory) -> Shell:
    """A client that asks for a long answer and does not read it."""
    shell = Shell(at_length, memory=memory)
    shell.ask(DESCRIBE, 3, owners=None)
    await turns()
    return shell


async def reads(shell: Shell) -> None:
    for _ in range(PARTS + 1):
        shell.transport.read_by_client()
        await turns()


async def test_a_long_answer_counts_with_what_has_not_been_written_of_it() -> None:
    memory = memory_of_worker()
    shell = await describes(memory)
    assert len(shell.transport.written) < ANSWER_BYTES / 2
    assert ANSWER_BYTES <= counted(memory) <= ANSWER_BYTES + TOKENS * 100
    await reads(shell)
    assert counted(memory) == 0
    assert len(shell.answers()) == 1


async def test_an_answer_that_comes_when_the_client_has_stopped_reading_counts_as_well() -> None:
    memory = memory_of_worker()
    shell = Shell(at_length, memory=memory, high_water=10)
    before = shell.request(ApiKey.API_VERSIONS, 0)
    shell.send(before + shell.request(DESCRIBE, 3, owners=None))
    await turns()
    assert len(shell.transport.written) < LONG_WRITE_BYTES, "no part of it is written"
    assert counted(memory) >= ANSWER_BYTES
    await reads(shell)
    assert counted(memory) == 0


async def test_the_client_that_has_read_nothing_for_the_longest_time_is_cut_off_with_a_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    memory = memory_of_worker()
    shells = [await describes(memory) for _ in range(FIT + 1)]
    assert [shell.transport.aborted for shell in shells] == [True] + [False] * FIT
    assert "other clients need the memory of its unread answers (kafka.dt.request.buffer.bytes)" in caplog.text
    assert counted(memory) <= LIMIT


async def test_a_client_that_sends_on_and_does_not_read_waits_no_less_long() -> None:
    memory = memory_of_worker()
    shells = [await describes(memory) for _ in range(FIT)]
    shells[0].ask(ApiKey.API_VERSIONS, 0)
    shells.append(await describes(memory))
    assert [shell.transport.aborted for shell in shells] == [True] + [False] * FIT


async def test_clients_that_read_are_served_beside_clients_that_do_not() -> None:
    memory = memory_of_worker()
    silent = [await describes(memory) for _ in range(FIT - 1)]
    reader = await describes(memory)
    for _ in range(PARTS // 2):
        reader.transport.read_by_client()
        await turns()
        silent.append(await describes(memory))
        assert counted(memory) <= LIMIT
    await reads(reader)
    assert len(reader.answers()) == 1
    assert sum(shell.transport.aborted for shell in silent) >= PARTS // 2 - 1


async def test_a_connection_that_has_ended_holds_nothing_though_its_answer_comes_later() -> None:
    memory = memory_of_worker()
    shell = Shell(at_length, memory=memory, high_water=10)
    shell.send(shell.request(ApiKey.API_VERSIONS, 0) + shell.request(DESCRIBE, 3, owners=None))
    assert shell.connection.busy
    shell.connection.connection_lost(None)
    await turns()
    assert counted(memory) == 0
    assert not memory._unread.held


async def test_what_a_socket_keeps_of_any_answer_is_not_counted() -> None:
    memory = memory_of_worker()
    shell = Shell(unused, memory=memory)
    shell.transport.write(bytes(LONG_ANSWER_BYTES))
    assert counted(memory) == 0
    shell.transport.write(b"\0")
    assert counted(memory) == LONG_ANSWER_BYTES + 1
