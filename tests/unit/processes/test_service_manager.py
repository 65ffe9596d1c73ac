"""What systemd is told, read from the socket that it listens on."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_dt.processes.service_manager import ServiceManager

ABSTRACT = f"@kafka-dt test {os.getpid()}"
TIMEOUT_S = 30


@pytest.fixture(params=["file", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """A socket as systemd has it, and NOTIFY_SOCKET for it."""
    address = ABSTRACT if request.param == "abstract" else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(address.replace("@", "\0", 1) if address == ABSTRACT else address)
        sock.setblocking(False)
        yield sock, address


async def heard(sock: socket.socket) -> bytes:
    async with asyncio.timeout(TIMEOUT_S):
        return await asyncio.get_running_loop().sock_recv(sock, 1000)


async def test_assignments_of_one_message_arrive_together(manager: tuple[socket.socket, str]) -> None:
    sock, address = manager
    ServiceManager({"NOTIFY_SOCKET": address}).tell("READY=1", "STATUS=It serves")
    assert await heard(sock) == b"READY=1\nSTATUS=It serves"


async def test_beats_come_as_long_as_the_manager_waits_for_them(manager: tuple[socket.socket, str]) -> None:
    sock, address = manager
    watched = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "2000", "WATCHDOG_PID": str(os.getpid())}
    async with ServiceManager(watched).beating():
        assert [await heard(sock) for _ in range(3)] == [b"WATCHDOG=1"] * 3
    while True:
        try:
            sock.recv(1000)
        except BlockingIOError:
            break
    await asyncio.sleep(0.01)
    with pytest.raises(BlockingIOError):
        sock.recv(1000)


@pytest.mark.parametrize("watched", [{}, {"WATCHDOG_USEC": "2000", "WATCHDOG_PID": "1"}])
async def test_a_process_that_is_not_watched_does_not_beat(
    manager: tuple[socket.socket, str], watched: dict[str, str]
) -> None:
    sock, address = manager
    async with ServiceManager({"NOTIFY_SOCKET": address, **watched}).beating():
        await asyncio.sleep(0.01)
    with pytest.raises(BlockingIOError):
        sock.recv(1000)


def test_without_a_manager_nothing_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    ServiceManager({}).tell("READY=1")
    assert caplog.messages == []


def test_a_manager_that_has_gone_is_logged_and_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "gone")}).tell("READY=1")
    assert caplog.messages == ["The service manager does not hear READY=1: [Errno 2] No such file or directory"]
