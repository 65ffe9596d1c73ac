"""A connection of the gateway between two fakes: the client's transport, and an upstream that the test answers for.

shell = GatewayShell()
shell.send(request(JOIN_GROUP, 1))
upstream = await shell.upstream()
upstream.written
upstream.answer(1)
shell.transport.written
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, Final, cast

from kio.schema.errors import ErrorCode

from kafka_dt.client import ConnectionLost
from kafka_dt.config import Endpoint, Listener
from kafka_dt.gateway.forwarding import Forwarding
from kafka_dt.gateway.relay import LoginsUnderWay
from kafka_dt.gateway.services import GatewayServices
from kafka_dt.gateway.upstream import Exchange, Upstream, UpstreamListener
from kafka_dt.server.connections.connection import ClientConnection
from kafka_dt.server.connections.services import ConnectionServices
from kafka_dt.tokens import ANONYMOUS, Principal
from kafka_dt_protocol import ApiKey, frame
from tests.support.server.fake_transport import Shell, turns

PRODUCE: Final = 0
JOIN_GROUP: Final = 11
"""Stands for all that goes upstream, and comes back as it is."""


def request(api: int, correlation_id: int, body: bytes = b"", version: int = 5) -> bytes:
    """Build a frame that is a request by its first bytes; no code reads the others."""
    return frame(struct.pack(">hhi", api, version, correlation_id) + b"\0\1x" + body)


def produce(correlation_id: int, acks: int, records: bytes = b"") -> bytes:
    """A Produce without transactional id."""
    return request(PRODUCE, correlation_id, b"\xff\xff" + struct.pack(">h", acks) + records, version=3)


def answer(correlation_id: int, body: bytes = b"") -> bytes:
    """The frame of an answer."""
    return frame(struct.pack(">i", correlation_id) + body)


@dataclass(eq=False)
class FakeUpstream:
    """One connection upstream."""

    listener: UpstreamListener
    login_due_ms: int | None = None
    server: str = "broker:9092"
    written: bytearray = field(default_factory=bytearray)
    reading: bool = True
    closed: bool = False
    aborted: bool = False

    def write(self, *pieces: bytes) -> None:
        assert not self.closed, "written after the end"
        assert all(pieces), "nothing was written"
        self.written += b"".join(pieces)

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True

    def answer(self, correlation_id: int, body: bytes = b"") -> None:
        """Answer a request."""
        self.listener.upstream_data(answer(correlation_id, body))

    def channel(self, exchange: Exchange) -> Requests:
        """Give what makes requests of the gateway's own, as `Upstream` does."""
        return Requests(exchange)


@dataclass
class Requests:
    """Sends each request as its number alone, from 1,000 on."""

    exchange: Exchange
    server: str = "broker:9092"

    def version(self, _api: ApiKey) -> int:
        return 0

    async def request(self, api: ApiKey, **_values: Any) -> Any:
        try:
            await self.exchange(1_000, request(api, 1_000))
        except EOFError as error:
            raise ConnectionLost("broker:9092", "it closed the connection") from error
        return SimpleNamespace(error_code=ErrorCode.none, auth_bytes=b"", error_message=None)


class FakeConnector:
    """Makes connections to nowhere, once `open` is set; the first of `failures` is raised instead."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self.made: list[FakeUpstream] = []
        self.asked = 0
        self.addresses: Any = None
        self.token_ids: list[str | None] = []
        """Of the tokens of the clients, for each connection and each further login."""
        self.failures: list[BaseException] = []
        self.login_due_ms: int | None = None
        self.relogin: Callable[[Exchange], Awaitable[None]] | None = None

    async def connect(
        self, _principal: Principal, addresses: Any, listener: UpstreamListener, token_id: str | None
    ) -> Upstream:
        self.asked += 1
        self.token_ids.append(token_id)
        self.addresses = addresses()
        await self.open.wait()
        if self.failures:
            raise self.failures.pop(0)
        self.made.append(FakeUpstream(listener, self.login_due_ms))
        return cast("Upstream", self.made[-1])

    async def connect_for_login(self, addresses: Any, listener: UpstreamListener) -> Upstream:
        return await self.connect(ANONYMOUS, addresses, listener, None)

    async def log_in_again(
        self, _principal: Principal, upstream: Upstream, exchange: Exchange, token_id: str | None
    ) -> None:
        self.token_ids.append(token_id)
        assert self.relogin is not None, "no connection was to log in again"
        upstream.login_due_ms = None
        await self.relogin(exchange)


class FakeBrokers:
    """What is known of the cluster: nothing, but the address of a broker is its number."""

    def __init__(self) -> None:
        self.learned: list[tuple[int, str, int]] = []

    def versions(self, _broker_id: int | None) -> None:
        return None

    def candidates(self, broker_id: int | None) -> int | None:
        return broker_id

    def learn(self, node_id: int, host: str, port: int) -> None:
        self.learned.append((node_id, host, port))


class FakeAddresses:
    """How clients reach brokers: b1.example is broker 1, at port 9001."""

    def broker_of_name(self, name: str) -> int:
        return int(name.removeprefix("b").partition(".")[0])

    def advertised(self, _listener: Listener, broker_id: int, _endpoint: Endpoint) -> tuple[str, int]:
        return f"b{broker_id}.example", 9000 + broker_id


@dataclass
class GatewayShell(Shell):
    """One connection of a client to the gateway.

    Logins are relayed if those under way are counted; changes of ACLs and SCRAM users are read if there is a recorder.
    """

    relayed: LoginsUnderWay | None = None
    makes_its_tokens: bool = False
    intake: Callable[..., Forwarding] = Forwarding

    def __post_init__(self) -> None:
        self.connector = FakeConnector()
        self.brokers = FakeBrokers()
        super().__post_init__()

    async def upstream(self) -> FakeUpstream:
        """Wait for the connection upstream."""
        await turns()
        (made,) = self.connector.made
        return made

    def _new_connection(self, services: ConnectionServices) -> ClientConnection:
        return ClientConnection(services, partial(self._new_forwarding, services))

    def _new_forwarding(self, services: ConnectionServices, connection: ClientConnection) -> Forwarding:
        self.forwarding = self.intake(
            connection,
            services,
            GatewayServices(
                connector=cast("Any", self.connector),
                brokers=cast("Any", self.brokers),
                addresses=cast("Any", FakeAddresses()),
                offered=cast("Any", None),
                relayed=self.relayed,
                makes_its_tokens=self.makes_its_tokens,
                audited=frozenset(int(api.key) for api in self.apis.audited_at_gateway if self.recorder),
            ),
        )
        return self.forwarding
