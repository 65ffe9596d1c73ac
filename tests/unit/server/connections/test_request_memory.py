"""Who may go on, who waits and who is closed when the connections of a worker hold too much."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING

import pytest

from kafka_dt.config import ConfigError, Settings
from kafka_dt.processes.node_memory import NodeTurn, node_memory
from kafka_dt.server.connections.request_memory import (
    PIECE_BYTES,
    SHORT_BYTES,
    SWEEPS_WITHOUT_TURN,
    RequestMemory,
    request_buffer_bytes,
)
from kafka_dt_protocol import ApiKey, frame
from tests.support.server.fake_gateway import JOIN_GROUP, GatewayShell, request
from tests.support.server.fake_transport import Shell, turns, unused

if TYPE_CHECKING:
    from _typeshed import TraceFunction

KIB, MIB = 1024, 1024 * 1024
LIMIT = 4 * MIB
LONG_PART = 3 * MIB
TIMEOUT_S = 30


@dataclass(slots=True)
class OneTurn:
    """The turn of a node."""

    taken: bool = False

    def take(self) -> bool:
        if self.taken:
            return False
        self.taken = True
        return True

    def give_back(self) -> None:
        assert self.taken
        self.taken = False


@dataclass(eq=False)
class Client:
    """A connection that sends a request piece by piece, as far as it is read."""

    memory: RequestMemory
    held: int = 0
    frames: int = 0
    reading: bool = True
    closed: str = ""

    def sends(self, size: int) -> None:
        while size and self.reading and not self.closed:
            piece = min(size, PIECE_BYTES)
            size -= piece
            self.held += piece
            self.memory.hold(self, self.held, frames=self.frames, unfinished=True)

    def completes(self) -> None:
        self.frames += 1
        self.held = 0
        self.memory.release(self)

    def pause_for_memory(self) -> None:
        assert self.reading, "paused twice"
        self.reading = False

    def resume_for_memory(self) -> None:
        assert not self.reading, "resumed twice"
        self.reading = True

    def give_up(self, reason: str) -> None:
        self.closed, self.held = reason, 0


@dataclass
class World:
    turn: OneTurn = field(default_factory=OneTurn)
    now_s: float = 0

    def __post_init__(self) -> None:
        self.memory = RequestMemory(LIMIT, TIMEOUT_S, lambda: self.now_s, self.turn)
        self.clients: list[Client] = []

    def client(self) -> Client:
        self.clients.append(Client(self.memory))
        return self.clients[-1]

    def sweeps(self) -> None:
        """Let so many sweeps pass that a turn that was given back is taken again."""
        for _ in range(SWEEPS_WITHOUT_TURN):
            self.memory.sweep()

    @property
    def held(self) -> int:
        return sum(client.held for client in self.clients)


def elsewhere() -> World:
    """A worker of a node whose turn another worker has."""
    return World(OneTurn(taken=True))


def test_requests_below_the_limit_arrive_side_by_side() -> None:
    world = World()
    for _ in range(3):
        world.client().sends(MIB)
    assert all(client.reading and not client.closed for client in world.clients)


def test_at_the_limit_long_requests_wait_and_the_oldest_goes_on_to_its_end() -> None:
    world = World()
    first, second, third = world.client(), world.client(), world.client()
    for _ in range(100):
        for client in world.clients:
            client.sends(PIECE_BYTES)
    assert first.held == 100 * PIECE_BYTES
    assert second.held + third.held <= LIMIT
    assert [second.reading, third.reading] == [False, False]
    first.completes()
    assert second.reading or third.reading
    for client in (second, third):
        while not client.reading:
            (third if client is second else second).completes()
            world.sweeps()
        client.sends(10 * MIB)
        client.completes()
    assert not world.turn.taken


def test_without_the_turn_nothing_goes_beyond_the_limit_until_it_is_to_be_had() -> None:
    world = elsewhere()
    for _ in range(20):
        world.client().sends(90 * MIB)
    assert world.held <= LIMIT + PIECE_BYTES
    waiting = [client for client in world.clients if not client.closed]
    assert not any(client.reading for client in waiting)
    world.turn.taken = False
    world.memory.sweep()
    assert [client.reading for client in waiting].count(True) == 1


def test_a_short_request_is_read_while_long_ones_fill_their_part() -> None:
    world = elsewhere()
    for _ in range(20):
        world.client().sends(90 * MIB)
    login = world.client()
    login.sends(2 * KIB)
    assert login.reading
    assert not login.closed
    login.completes()


def test_of_short_requests_the_oldest_is_closed_when_they_fill_their_part() -> None:
    world = World()
    slow = [world.client() for _ in range(MIB // (32 * KIB))]
    for client in slow:
        client.sends(32 * KIB)
    assert not any(client.closed for client in slow)
    new = world.client()
    new.sends(1)
    assert slow[0].closed == "other clients need the memory of its unfinished request (kafka.dt.request.buffer.bytes)"
    assert not any(client.closed for client in (*slow[1:], new))


def test_a_request_too_many_waits_in_its_first_piece_and_can_be_closed_for_others() -> None:
    world = elsewhere()
    while world.held < LONG_PART:
        world.client().sends(LONG_PART)
    waiting = [world.client() for _ in range(50)]
    for client in waiting:
        client.sends(10 * MIB)
    assert world.held <= LIMIT + 2 * PIECE_BYTES
    assert waiting[0].closed
    assert not waiting[-1].closed
    assert not waiting[-1].reading


def test_clients_that_have_not_logged_in_keep_no_long_request_waiting() -> None:
    world = World()
    for _ in range(20):
        stranger = world.client()
        for size in (SHORT_BYTES, 512 * KIB):
            world.memory.hold(stranger, size, frames=0, unfinished=True, logged_in=False)
    assert [bool(client.closed) for client in world.clients] == [True] * 18 + [False] * 2
    long = world.client()
    long.sends(LONG_PART)
    assert long.reading
    assert not world.turn.taken


def test_a_request_that_has_not_arrived_in_time_is_closed_also_while_it_waits_for_memory() -> None:
    world = elsewhere()
    slow, waiting = world.client(), world.client()
    slow.sends(1)
    waiting.sends(90 * MIB)
    assert not waiting.reading
    world.now_s = TIMEOUT_S - 1
    slow.sends(1)
    late = world.client()
    late.sends(1)
    world.memory.sweep()
    assert not slow.closed
    world.now_s = TIMEOUT_S
    world.memory.sweep()
    assert slow.closed == waiting.closed == "a request has not arrived within 30 s"
    assert not late.closed


def test_a_client_whose_requests_go_on_ending_has_time_for_each() -> None:
    world = World()
    client = world.client()
    for _ in range(10):
        world.now_s += TIMEOUT_S - 1
        client.frames += 1
        client.sends(100)
        world.memory.sweep()
    assert not client.closed


def test_time_stands_still_while_the_node_does_not_take_the_request() -> None:
    world = World()
    client = world.client()
    client.sends(100)
    world.memory.hold(client, 200, frames=0, unfinished=False)
    world.now_s = 10 * TIMEOUT_S
    world.memory.sweep()
    client.sends(100)
    world.now_s += TIMEOUT_S - 1
    world.memory.sweep()
    assert not client.closed
    world.now_s += 1
    world.memory.sweep()
    assert client.closed


def test_who_held_the_turn_and_has_gone_gives_it_to_the_next() -> None:
    world = World()
    first, second = world.client(), world.client()
    first.sends(90 * MIB)
    second.sends(90 * MIB)
    assert not second.reading
    world.memory.release(first)
    world.sweeps()
    assert second.reading
    world.memory.release(second)
    assert not world.turn.taken


@pytest.mark.parametrize("early", [True, False])
def test_a_worker_whose_large_requests_never_end_leaves_the_turn_to_another(*, early: bool) -> None:
    turn = OneTurn()
    here, there = World(turn), World(turn)
    for _ in range(5):
        here.client().sends(90 * MIB)
    other = there.client()
    other.sends(90 * MIB)
    assert not other.reading
    for _ in range(SWEEPS_WITHOUT_TURN):
        if early:
            there.memory.sweep()
        for client in here.clients:
            if client.reading:
                client.completes()
            client.sends(90 * MIB)
        if not early:
            there.memory.sweep()
        here.memory.sweep()
    assert other.reading
    other.completes()
    here.sweeps()
    assert any(client.reading for client in here.clients)


def test_of_unread_answers_the_oldest_is_closed_and_one_alone_may_be_of_any_size() -> None:
    world = World()
    first, second, third = world.client(), world.client(), world.client()
    world.memory.unread(first, 3 * LIMIT)
    assert not first.closed
    world.memory.read(first)
    world.memory.unread(second, LIMIT)
    world.memory.unread(third, 1)
    assert second.closed == "other clients need the memory of its unread answers (kafka.dt.request.buffer.bytes)"
    assert [first.closed, third.closed] == ["", ""]


@pytest.mark.parametrize("seed", range(20))
def test_whatever_clients_do_the_limit_holds_and_no_client_waits_for_ever(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a test's choices
    world = World()
    for _ in range(400):
        world.now_s += 0.1
        client = chance.choice(world.clients) if world.clients and chance.random() < 0.8 else world.client()
        match chance.randrange(6):
            case 0 if client.held and client.reading:
                client.completes()
            case 1 if client.held:
                client.held = 0
                client.closed = "gone"
                world.memory.release(client)
            case _:
                client.sends(chance.choice([1, SHORT_BYTES, PIECE_BYTES, MIB]))
        world.sweeps()
        beyond = max((client.held for client in world.clients), default=0)
        assert world.held <= LIMIT + 2 * PIECE_BYTES + beyond
        waiting = [client for client in world.clients if not client.closed and not client.reading]
        assert not waiting or world.turn.taken
    world.now_s += TIMEOUT_S
    world.memory.sweep()
    assert world.held == 0
    assert not world.turn.taken
    assert all(client.reading or client.closed for client in world.clients)


# What it costs


def steps(action: Callable[[], object]) -> int:
    """Count the instructions of Python that an action takes, without those of a collector's callbacks."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> TraceFunction:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    gc.disable()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


