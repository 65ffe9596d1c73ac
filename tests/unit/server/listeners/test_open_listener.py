"""One open port of one worker, on real sockets of this machine: accepting, idling, draining."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import cast

import pytest
import uvloop

from kafka_dt.config import Settings
from kafka_dt.server.listeners import listener
from kafka_dt.server.listeners.gates import Gate
from kafka_dt.server.listeners.listener import Lifetimes
from tests.support.processes.ports import free_ports
from tests.support.server.open_listener import HOST, TIMEOUT_S, RecordedConnection, World, ended, open_marked, opened

pytestmark = pytest.mark.usefixtures("steady_time")


class Unread(RecordedConnection):
    """Its client does not read what is left, so that closing alone does not end it."""

    def close(self) -> None:
        self.done.append("close")
        self.closing = True


async def test_an_idle_connection_is_closed_and_one_that_speaks_is_not() -> None:
    async with opened(max_idle_ms=200) as world:
        idle, speaking = await world.client(), await world.client()
        world.connections[1].last_received += 3600
        await ended(idle)
        assert len(world.listener) == 1
        await world.listener.drain(1)
        await ended(speaking)


async def test_clients_that_come_while_the_worker_is_busy_wait_in_the_kernel() -> None:
    async with opened() as world:
        clients = [socket.create_connection((HOST, world.port), timeout=TIMEOUT_S) for _ in range(200)]
        assert len(world.listener) == 0, "nothing was accepted meanwhile"
        while len(world.listener) < len(clients):  # noqa: ASYNC110 - a listener sends no events
            await asyncio.sleep(0.001)
        for client in clients:
            client.close()


def test_a_negative_idle_time_keeps_connections() -> None:
    assert Lifetimes.from_settings(Settings(connections_max_idle_ms=-1)).max_idle_s is None
    assert Lifetimes.from_settings(Settings(connections_max_idle_ms=0)).max_idle_s == 0


async def test_a_connection_that_is_silent_or_slow_before_its_login_hears_that_it_is_overdue_once() -> None:
    async with opened(login_s=0.05) as world:
        reader, writer = await world.client()
        while not world.connections[0].done:
            writer.write(b"x")  # a byte now and then gives no more time
            await asyncio.sleep(0.005)
        with suppress(ConnectionResetError):  # by a byte that came after the closing
            assert await reader.read() == b""
        assert world.connections[0].done == ["overdue", "close"]
        writer.close()


async def test_a_connection_that_has_gone_is_not_waited_for() -> None:
    async with opened(login_s=3600) as world:
        client = await world.client()
        assert len(world.listener.deadlines) == 1
        world.connections[0].close()
        await ended(client)
        while world.listener.deadlines:  # noqa: ASYNC110 - a listener sends no events
            await asyncio.sleep(0.001)


async def test_a_connection_with_a_request_under_way_is_not_idle() -> None:
    async with opened(max_idle_ms=20) as world:
        busy = await world.client()
        world.connections[0].busy = True
        await ended_after_a_sweep(world)
        assert world.connections[0].done == []
        world.connections[0].busy = False
        await ended(busy)


async def ended_after_a_sweep(world: World) -> None:
    """Wait until another connection has been found idle."""
    await ended(await world.client())


async def test_an_idle_client_that_does_not_read_what_is_left_for_it_is_cut_off() -> None:
    async with opened(max_idle_ms=20, kind=Unread) as world:
        reader, writer = await world.client()
        assert await reader.read() == b""
        assert world.connections[0].done == ["close", "abort"]
        writer.close()
        await writer.wait_closed()


class Unclosable(RecordedConnection):
    """Something in it is broken."""

    def close(self) -> None:
        raise RuntimeError("it does not close")


async def test_a_connection_that_cannot_be_closed_does_not_end_the_looking_for_idle_ones(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with opened(max_idle_ms=20, kind=Unclosable) as world:
        await ended(await world.client())
        world._kind = RecordedConnection
        await ended(await world.client())
        assert world.connections[0].done == ["abort"]
        assert "it does not close" in caplog.text


async def test_a_connection_too_many_is_closed_at_once_and_there_is_room_when_another_has_gone() -> None:
    async with opened(max_connections=2) as world:
        first, second = await world.client(), await world.client()
        await ended(await asyncio.open_connection(HOST, world.port))
        assert len(world.listener) == len(world.connections) == 2
        world.connections[0].close()
        await ended(first)
        third = await world.client()
        await world.listener.drain(1)
        await ended(second)
        await ended(third)


async def test_connections_are_retired_at_their_age_and_those_that_have_gone_are_forgotten() -> None:
    async with opened(max_age_s=0.1) as world:
        started = asyncio.get_running_loop().time()
        gone, *others = [await world.client() for _ in range(4)]
        world.connections[0].close()
        await ended(gone)
        for client in others:
            await ended(client)
        assert asyncio.get_running_loop().time() - started >= 0.09
        assert [connection.done for connection in world.connections] == [["close"], *3 * [["retire", "close"]]]
        assert not world.listener._retirements


class ByHand(Gate):
    """A gate that the test closes and opens."""

    def accepted(self, transport: asyncio.BaseTransport) -> None:
        assert transport.get_extra_info("peername")

    def close(self) -> None:
        self._close()

    def open(self) -> None:
        self._open()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_clients_wait_while_a_gate_is_closed_and_are_served_when_all_are_open(run: Callable[..., None]) -> None:
    run(hold_and_release())


async def hold_and_release() -> None:
    one, two = ByHand(), ByHand()
    async with opened(gates=[one, two]) as world:
        before = await world.client()
        one.close()
        two.close()
        await asyncio.sleep(0)
        waiting = [await asyncio.open_connection(HOST, world.port) for _ in range(3)]
        port = free_ports(1)
        open_marked(world, port, b"1")
        waiting.append(await asyncio.open_connection(HOST, port))
        one.open()
        await asyncio.sleep(0.05)  # nothing is to happen
        assert len(world.listener) == 1
        two.open()
        one.close()
        one.open()
        while len(world.listener) < 5:  # noqa: ASYNC110 - a listener sends no events
            await asyncio.sleep(0.001)
        await world.listener.drain(1)
        for client in (before, *waiting):
            client[1].close()


async def test_draining_closes_the_port_and_the_idle_and_waits_for_the_busy() -> None:
    async with opened() as world:
        idle, busy = await world.client(), await world.client()
        world.connections[1].busy = True
        draining = asyncio.create_task(world.listener.drain(TIMEOUT_S))
        await ended(idle)
        assert not draining.done()
        with pytest.raises(OSError, match=r"refused|Connect call failed"):
            await asyncio.open_connection(HOST, world.port)
        world.connections[1].close()
        await draining
        await ended(busy)


class Dated(RecordedConnection):
    """Says when it was told to finish."""

    finished_s = 0.0

    def finish(self) -> None:
        self.finished_s = asyncio.get_running_loop().time()
        super().finish()


async def test_draining_closes_the_silent_first_and_the_connections_of_a_client_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener, "CLOSINGS_PER_SECOND", 20)
    async with opened(kind=Dated) as world:
        clients = [await world.client() for _ in range(11)]
        connections = cast("list[Dated]", list(world.connections))
        for number, connection in enumerate(connections):
            connection.client_name = f"10.0.0.7 client-{number // 2}"
        silent = connections.pop()
        silent.last_received -= 3600
        connections[0].last_received -= 3600  # its client is at work on another connection
        begun_s = asyncio.get_running_loop().time()
        await world.listener.drain(TIMEOUT_S)
        after = [connection.finished_s - begun_s for connection in connections]
        assert 0 <= silent.finished_s - begun_s < min(after)
        assert max(after) < len(connections) / 20
        assert after[::2] == pytest.approx(after[1::2]), "the connections of a client close together"
        assert max(after) - min(after) > 0.1, "the clients come one after the other"
        for client in clients:
            await ended(client)


async def test_draining_closes_all_connections_in_half_of_its_time_however_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener, "CLOSINGS_PER_SECOND", 0.001)
    async with opened() as world:
        client = await world.client()
        begun_s = asyncio.get_running_loop().time()
        await world.listener.drain(0.4)
        await ended(client)
        assert world.connections[0].done == ["finish", "close"]
        assert asyncio.get_running_loop().time() - begun_s < 0.2


async def test_draining_cuts_off_what_takes_longer_than_its_grace() -> None:
    async with opened() as world:
        busy = await world.client()
        world.connections[0].busy = True
        await world.listener.drain(0.01)
        await ended(busy)
        assert world.connections[0].done == ["finish", "abort"]
