"""Nodes of two workers for tests that look behind the port: which worker serves which client, and what the log says.

    with Node(folder, node_properties(connect)) as node:
        async with node.client("alice") as client:
            token = await client.create()
        node.workers()             # process ids
        node.worker_of(port)       # who serves the connection that comes from this local port

Limit: Linux; processes and sockets are looked up in /proc.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_dt.client import DelegationToken, TokenClient
from kafka_dt.client.config import Address, ClientConfig, Credentials
from kafka_dt.processes.template import TEMPLATE_NAME, WORKER_NAME
from kafka_dt.security_protocol import SecurityProtocol
from tests.support.brokers.broker import SECRET_KEY, USERS
from tests.support.nodes.server import KafkaDt, server_properties
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import RawConnection

WORKERS = 2
REAUTH_MS = 4_000
"""`connections.max.reauth.ms` of the listener REAUTH: a machine may stand still in between."""
EXPIRY_CHECK_MS = 300
SEALING_AHEAD = 16
ADMIN = "admin"
SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"

# A socket that has been closed by one side stays in these states for a while.
_ESTABLISHED = "01"


def node_properties(zookeeper: str, **overrides: object) -> dict[str, object]:
    """The settings of a node.

    Args:
        zookeeper: `zookeeper.connect`.
        overrides: further settings, with `_` for each `.`; `None` takes one away.
    """
    settings: dict[str, object] = {
        **server_properties(zookeeper),
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0,REAUTH://127.0.0.1:0",
        "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,REAUTH:SASL_PLAINTEXT",
        "listener.name.reauth.plain.sasl.jaas.config": server_properties(zookeeper)[
            "listener.name.sasl_plaintext.plain.sasl.jaas.config"
        ],
        "listener.name.reauth.connections.max.reauth.ms": REAUTH_MS,
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": f"User:{ADMIN}",
        "delegation.token.expiry.check.interval.ms": EXPIRY_CHECK_MS,
        "kafka.dt.workers": WORKERS,
        # The default is for thousands of changes in a row, and costs each worker 4 seconds of CPU time.
        "kafka.dt.sealing.ahead": SEALING_AHEAD,
        # Tests fail to log in again and again; the answers would come later and later.
        "connection.failed.authentication.delay.ms": 0,
        **{key.replace("_", "."): value for key, value in overrides.items()},
    }
    return {key: value for key, value in settings.items() if value is not None}


SPREAD_S = 20.0
"""Within this time every worker serves, one that has just been replaced too, and gets a connection."""

SHOWN_CHARACTERS = 2_000
"""How much of a log a failure shows on either side of what is wrong there."""
_UNFORESEEN = re.compile(r"^.*never retrieved.*$|^.*Traceback.*(\n[ \t].*)*\n?(?P<error>.*)", re.MULTILINE)
"""asyncio's line about an error that no code handled, or a traceback with the line of its error."""