def crowd(strangers: int, waiting: int, reading: int) -> World:
    """A worker with so many connections that hold something; those that are read are long."""
    world = elsewhere()
    for _ in range(strangers):
        world.client().sends(1)
    for _ in range(reading):
        world.client().sends(SHORT_BYTES + 1)
    if waiting:
        world.client().sends(LONG_PART)
    for _ in range(waiting):
        world.client().sends(SHORT_BYTES + 1)
    return world


def costs(strangers: int, waiting: int, reading: int) -> list[int]:
    """Count the steps of what clients and the clock can cause again and again."""
    world = crowd(strangers, waiting, reading)
    stranger, long = world.client(), world.client()
    return [
        steps(lambda: world.memory.hold(stranger, 1, frames=0, unfinished=True, logged_in=False)),
        steps(lambda: world.memory.hold(stranger, 2, frames=0, unfinished=True, logged_in=False)),
        steps(lambda: world.memory.release(stranger)),
        steps(lambda: world.memory.hold(long, SHORT_BYTES + 1, frames=0, unfinished=True)),
        steps(lambda: world.memory.hold(long, SHORT_BYTES + 2, frames=0, unfinished=True)),
        steps(lambda: world.memory.release(long)),
        steps(world.memory.sweep),
    ]


@pytest.mark.parametrize("crowded", [(2_000, 0, 0), (10, 10, 0), (0, 0, 40)])
def test_what_a_connection_costs_does_not_depend_on_how_many_others_there_are(crowded: tuple[int, int, int]) -> None:
    few = tuple(min(number, 2) for number in crowded)
    assert costs(*crowded) == costs(*few)


