"""Ports for brokers that come and go, on real sockets of this machine."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

import pytest

from kafka_dt.config import Endpoint, Listener, SecurityProtocol
from kafka_dt.gateway import PortListener
from kafka_dt.gateway import addresses as module
from kafka_dt.gateway.addresses import BrokerAddresses, BrokerPorts
from kafka_dt.server.listeners.deadlines import LoginConnection
from kafka_dt.server.listeners.listener import Lifetimes, OpenListener
from kafka_dt.server.listeners.open_port import bind
from tests.support.processes.ports import free_ports
from tests.support.server.parts import admission

HOST = "127.0.0.1"
WITHIN_S = 60.0
NONE: frozenset[int] = frozenset()


class SaysBroker(asyncio.Protocol):
    """Tells the client which listener and broker it has come to."""

    def __init__(self, text: str) -> None:
        self._text = text

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).write(self._text.encode())
        cast("asyncio.Transport", transport).close()

    def login_overdue(self) -> None:
        """Be closed already."""


@dataclass
class World:
    """A worker's listeners and the ports of its brokers."""

    ports: BrokerPorts
    listeners: list[PortListener]

    def port(self, broker_id: int, listener: int = 0) -> int:
        base = self.listeners[listener].listener.broker_port_base
        assert base is not None
        return base + broker_id

    async def met(self, broker_id: int, listener: int = 0) -> str:
        reader, writer = await asyncio.open_connection(HOST, self.port(broker_id, listener))
        text = (await asyncio.wait_for(reader.read(), WITHIN_S)).decode()
        writer.close()
        return text

    def refused(self, broker_id: int) -> bool:
        with socket.socket() as client:
            return client.connect_ex((HOST, self.port(broker_id))) != 0


@asynccontextmanager
async def worker(*bases: int, node: str = "node", own_port: int = 1) -> AsyncIterator[World]:
    listeners = []
    for base in bases:
        listener = Listener(
            bind=Endpoint(f"L{base}", HOST, own_port),
            advertised=Endpoint(f"L{base}", HOST, 0),
            security_protocol=SecurityProtocol.PLAINTEXT,
            broker_port_base=base,
        )
        opened = OpenListener(
            listener.bind,
            backlog=10,
            lifetimes=Lifetimes(login_s=30),
            admission=admission(),
        )
        listeners.append(PortListener(listener, opened, speaking(listener)))
    world = World(BrokerPorts(BrokerAddresses([each.listener for each in listeners]), listeners, node=node), listeners)
    try:
        async with asyncio.timeout(WITHIN_S):
            yield world
    finally:
        world.ports.close()
        for each in listeners:
            await each.opened.drain(0)


def speaking(listener: Listener) -> Callable[[int], LoginConnection]:
    return lambda broker_id: SaysBroker(f"{listener.name} {broker_id}")


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110 - timers send no events
        await asyncio.sleep(0.005)


async def another_try(ports: BrokerPorts) -> None:
    before = dict(ports._retrying)
    await until(lambda: ports._retrying != before)


async def test_every_broker_has_a_port_on_every_listener_as_soon_as_it_has_come() -> None:
    base = free_ports(20)
    async with worker(base, base + 10) as world:
        world.ports.brokers_changed(frozenset({0, 3}), NONE)
        assert not world.refused(0)
        assert await world.met(0) == f"L{base} 0"
        assert await world.met(3) == f"L{base} 3"
        assert await world.met(3, listener=1) == f"L{base + 10} 3"
        assert world.refused(1)
        world.ports.brokers_changed(frozenset({1}), NONE)
        assert await world.met(1) == f"L{base} 1"


async def test_a_broker_that_comes_back_soon_keeps_its_port() -> None:
    base = free_ports(5)
    async with worker(base) as world:
        world.ports.brokers_changed(frozenset({1}), NONE)
        world.ports.brokers_changed(NONE, frozenset({1}))
        assert await world.met(1) == f"L{base} 1"
        world.ports.brokers_changed(frozenset({1}), NONE)
        assert world.ports._closing == {}
        assert await world.met(1) == f"L{base} 1"


async def test_the_port_of_a_broker_that_stays_away_is_closed_and_opened_again_when_it_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "GONE_SECONDS", 0.02)
    base = free_ports(5)
    async with worker(base) as world:
        world.ports.brokers_changed(frozenset({1, 2}), NONE)
        world.ports.brokers_changed(NONE, frozenset({1}))
        # Not asked of the port itself: asyncio loses a connection that comes in the turn in which its server closes.
        await until(lambda: not world.ports._closing)
        assert world.refused(1)
        assert await world.met(2) == f"L{base} 2"
        world.ports.brokers_changed(frozenset({1}), NONE)
        assert await world.met(1) == f"L{base} 1"


async def test_a_port_that_somebody_has_is_one_line_and_opened_when_it_is_free(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    caplog.set_level(logging.INFO)
    base = free_ports(5)
    async with worker(base) as world:
        with bind(Endpoint("OTHER", HOST, base + 1), shared=False) as other:
            other.listen()
            world.ports.brokers_changed(frozenset({1, 2}), NONE)
            assert await world.met(2) == f"L{base} 2"
            for _ in range(3):
                await another_try(world.ports)
            (line,) = caplog.messages
            assert line.startswith(f"Port {base + 1} cannot be opened for upstream broker 1 on listener L{base}")
            assert "in use" in line
        await until(lambda: len(caplog.messages) == 2)
        assert caplog.messages[1] == f"Port {base + 1} of upstream broker 1 on listener L{base} is open"
        assert await world.met(1) == f"L{base} 1"


async def test_a_broker_that_has_gone_before_its_port_could_be_had_is_tried_no_more(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GONE_SECONDS", 0.01)
    base = free_ports(5)
    async with worker(base) as world:
        with bind(Endpoint("OTHER", HOST, base + 1), shared=False) as other:
            other.listen()
            world.ports.brokers_changed(frozenset({1}), NONE)
            world.ports.brokers_changed(NONE, frozenset({1}))
            await until(lambda: not world.ports._closing)
        assert world.ports._retrying == {}
        assert world.refused(1)
        assert len(caplog.messages) == 1


async def test_a_broker_without_a_port_is_one_line_and_the_others_are_served(caplog: pytest.LogCaptureFixture) -> None:
    base = free_ports(5)
    async with worker(base, own_port=base + 1) as world:
        world.ports.brokers_changed(frozenset({1, 2}), NONE)
        assert await world.met(2) == f"L{base} 2"
        assert world.refused(1)
        (line,) = caplog.messages
        assert line.startswith(f"Listener L{base} has no port for upstream broker 1: ")


async def test_no_port_is_opened_or_closed_after_the_end() -> None:
    base = free_ports(5)
    async with worker(base) as world:
        world.ports.brokers_changed(frozenset({1}), NONE)
        world.ports.close()
        world.ports.brokers_changed(frozenset({2}), frozenset({1}))
        assert world.refused(2)
        assert world.ports._closing == {}


async def test_another_node_with_the_same_ports_gets_none_of_our_clients(caplog: pytest.LogCaptureFixture) -> None:
    base = free_ports(5)
    async with worker(base, node="ours") as world, worker(base, node="theirs") as other:
        world.ports.brokers_changed(frozenset({1}), NONE)
        other.ports.brokers_changed(frozenset({1}), NONE)
        assert "another node of this machine has the port" in caplog.text
        world.listeners[0].opened.close_port(base + 1)
        assert world.refused(1)