class Node(KafkaDt):
    """One node."""

    zookeeper = ""
    """Its `zookeeper.connect`, where the one who started it says so."""

    def client(self, user: str = "alice", listener: str = "SASL_PLAINTEXT", **settings: Any) -> TokenClient:
        """A client that logs in with PLAIN, or does not log in on PLAINTEXT."""
        if listener == "PLAINTEXT":
            return TokenClient(self._config(listener, None, **settings))
        return TokenClient(self._config(listener, Credentials("PLAIN", user, USERS[user]), **settings))

    def token_client(
        self, token: DelegationToken, mechanism: str = SHA_256, listener: str = "SASL_PLAINTEXT", **settings: Any
    ) -> TokenClient:
        """A client that logs in with a token."""
        credentials = Credentials(mechanism, token.token_id, token.hmac_base64, token_auth=True)
        return TokenClient(self._config(listener, credentials, **settings))

    def connect(self, listener: str = "SASL_PLAINTEXT", user: str | None = None) -> RawConnection:
        """A raw connection, logged in with PLAIN if a user is given."""
        connection = RawConnection(self.address(listener))
        if user is not None:
            connection.login_plain(user, USERS[user])
        return connection

    def make_token(self, user: str, **arguments: object) -> DelegationToken:
        """A token of this node; not for use while an event loop runs."""

        async def create() -> DelegationToken:
            async with self.client(user) as client:
                return await client.create(**arguments)  # type: ignore[arg-type]

        return asyncio.run(create())

    def connect_by_token(
        self,
        token: DelegationToken,
        mechanism: str = SHA_256,
        listener: str = "SASL_PLAINTEXT",
        *,
        to: str | None = None,
    ) -> RawConnection:
        """A raw connection that has logged in with a token, to another address if one is given; raises LoginRefused."""
        connection = RawConnection(to or self.address(listener))
        try:
            connection.login_scram(token.token_id, token.hmac_base64, mechanism, token=True)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextlib.contextmanager
    def on_every_worker(self, connect: Callable[[], RawConnection]) -> Iterator[dict[int, RawConnection]]:
        """Give one connection to each worker; the kernel chooses, so more are made and those to spare closed."""
        with contextlib.ExitStack() as stack:
            found: dict[int, RawConnection] = {}
            deadline = time.monotonic() + SPREAD_S
            while time.monotonic() < deadline:
                connection = connect()
                worker = self.worker_of(local_port(connection))
                if worker in found:
                    connection.close()
                else:
                    found[worker] = stack.enter_context(connection)
                if len(found) == len(self.workers()):
                    break
            assert set(found) == set(self.workers()), "the kernel gives every connection to the same worker"
            yield found

    def workers(self) -> list[int]:
        """Process ids of the workers."""
        assert self.process.pid is not None
        return [pid for pid in children(self.process.pid) if process_name(pid) == WORKER_NAME]

    def template(self) -> int:
        """Process id of the template of the workers."""
        assert self.process.pid is not None
        (template,) = (pid for pid in children(self.process.pid) if process_name(pid) == TEMPLATE_NAME)
        return template

    def worker_of(self, port: int) -> int:
        """Say which worker serves the connection that comes from a local port of this machine."""
        found: list[int] = []

        def seen() -> bool:
            inodes = _sockets_to(port)
            found[:] = [pid for pid in self.workers() if inodes & _open_sockets(pid)]
            return bool(found)

        eventually(seen, within_s=10)  # a connection may still wait to be accepted
        return found[0]

    def log(self) -> str:
        """What the node has written so far."""
        return self.process.output()

    def lines_about(self, port: int, since: int) -> list[str]:
        """The lines of the log that name the client with that local port.

        Args:
            port: another client may have had it before.
            since: how long the log was when this one came.
        """
        return [line for line in self.log()[since:].splitlines() if re.search(rf"127\.0\.0\.1:{port}\b", line)]

    def check_log(self) -> None:
        """See that nothing was unforeseen, and that nothing secret was written."""
        log = self.log()
        if found := _UNFORESEEN.search(log):
            shown = log[max(0, found.start() - SHOWN_CHARACTERS) : found.end() + SHOWN_CHARACTERS]
            pytest.fail(f"{self.process.name} logged {found['error'] or found[0]!r}:\n{shown}")
        for secret in (SECRET_KEY, *USERS.values()):
            assert secret not in log

    def _config(self, listener: str, credentials: Credentials | None, **settings: Any) -> ClientConfig:
        host, _, port = self.address(listener).rpartition(":")
        protocol = SecurityProtocol.SASL_PLAINTEXT if credentials else SecurityProtocol.PLAINTEXT
        return ClientConfig(
            bootstrap_servers=(Address(host, int(port)),),
            security_protocol=protocol,
            credentials=credentials,
            **settings,
        )


def local_port(connection: RawConnection | TokenClient) -> int:
    """The local port of a client's connection."""
    if isinstance(connection, RawConnection):
        return int(connection._socket.getsockname()[1])
    session = connection._session
    assert session.connection is not None
    return int(session.connection._link.transport.get_extra_info("sockname")[1])


def children(pid: int) -> list[int]:
    """The processes whose parent a process is."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            # The name in parentheses may hold anything; state and parent follow it.
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == pid and state != "Z":
                found.append(int(stat.parent.name))
    return sorted(found)


def process_name(pid: int) -> str:
    """The name of a process, as `ps` shows it; empty once it has ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip()
    return ""


def found_in_memory(pid: int, text: str) -> bool:
    """Whether a text is anywhere in the memory that a process can write."""
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            addresses, rights, *_ = line.split()
            if rights.startswith("rw"):
                begin, end = (int(each, 16) for each in addresses.split("-"))
                memory.seek(begin)
                with contextlib.suppress(OSError):  # of a device
                    if text.encode() in memory.read(end - begin):
                        return True
    return False


def command_lines(pids: list[int]) -> bytes:
    """What everybody on the machine can see of processes."""
    return b"\0".join(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids)


def secrets_of(token: DelegationToken) -> tuple[str, ...]:
    """The texts that an HMAC could stand in a log as."""
    url_safe = base64.urlsafe_b64encode(token.hmac).decode()
    return (token.hmac_base64, token.hmac.hex(), repr(token.hmac)[2:-1], url_safe.rstrip("="), token.hmac_base64[:40])


def _sockets_to(port: int) -> set[str]:
    """The inodes of the established sockets whose other end is a local port."""
    return {inode for inode, other_end in _established() if other_end == port}


def _established() -> Iterator[tuple[str, int]]:
    """Give the inode of each established socket, and the port of its other end."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == _ESTABLISHED:
            yield fields[9], int(fields[2].rpartition(":")[2], 16)


def _open_sockets(pid: int) -> set[str]:
    found = set()
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                name = str(link.readlink())
                if name.startswith("socket:["):
                    found.add(name[8:-1])
    return found


def connected_ports(pid: int) -> set[int]:
    """The local ports to which a process has connections."""
    sockets = _open_sockets(pid)
    return {port for inode, port in _established() if inode in sockets}


def refuses_connections(address: str) -> bool:
    """Whether no process listens on host:port."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False