def test_what_the_request_with_the_turn_costs_does_not_depend_on_how_many_wait() -> None:
    def cost(others: int) -> int:
        world = World()
        first = world.client()
        first.sends(SHORT_BYTES + 1)
        for _ in range(others):
            world.client().sends(SHORT_BYTES + 1)
        first.sends(LIMIT)
        assert first.reading
        assert not any(client.reading for client in world.clients[1:])
        return steps(lambda: world.memory.hold(first, first.held + 1, frames=0, unfinished=True))

    assert cost(40) == cost(1)


# The settings


def test_kafkas_setting_counts_where_it_is_set() -> None:
    assert request_buffer_bytes(Settings()) == 256 * MIB
    assert request_buffer_bytes(Settings(queued_max_request_bytes=200 * MIB)) == 200 * MIB


def test_kafkas_setting_admits_the_largest_request_as_at_a_broker() -> None:
    with pytest.raises(ConfigError, match=r"queued\.max\.request\.bytes.*socket\.request\.max\.bytes"):
        request_buffer_bytes(Settings(queued_max_request_bytes=100 * MIB - 1))


def test_one_process_of_a_node_has_the_turn_at_a_time_and_gives_it_back_when_it_ends() -> None:
    with node_memory(turn=0) as memory:
        descriptor = memory["turn"]
        turn = NodeTurn(descriptor)
        assert turn.take()
        assert "False" in taken_by_another_process(descriptor)
        turn.give_back()
        assert "True" in taken_by_another_process(descriptor)
        assert turn.take()


