"""Which connection is one too many, and that what is admitted behaves as if nothing stood before it."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from dataclasses import replace
from typing import Any, cast

import pytest

from kafka_dt.config import ConfigError, Settings, from_properties
from kafka_dt.server.listeners.admission import MAX_LISTENERS, WAYS, Admission, AdmittedConnection, row_bytes
from kafka_dt.server.listeners.deadlines import LoginConnection, LoginDeadlines
from tests.support.server.fake_transport import listener
from tests.support.server.parts import admission as admission_of
from tests.support.server.parts import connection_counts

ACCEPTED: list[object] = []
ALICE, BOB = ("192.0.2.1", 50000), ("192.0.2.2", 50000)


def admission(**limits: object) -> Admission:
    texts = {f"max.connections{key}".replace("_", "."): str(value) for key, value in limits.items()}
    return admission_of(from_properties(texts).settings)


def test_without_limits_everybody_comes_in() -> None:
    open_to_all = admission()
    assert {open_to_all.enter((f"192.0.2.{number % 3}", number)) for number in range(1000)} == {None}


def test_the_limit_counts_all_addresses_and_gives_room_back() -> None:
    two = admission_of(Settings(max_connections=2))
    assert two.enter(ALICE) is None
    assert two.enter(BOB) is None
    assert two.enter(BOB) == "there are 2 connections, no more are allowed (max.connections)"
    two.leave(ALICE)
    assert two.enter(BOB) is None


def test_a_limit_of_0_lets_no_connection_in() -> None:
    none = admission_of(from_properties({"max.connections": "0"}).settings)
    assert none.enter(ALICE) == "there are 0 connections, no more are allowed (max.connections)"
    closed, free = (
        admission_of(listeners=[replace(listener(), max_connections=0), listener()], by=place) for place in (0, 1)
    )
    assert (
        closed.enter(ALICE) == "its listener has 0 connections, no more are allowed (max.connections of the listener)"
    )
    assert free.enter(ALICE) is None


def test_the_limit_of_an_address_counts_no_other() -> None:
    one = admission(_per_ip=1)
    assert one.enter(ALICE) is None
    assert (
        one.enter(("192.0.2.1", 50001)) == "its address has 1 connections, no more are allowed (max.connections.per.ip)"
    )
    assert one.enter(BOB) is None
    one.leave(ALICE)
    assert one.enter(ALICE) is None


def test_what_was_refused_is_not_counted() -> None:
    one = admission(_per_ip=1)
    one.enter(ALICE)
    for _ in range(10):
        assert one.enter(ALICE) is not None
    one.leave(ALICE)
    assert one.enter(ALICE) is None


@pytest.mark.parametrize("waits", [True, False])
def test_what_was_refused_is_told(waits: bool) -> None:
    """Also of a connection whose client is still to be named, or the alert stays silent behind a load balancer."""
    told: list[None] = []
    one = admission_of(Settings(max_connections=1), refused=lambda: told.append(None))
    for _ in range(3):
        one.begin_wait() if waits else one.enter(ALICE)
    assert len(told) == 2


def test_an_override_counts_in_place_of_the_limit() -> None:
    few = admission(_per_ip=0, _per_ip_overrides="192.0.2.1:2, localhost:1,[2001:db8::1]:1,")
    assert few.enter(ALICE) is few.enter(ALICE) is None
    assert few.enter(ALICE) is not None
    assert few.enter(BOB) is not None
    assert few.enter(("127.0.0.1", 1)) is None
    assert few.enter(("2001:db8::1", 1, 0, 0)) is None


def test_an_ipv4_client_of_an_ipv6_socket_is_the_same_client() -> None:
    one = admission(_per_ip=1)
    assert one.enter(("::ffff:192.0.2.1", 50000, 0, 0)) is None
    assert one.enter(ALICE) is not None


@pytest.mark.parametrize("peer", [None, (), "", ("not an address", 1)])
def test_a_client_without_an_address_counts_too(peer: Any) -> None:
    one = admission(_per_ip=1)
    assert one.enter(peer) is None
    assert one.enter(None) is not None
    one.leave(peer)
    assert one.enter(peer) is None


@pytest.mark.parametrize(
    "text", ["192.0.2.1", ":1", "192.0.2.1:", "192.0.2.1:-1", "192.0.2.1:many", "no.such.invalid:1", "a..b:1"]
)
def test_an_override_that_cannot_be_used_is_an_error_that_names_the_key(text: str) -> None:
    with pytest.raises(ConfigError, match=r"max\.connections\.per\.ip\.overrides"):
        admission(_per_ip_overrides=text)


def test_the_limit_of_a_listener_counts_no_other_listener() -> None:
    two = [replace(listener(), max_connections=1), listener()]
    counts = connection_counts()
    limited, free = (admission_of(listeners=two, counts=counts, by=place) for place in (0, 1))
    assert limited.enter(ALICE) is free.enter(ALICE) is None
    assert limited.enter(BOB) == (
        "its listener has 1 connections, no more are allowed (max.connections of the listener)"
    )
    assert free.enter(BOB) is None
    limited.leave(ALICE)
    assert limited.enter(BOB) is None


# The node


def workers(count: int, settings: Settings) -> list[Admission]:
    memory = bytearray(count * row_bytes())
    return [admission_of(settings, counts=connection_counts(memory, number)) for number in range(count)]


def test_the_limit_counts_the_connections_of_all_workers() -> None:
    first, second = workers(2, Settings(max_connections=3))
    assert [first.enter(ALICE), second.enter(BOB), second.enter(ALICE)] == [None, None, None]
    assert first.enter(BOB) is not None
    assert second.enter(BOB) is not None
    second.leave(BOB)
    assert first.enter(BOB) is None


def test_the_limit_of_an_address_counts_those_of_all_workers() -> None:
    first, second = workers(2, Settings(max_connections_per_ip=2))
    assert first.enter(ALICE) is second.enter(("::ffff:192.0.2.1", 50000, 0, 0)) is None
    assert first.enter(ALICE) is not None
    assert second.enter(ALICE) is not None
    assert second.enter(BOB) is first.enter(BOB) is None
    second.leave(ALICE)
    assert first.enter(ALICE) is None


def test_the_successor_of_a_killed_worker_begins_with_no_connections() -> None:
    memory = bytearray(2 * row_bytes())
    settings = Settings(max_connections=2, max_connections_per_ip=2)
    killed, other = (admission_of(settings, counts=connection_counts(memory, number)) for number in (0, 1))
    killed.enter(ALICE)
    other.enter(ALICE)
    assert other.enter(ALICE) is not None
    successor = admission_of(settings, counts=connection_counts(memory, 0))
    assert other.enter(ALICE) is None
    assert successor.enter(ALICE) is not None


def test_many_addresses_that_come_and_go_are_counted_exactly() -> None:
    chance = random.Random(1)  # noqa: S311 - a test's choices
    memory = bytearray(2 * row_bytes())
    rows = [connection_counts(memory, number) for number in (0, 1)]
    expected: Counter[str] = Counter()
    opened: list[tuple[int, str]] = []
    for _ in range(20_000):
        if opened and chance.random() < 0.45:
            worker, address = opened.pop(chance.randrange(len(opened)))
            change = -1
        else:
            worker, address = chance.randrange(2), f"2001:db8::{chance.randrange(1500):x}"
            opened.append((worker, address))
            change = 1
        rows[worker].add_address(address, change)
        expected[address] += change
    for address, count in expected.items():
        assert rows[0].of_address(address) == rows[1].of_address(address) == count
    for worker, address in opened:
        rows[worker].add_address(address, -1)
    assert sum(map(rows[0].of_address, expected)) == 0


def test_an_address_without_a_place_is_counted_by_its_own_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_dt.server.listeners.admission._first", lambda _key: 1 + MAX_LISTENERS)
    memory = bytearray(2 * row_bytes())
    rows = [connection_counts(memory, number) for number in (0, 1)]
    for number in range(WAYS + 1):
        rows[0].add_address(f"192.0.2.{number}", 1)
    last = f"192.0.2.{WAYS}"
    rows[0].add_address(last, 1)
    assert (rows[0].of_address(last), rows[1].of_address(last)) == (2, 0)
    rows[0].add_address(last, -1)
    rows[0].add_address("192.0.2.0", -1)
    rows[0].add_address(last, -1)
    rows[0].add_address(last, 1)
    assert (rows[0].of_address(last), rows[1].of_address(last)) == (1, 1)


def test_more_listeners_than_can_be_counted_are_an_error() -> None:
    with pytest.raises(ConfigError, match=r"listeners: there are 65"):
        admission_of(listeners=[listener()] * 65)


# The socket


class Told(asyncio.Protocol):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.told.append(transport)

    def data_received(self, data: bytes) -> None:
        self.told.append(data)

    def eof_received(self) -> bool:
        self.told.append("end")
        return True

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.told.append(exc)

    def login_overdue(self) -> None:
        self.told.append("overdue")


class Socket:
    """Stands for a transport."""

    def __init__(self) -> None:
        self.aborted = False

    def get_extra_info(self, name: str) -> Any:
        return {"peername": ALICE}[name]

    def abort(self) -> None:
        self.aborted = True


def deadlines() -> LoginDeadlines:
    return LoginDeadlines(30, lambda: 0)


def accept(limits: Admission, inner: Told) -> tuple[AdmittedConnection, Socket]:
    socket, connection = Socket(), AdmittedConnection(limits, ACCEPTED.append, deadlines(), lambda: inner)
    connection.connection_made(cast("asyncio.Transport", socket))
    return connection, socket


def test_an_admitted_connection_is_told_everything() -> None:
    inner = Told()
    connection, socket = accept(admission(), inner)
    connection.data_received(b"data")
    connection.pause_writing()
    connection.resume_writing()
    assert connection.eof_received()
    lost = OSError("gone")
    connection.connection_lost(lost)
    assert inner.told == [socket, b"data", "pause", "resume", "end", lost]
    assert not socket.aborted


def test_a_refused_one_is_closed_with_a_line_and_never_made(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    one, inner = admission(_per_ip=1), Told()
    first, _ = accept(one, Told())
    refused, socket = accept(one, inner)
    assert socket.aborted
    refused.data_received(b"data")
    refused.pause_writing()
    refused.resume_writing()
    assert not refused.eof_received()
    refused.connection_lost(None)
    assert inner.told == []
    (line,) = caplog.messages
    assert line.startswith("Refusing a connection of 192.0.2.1: its address has 1 connections")
    first.connection_lost(None)
    assert not accept(one, Told())[1].aborted


def test_a_connection_that_cannot_be_made_is_not_counted() -> None:
    def failing() -> LoginConnection:
        raise RuntimeError("no memory")

    one = admission(_per_ip=1)
    connection = AdmittedConnection(one, ACCEPTED.append, deadlines(), failing)
    with pytest.raises(RuntimeError, match="no memory"):
        connection.connection_made(cast("asyncio.Transport", Socket()))
    connection.connection_lost(None)
    assert not accept(one, Told())[1].aborted
