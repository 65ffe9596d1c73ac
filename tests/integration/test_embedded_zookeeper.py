"""The embedded ZooKeeper: it serves, keeps its data, says clearly what is wrong, and is never orphaned."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kazoo.client import KazooClient

from kafka_dt.zookeeper.embedded import java
from kafka_dt.zookeeper.embedded.server import EmbeddedZooKeeper
from kafka_dt.zookeeper.errors import DataDirInUse, JavaNotFound, PortTaken, StartFailed
from tests.support.zookeeper.server import child_zookeeper

if TYPE_CHECKING:
    from collections.abc import Callable

PARENT = """
import sys, threading
from pathlib import Path
from kafka_dt.zookeeper.embedded.server import EmbeddedZooKeeper
server = EmbeddedZooKeeper(Path(sys.argv[1]))
starter = threading.Thread(target=server.start)
starter.start()
starter.join()
print(server.server_pid, server.port, flush=True)
threading.Event().wait()
"""


def _eventually(condition: Callable[[], bool], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _listening_addresses(pid: int) -> list[str]:
    """Hexadecimal local addresses of a process's listening TCP sockets, as the kernel lists them."""
    inodes = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
    ]
    return [row[1].split(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes]


def _start_parent(data_dir: Path) -> tuple[subprocess.Popen[str], int, int]:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(data_dir)], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    )
    assert parent.stdout is not None
    words = parent.stdout.readline().split()
    if not words:
        parent.wait()
        pytest.skip("the embedded ZooKeeper cannot run here")
    return parent, int(words[0]), int(words[1])


def _end(parent: subprocess.Popen[str]) -> None:
    parent.kill()
    parent.wait()
    assert parent.stdout is not None
    parent.stdout.close()


def test_data_survives_a_crash_of_the_server(tmp_path: Path) -> None:
    with child_zookeeper(tmp_path) as server:
        first = KazooClient(hosts=server.address)
        first.start()
        first.create("/kept", b"value")
        server.kill()
        assert not server.running
        first.stop()
        first.close()
        server.start()
        second = KazooClient(hosts=server.address)
        second.start()
        assert second.get("/kept")[0] == b"value"
        second.stop()
        second.close()


def test_it_listens_on_the_loopback_address_only_and_has_no_admin_server(tmp_path: Path) -> None:
    with child_zookeeper(tmp_path) as server:
        assert server.server_pid is not None
        listening = _listening_addresses(server.server_pid)
        assert len(listening) == 1
        assert listening[0].endswith("0100007F")


def test_the_server_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    parent, server_pid, _ = _start_parent(tmp_path)
    assert _alive(server_pid)
    _end(parent)
    assert _eventually(lambda: not _alive(server_pid))


def test_the_server_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    parent, server_pid, port = _start_parent(tmp_path)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"srvr")
        assert connection.recv(9) == b"Zookeeper"
    _end(parent)
    assert _eventually(lambda: not _alive(server_pid))


def test_the_server_ends_when_its_leash_is_killed(tmp_path: Path) -> None:
    with child_zookeeper(tmp_path) as server:
        server_pid = server.server_pid
        assert server_pid is not None
        leash_pid = int(Path(f"/proc/{server_pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        os.kill(leash_pid, signal.SIGKILL)
        assert _eventually(lambda: not _alive(server_pid))


async def test_its_end_can_be_awaited(tmp_path: Path) -> None:
    with child_zookeeper(tmp_path) as server:
        assert server.server_pid is not None
        waiting = asyncio.ensure_future(server.exited())
        await asyncio.sleep(0)
        assert not waiting.done()
        os.kill(server.server_pid, signal.SIGKILL)
        await asyncio.wait_for(waiting, 20)
        assert not server.running


def test_a_port_that_is_taken_is_a_clear_error(tmp_path: Path) -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        port = stranger.getsockname()[1]
        with pytest.raises(PortTaken, match=f"port {port} is taken: .* --port"):
            EmbeddedZooKeeper(tmp_path, port=port).start()


def test_a_data_directory_in_use_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_dt.zookeeper.embedded.server.LOCK_TIMEOUT_S", 0.1)
    with child_zookeeper(tmp_path), pytest.raises(DataDirInUse, match="--data-dir"):
        EmbeddedZooKeeper(tmp_path).start()


def test_a_server_that_does_not_start_says_where_to_look(tmp_path: Path) -> None:
    server = EmbeddedZooKeeper(tmp_path, properties={"tickTime": "none"})
    with pytest.raises(StartFailed, match=r"zookeeper\.log"):
        server.start()
    assert not server.running


def test_no_java_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr(java, "_on_path", lambda _: None)
    monkeypatch.setattr(java, "_in_package", lambda *_: None)
    with pytest.raises(JavaNotFound, match="JAVA_HOME"):
        java.find_java()