def taken_by_another_process(descriptor: int) -> str:
    program = f"from kafka_dt.processes.node_memory import NodeTurn; print(NodeTurn({descriptor}).take())"
    command = [sys.executable, "-c", program]
    return subprocess.run(command, pass_fds=[descriptor], capture_output=True, check=True, text=True).stdout


# The connection


def strained(shell_limit: int = LIMIT) -> RequestMemory:
    return RequestMemory(shell_limit, TIMEOUT_S, lambda: 0, OneTurn(taken=True))


async def test_a_connection_is_read_no_more_while_there_is_no_memory_and_then_served() -> None:
    memory = strained()
    other = Client(memory)
    other.sends(90 * MIB)
    shell = Shell(unused, memory=memory)
    whole = frame(bytes(200 * KIB))
    shell.send(whole[: 100 * KIB])
    assert not shell.transport.reading
    memory.release(other)
    assert shell.transport.reading
    shell.connection.abort()
    await turns()
    assert not memory._long.held
    assert not memory._short.held


async def test_a_connection_that_waits_for_its_answer_and_for_memory_is_read_when_it_has_both() -> None:
    memory = strained()
    shell = Shell(unused, memory=memory)
    reading = shell.connection.reading
    reading.pause()
    reading.pause_for_memory()
    reading.resume()
    assert not shell.transport.reading
    reading.pause()
    reading.resume_for_memory()
    assert not shell.transport.reading
    reading.resume()
    assert shell.transport.reading


async def test_a_request_that_comes_whole_costs_no_account() -> None:
    memory = strained()
    shell = Shell(unused, memory=memory)
    shell.ask(ApiKey.API_VERSIONS, 0)
    assert len(shell.answers()) == 1
    assert not memory._short.held
    shell.send(b"\0")
    assert len(memory._short.held) == 1
    shell.send(b"\0\0\x0a" + b"\0\x12\0\0" + b"\0\0\0\1\xff\xff")
    assert not memory._short.held


async def test_a_gateway_does_not_count_what_waits_for_the_upstream() -> None:
    memory = strained()
    shell = GatewayShell(memory=memory)
    shell.send(request(JOIN_GROUP, 1)[:6])
    assert len(memory._short.held) == 1
    shell.send(request(JOIN_GROUP, 1)[6:])
    upstream = await shell.upstream()
    upstream.listener.upstream_full()
    shell.send(request(JOIN_GROUP, 2, bytes(200 * KIB)))
    assert not memory._short.held
    assert not memory._long.held
    upstream.listener.upstream_writable()
    assert len(upstream.written) > 200 * KIB
