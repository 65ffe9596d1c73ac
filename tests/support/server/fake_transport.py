"""A transport without a socket: what the server's end of a connection writes, and how it is told to wait.

    shell = Shell(handler)
    shell.send(frame(request))
    shell.transport.written

`Shell` is one `ClientConnection` on such a transport, on a listener with or without SASL.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, cast

from kafka_dt.audit.recorder import Recorder
from kafka_dt.config import Endpoint, Listener, MechanismSettings, SecurityProtocol
from kafka_dt.identity.login.login import Identity, Login, LoginRefused
from kafka_dt.identity.mechanisms import MECHANISMS, Accounts, Resources, open_mechanisms
from kafka_dt.server.connections.connection import ClientConnection
from kafka_dt.server.connections.request_memory import RequestMemory
from kafka_dt.server.connections.services import ConnectionServices
from kafka_dt.server.connections.sessions import Sessions
from kafka_dt.server.handlers import Handler
from kafka_dt.server.listeners.deadlines import LoginDeadlines
from kafka_dt.server.listeners.rates import FailedLogins
from kafka_dt.tokens import ANONYMOUS, Principal
from kafka_dt_protocol import APIS, ApiTable, Limits, RequestHeader, build, decode_response, encode_request, frame
from kafka_dt_protocol.sasl import PLAIN

NOW = 1_700_000_000_000
FAILED_LOGIN_DELAY_MS = 50


class FakeTransport:
    """Collects what is written; `high_water` bytes that the client does not read make the protocol wait.

    With `lingers` closing takes until the client has read everything, as at a socket.
    """

    lingers = False
    server_name: str | None = None
    """By which name the client has come, where there is TLS."""

    def __init__(self, protocol: asyncio.Protocol, high_water: int) -> None:
        self.protocol = protocol
        self.written = bytearray()
        self.reading = True
        self.closed = False
        self.aborted = False
        self.high_water = high_water
        self._unread = 0
        self._lost = False
        self._loop = asyncio.get_running_loop()

    def write(self, data: bytes) -> None:
        assert not self.closed, "written after the end"
        self.written += data
        self._unread += len(data)
        if self._unread > self.high_water:
            self.protocol.pause_writing()

    def writelines(self, pieces: Iterable[bytes]) -> None:
        self.write(b"".join(pieces))

    def read_by_client(self) -> None:
        """The client has read everything."""
        waited, self._unread = self._unread > self.high_water, 0
        if waited:
            self.protocol.resume_writing()
        if self.closed:
            self._lose()

    def get_write_buffer_size(self) -> int:
        return self._unread

    def pause_reading(self) -> None:
        assert self.reading, "paused twice"
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading, "resumed twice"
        self.reading = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True
        if not (self.lingers and self._unread):
            self._lose()

    def abort(self) -> None:
        self.aborted = self.closed = True
        self._lose()

    def _lose(self) -> None:
        if not self._lost:
            self._lost = True
            self._loop.call_soon(self.protocol.connection_lost, None)

    def get_extra_info(self, name: str) -> Any:
        known = {
            "peername": ("192.0.2.1", 50000),
            "sockname": ("192.0.2.2", 9092),
            "server_name": self.server_name,
        }
        return known.get(name)


def listener(
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT, advertised: Endpoint | None = None
) -> Listener:
    """A listener; one with SASL offers PLAIN to alice."""
    name = security_protocol.value
    return Listener(
        bind=Endpoint(name, "", 0),
        advertised=advertised or Endpoint(name, "", 0),
        security_protocol=security_protocol,
        mechanisms={PLAIN: MechanismSettings({"alice": "alice's"})} if security_protocol.uses_sasl else {},
    )


async def unused(_context: Any, _body: Any) -> Any:
    """A handler that must not be called."""
    raise AssertionError("a request came through")


class NeverTaken:
    """A turn that is always to be had."""

    def take(self) -> bool:
        return True

    def give_back(self) -> None:
        pass


class FakeLogin:
    """What a connection needs of its login; a test adds `evaluate`."""

    identity: Identity | None = None
    foregone: LoginRefused | None = None

    def begin(self, mechanism: str) -> None:
        """Take any mechanism."""

    def prepare(self) -> None:
        """Look for nothing."""

    def abandon(self) -> None:
        """Have nothing to end."""


@dataclass
class Shell:
    """One connection of a client, seen from the client's side."""

    handler: Handler = unused
    listener: Listener = field(default_factory=listener)
    new_login: Callable[[Listener], Any] | None = None
    high_water: int = 64 * 1024
    now_ms: Callable[[], int] = lambda: NOW
    steady_ms: Callable[[], int] | None = None
    """None: time passes as by `now_ms`, which nothing sets."""
    certified: Callable[[bytes | None], Principal] = lambda _certificate: ANONYMOUS
    recorder: Recorder | None = None
    memory: RequestMemory | None = None
    apis: ApiTable = APIS

    def __post_init__(self) -> None:
        self.sessions = Sessions(lambda _: None, self.now_ms)
        self.opened: list[ClientConnection] = []
        self.deadlines = LoginDeadlines(30, lambda: self.now_ms() / 1000)
        self.connection = self._new_connection(self._services())
        self.transport = FakeTransport(self.connection, self.high_water)
        self.connection.connection_made(cast("asyncio.Transport", self.transport))
        self._asked: list[tuple[IntEnum, int]] = []
        self._read = 0

    def request(self, api: IntEnum, version: int, **values: Any) -> bytes:
        """Return a request as it is sent, and remember that its answer is due."""
        self._asked.append((api, version))
        header = RequestHeader(api, version, len(self._asked), "test")
        return frame(encode_request(header, build(self.apis[api].request[version], **values), self.apis))

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self.connection.data_received(data)

    def ask(self, api: IntEnum, version: int, **values: Any) -> None:
        """Send a request."""
        self.send(self.request(api, version, **values))

    def answers(self) -> list[Any]:
        """Give the answers since the last call, which must be in the order of the requests."""
        found = []
        written = self.transport.written
        while self._read < len(written):
            (length,) = struct.unpack_from(">i", written, self._read)
            content = bytes(written[self._read + 4 : self._read + 4 + length])
            self._read += 4 + length
            correlation_id = int.from_bytes(content[:4], "big", signed=True)
            api, version = self._asked[correlation_id - 1]
            found.append((correlation_id, decode_response(api, version, content, self.apis)[1]))
        numbers = [number for number, _ in found]
        assert numbers == sorted(numbers), "out of order"
        return [answer for _, answer in found]

    def _new_connection(self, services: ConnectionServices) -> ClientConnection:
        return ClientConnection(services)

    def _services(self) -> ConnectionServices:
        return ConnectionServices(
            listener=self.listener,
            limits=Limits(before_login_bytes=512 * 1024, after_login_bytes=1024 * 1024),
            handler=self.handler,
            sessions=self.sessions,
            new_login=self.new_login or self._login,
            certified=self.certified,
            now_ms=self.now_ms,
            steady_ms=self.steady_ms or self.now_ms,
            failed_logins=FailedLogins(FAILED_LOGIN_DELAY_MS, time.monotonic),
            opened=self.opened.append,
            closed=self.opened.remove,
            deadlines=self.deadlines,
            memory=self.memory or RequestMemory(2**40, 30, lambda: self.now_ms() / 1000, NeverTaken()),
            recorder=self.recorder,
            apis=self.apis,
        )

    def _login(self, of: Listener) -> Login:
        none: Any = None
        opened = open_mechanisms(of, MECHANISMS, Resources(none, self.now_ms, lambda: "nonce"))
        return Login(opened, Accounts(none, none), self.now_ms)


async def turns(count: int = 10) -> None:
    """Let the loop run what is due."""
    for _ in range(count):
        await asyncio.sleep(0)
