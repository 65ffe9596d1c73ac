"""The ports of a listener, on real sockets of this machine: opening, sharing, binding and closing them."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kafka_dt.config import Endpoint
from kafka_dt.server.listeners import open_port
from kafka_dt.server.listeners.open_port import bind
from tests.support.processes.ports import free_ports
from tests.support.server.open_listener import HOST, TIMEOUT_S, World, ended, open_marked, opened

pytestmark = pytest.mark.usefixtures("steady_time")


async def test_a_listener_takes_connections_on_several_ports_and_closes_one_alone() -> None:
    async with opened() as world:
        one = free_ports(2)
        two = one + 1
        open_marked(world, one, b"1")
        open_marked(world, two, b"2")
        by_one, by_two = await asyncio.open_connection(HOST, one), await asyncio.open_connection(HOST, two)
        assert await by_one[0].readexactly(1) == b"1"
        assert await by_two[0].readexactly(1) == b"2"
        assert len(world.listener) == 2
        world.listener.close_port(one)
        with pytest.raises(OSError, match=r"refused|Connect call failed"):
            await asyncio.open_connection(HOST, one)
        assert len(world.listener) == 2
        await world.listener.drain(1)
        await ended(by_one)
        await ended(by_two)
        with pytest.raises(OSError, match=r"refused|Connect call failed"):
            await asyncio.open_connection(HOST, two)


async def test_a_port_can_be_connected_to_as_soon_as_it_has_been_opened() -> None:
    async with opened() as world:
        port = free_ports(1)
        open_marked(world, port, b"1")
        with socket.create_connection((HOST, port), timeout=TIMEOUT_S) as client:
            client.setblocking(False)
            assert await asyncio.get_running_loop().sock_recv(client, 1) == b"1"


async def test_a_port_that_cannot_be_accepted_from_at_first_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is listened on already: without another attempt its clients would wait for ever."""
    loop = asyncio.get_running_loop()
    create_server = loop.create_server

    async def failing_once(_new_protocol: Any, **keywords: Any) -> asyncio.Server:
        monkeypatch.setattr(loop, "create_server", create_server)
        keywords["sock"].close()
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(open_port, "RETRY_SECONDS", 0.01)
    async with opened() as world:
        port = free_ports(1)
        monkeypatch.setattr(loop, "create_server", failing_once)
        open_marked(world, port, b"1")
        async with asyncio.timeout(TIMEOUT_S):
            reader, writer = await asyncio.open_connection(HOST, port)
            assert await reader.readexactly(1) == b"1"
        assert "Too many open files" in caplog.text
        writer.close()


async def test_a_port_that_is_closed_before_the_loop_got_to_it_is_closed() -> None:
    async with opened() as world:
        port = free_ports(1)
        open_marked(world, port, b"1")
        world.listener.close_port(port)
        world.listener.close_port(port)
        with pytest.raises(OSError, match=r"refused|Connect call failed"):
            await asyncio.open_connection(HOST, port)
        open_marked(world, port, b"2")
        open_marked(world, port, b"not this one")
        reader, writer = await asyncio.open_connection(HOST, port)
        assert await reader.readexactly(1) == b"2"
        writer.close()


async def test_a_listener_that_drains_opens_no_port() -> None:
    async with opened() as world:
        port = free_ports(1)
        await world.listener.drain(0)
        open_marked(world, port, b"1")
        with pytest.raises(OSError, match=r"refused|Connect call failed"):
            await asyncio.open_connection(HOST, port)


async def test_the_limit_of_connections_counts_all_ports() -> None:
    async with opened(max_connections=1) as world:
        port = free_ports(1)
        open_marked(world, port, b"1")
        first = await world.client()
        await ended(await asyncio.open_connection(HOST, port))
        await world.listener.drain(1)
        await ended(first)


async def test_workers_of_a_node_share_its_ports_and_those_of_another_node_do_not() -> None:
    async with opened() as world, opened() as sibling, opened() as stranger:
        port = free_ports(1)
        open_marked(world, port, b"1", node="ours")
        with sharing(sibling):
            open_marked(sibling, port, b"2", node="ours")
        with pytest.raises(OSError, match="another node"):
            open_marked(stranger, port, b"3", node="theirs")
        world.listener.close_port(port)
        reader, writer = await asyncio.open_connection(HOST, port)
        assert await reader.readexactly(1) == b"2"
        writer.close()
        sibling.listener.close_port(port)
        open_marked(stranger, port, b"3", node="theirs")


@contextmanager
def sharing(_world: World) -> Iterator[None]:
    """Be another process of the same node."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.getpid", lambda: 1)
        yield


async def test_a_port_of_somebody_who_does_not_share_it_cannot_be_had_and_nothing_is_left_of_the_try() -> None:
    async with opened() as world:
        with bind(Endpoint("A", HOST, 0), shared=False) as other:
            other.listen()
            port = int(other.getsockname()[1])
            with pytest.raises(OSError, match="in use"):
                open_marked(world, port, b"1")
        open_marked(world, port, b"1")
        reader, writer = await asyncio.open_connection(HOST, port)
        assert await reader.readexactly(1) == b"1"
        writer.close()


def test_a_shared_port_can_be_bound_again_and_an_unshared_one_cannot() -> None:
    with bind(Endpoint("A", HOST, 0)) as first:
        endpoint = Endpoint("A", HOST, int(first.getsockname()[1]))
        with bind(endpoint):
            pass
        first.listen()
        with pytest.raises(OSError, match="in use"):
            bind(endpoint, shared=False)


def test_an_empty_host_is_every_address_of_both_families() -> None:
    with bind(Endpoint("A", "", 0)) as every:
        every.listen()
        port = int(every.getsockname()[1])
        socket.create_connection((HOST, port), timeout=TIMEOUT_S).close()
        if every.family is socket.AF_INET6:
            socket.create_connection(("::1", port), timeout=TIMEOUT_S).close()


def test_an_address_of_somebody_else_cannot_be_bound() -> None:
    with pytest.raises(OSError, match="assign"):
        bind(Endpoint("A", "192.0.2.1", 0))
