"""One client of the gateway: what it says about logins and tokens is served here, everything else goes upstream.

`GatewayConnection` is the `ClientConnection` of a node with a second side. Its client logs in as anywhere; the first
request that is not ours opens a connection upstream under the identity of the client's principal, which serves this
client alone: no bytes of two principals ever meet, and correlation ids, order and quotas stay the upstream's.

Requests are told apart by their first bytes and written on as they come. Ours (`LOCAL`) wait until everything
forwarded has been answered, and nothing is forwarded while one of ours is under way, as a broker serves one request of
a connection at a time. So both sides write to the client without a queue between them.

Reading stops on either side while the other cannot be written to, while the upstream connection is being opened or
logs in again (KIP-368), and while `MAX_OUTSTANDING` answers are due. When one side ends, so does the other: a client
sees what it would see of a broker that has gone. A session by token is closed when the token ends, idle or not.

Source: DESIGN.md, "gateway"; Kafka's SocketServer.Processor; KIP-43, KIP-152, KIP-368, KIP-951.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from kafka_dt.client import TokenClientError
from kafka_dt.gateway.addresses import BrokerAddresses
from kafka_dt.gateway.brokers import UpstreamBrokers
from kafka_dt.gateway.connecting import Connector
from kafka_dt.gateway.identities import NoIdentity
from kafka_dt.gateway.upstream import Upstream
from kafka_dt.server.connection import ClientConnection, ConnectionServices
from protocol import ApiKey, ConnectionClosed, RemoteProtocolError, State
from protocol.answer_stream import AnswerStream, Forward
from protocol.node_addresses import known_versions
from protocol.offered_versions import OfferedByUpstream
from protocol.request_stream import RequestStart, RequestStream

_LOG = logging.getLogger(__name__)

LOCAL: Final = frozenset(
    {
        ApiKey.SASL_HANDSHAKE,
        ApiKey.API_VERSIONS,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    }
)
"""What ends here; every other API is the upstream's."""
MAX_OUTSTANDING: Final = 1_000
"""How many forwarded requests may wait for their answers; Java's clients send 5, librdkafka more."""
STEPS_IN_A_ROW: Final = 256
"""How many pieces of one connection are passed on before the others get their turn."""
SESSION_CHECK_S: Final = 1.0
"""How soon a session is looked at again that should have ended and has not."""
LONGEST_TIMER_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class GatewayServices:
    """What all connections of a gateway share."""

    connector: Connector
    brokers: UpstreamBrokers
    addresses: BrokerAddresses
    offered: OfferedByUpstream


class _Side(Enum):
    """Who answers the request under way."""

    UNDECIDED = auto()
    HERE = auto()
    UPSTREAM = auto()


class GatewayConnection(ClientConnection):
    """The gateway's end of one client's connection.

    Args:
        services: as of any connection.
        gateway: what all of them share.
        broker_id: the upstream broker that the port stands for; None where any will do, or TLS tells it by a name.
    """

    def __init__(self, services: ConnectionServices, gateway: GatewayServices, broker_id: int | None = None) -> None:
        super().__init__(services)
        self._gateway = gateway
        self._broker_id = broker_id
        self._requests = RequestStream(services.limits.after_login_bytes)
        self._answers = AnswerStream(self._advertise)
        self._under_way: RequestStart | None = None
        self._side = _Side.UNDECIDED
        self._upstream: Upstream | None = None
        self._upstream_full = False
        self._upstream_task: asyncio.Task[None] | None = None
        self._login_timer: asyncio.TimerHandle | None = None
        self._login_due = False
        self._own_answer: asyncio.Future[bytes] | None = None
        self._session_timer: asyncio.TimerHandle | None = None
        self._eof = False
        self._routing = False
        self._route_scheduled = False

    # asyncio.Protocol: the client's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the socket."""
        name = transport.get_extra_info("server_name")
        if self._broker_id is None and name is not None:
            self._broker_id = self._gateway.addresses.broker_of_name(name)
        versions = self._gateway.brokers.versions(self._broker_id)
        self._machine.offer(None if versions is None else self._gateway.offered.of(versions))
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Take bytes of the client."""
        if self._closing:
            return
        self.last_received = self._loop.time()
        self._requests.receive_data(data)
        self._route()

    def eof_received(self) -> bool:
        """Serve what has been received before the connection is closed."""
        self._eof = True
        self._route()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """End the other side as well."""
        super().connection_lost(exc)
        for timer in (self._session_timer, self._login_timer):
            if timer is not None:
                timer.cancel()
        if self._upstream_task is not None:
            self._upstream_task.cancel()
        if self._upstream is not None:
            self._upstream.abort()

    def pause_writing(self) -> None:
        """Take nothing of the upstream while the client does not read."""
        super().pause_writing()
        if self._upstream is not None:
            self._upstream.pause_reading()

    def resume_writing(self) -> None:
        """Go on."""
        if self._upstream is not None:
            self._upstream.resume_reading()
        super().resume_writing()

    # Session

    @property
    def busy(self) -> bool:
        """Whether a request is being served, here or upstream."""
        return super().busy or self._upstream_task is not None or self._answers.outstanding > 0

    def end_session_at(self, when_ms: int) -> None:
        """Let the session end at an instant, and the connection with it."""
        super().end_session_at(when_ms)
        self._watch_session()

    def _join_session(self, token_id: str | None) -> None:
        super()._join_session(token_id)
        self._watch_session()

    def _watch_session(self) -> None:
        """Close when the token ends: the client may be waiting for an answer that is long in coming."""
        if self._session_timer is not None:
            self._session_timer.cancel()
            self._session_timer = None
        ends_ms = self._machine.session_end_ms
        if self._session_token is not None and ends_ms is not None:
            seconds = max(0, ends_ms + 1 - self._services.now_ms()) / 1000
            self._session_timer = self._loop.call_later(min(seconds, LONGEST_TIMER_S), self._session_may_end)

    def _session_may_end(self) -> None:
        if self._closing:
            return
        if self._machine.state is State.READY and self._machine.session_ended(self._services.now_ms()):
            self._end(ConnectionClosed("the session has ended"))
        else:  # the clocks do not run alike, or the client is logging in again
            self._session_timer = self._loop.call_later(SESSION_CHECK_S, self._watch_session)

    # From the client

    def _settled(self) -> None:
        """Go on when what was asked of us has been answered."""
        self._route()

    def _route(self) -> None:
        """Take requests and pass them on until one has to wait; what nobody foresaw ends this client alone."""
        if self._routing or self._route_scheduled:
            return
        self._routing = True
        try:
            self._take_requests()
        except RemoteProtocolError as error:
            self._end(ConnectionClosed(str(error), delayed=not self._machine.state.logged_in))
        except Exception:  # noqa: BLE001 - it must not reach the loop, which would leave the connection hanging
            _LOG.exception("The connection of %s is closed for a reason of our own", self._peer)
            self.abort()
        finally:
            self._routing = False

    def _take_requests(self) -> None:
        for _ in range(STEPS_IN_A_ROW):
            if self._closing:
                return
            if self._finishing and self._side is _Side.UNDECIDED:
                self._pause_reading()
                if not self.busy:
                    self.close()
                return
            if self._must_wait() or (self._side is _Side.UNDECIDED and not self._decide()):
                self._pause_reading()
                return
            if self._side is _Side.UNDECIDED or not self._pass_on():
                self._resume_reading()
                self._finish_if_done()
                return
        self._route_scheduled = True
        self._loop.call_soon(self._route_again)

    def _route_again(self) -> None:
        self._route_scheduled = False
        self._route()

    def _must_wait(self) -> bool:
        """Whether nothing of the client can be taken now, whatever it is."""
        if self._upstream_task is not None or self._upstream_full:
            return True
        if self._side is _Side.UNDECIDED:
            return self._held_up() or self._log_in_again_if_due()
        return False

    def _decide(self) -> bool:
        """Say who answers the next request, if enough of one is there; False if it has to wait."""
        if self._under_way is None and not self._look_at_next():
            return True
        if self._side is _Side.UNDECIDED and self._under_way is not None:
            self._side = self._side_of(self._under_way)
        return self._side is not _Side.UNDECIDED

    def _look_at_next(self) -> bool:
        if self._machine.state is not State.READY:
            if self._requests.next_length() is None:
                return False
            self._side = _Side.HERE
            return True
        self._under_way = self._requests.next_start()
        return self._under_way is not None

    def _side_of(self, start: RequestStart) -> _Side:
        """Say who answers a request; nobody yet if others come first, or there is no way upstream so far."""
        if start.api_key in LOCAL:
            return _Side.UNDECIDED if self._answers.outstanding else _Side.HERE
        if self._machine.session_ended(self._services.now_ms()):
            self._end(ConnectionClosed("the session has ended"))
            return _Side.UNDECIDED
        known = known_versions(start.api_key)
        if known is not None and start.api_version not in known:
            reason = f"API {start.api_key} in version {start.api_version} may tell addresses that nobody could change"
            self._end(ConnectionClosed(reason))
            return _Side.UNDECIDED
        if self._upstream is None:
            self._begin_upstream(self._open_upstream())
            return _Side.UNDECIDED
        if self._answers.outstanding >= MAX_OUTSTANDING:
            return _Side.UNDECIDED
        self._answers.expect(start)
        return _Side.UPSTREAM

    def _pass_on(self) -> bool:
        """Pass on a piece of the request under way; False if the rest of it has not arrived."""
        piece = self._requests.take()
        if self._requests.finished:
            side, self._side, self._under_way = self._side, _Side.UNDECIDED, None
        else:
            side = self._side
        if side is _Side.HERE:
            self._machine.receive_data(piece)
            self._pump()
        elif piece and self._upstream is not None:
            self._upstream.write(piece)
        return bool(piece)

    def _finish_if_done(self) -> None:
        """Close once everything that a client which has said goodbye had asked for is answered."""
        if self._eof and not self._closing and self._answers.outstanding == 0:
            super().eof_received()

    # The upstream's side

    def upstream_data(self, data: bytes) -> None:
        """Take answers."""
        if self._closing:
            return
        try:
            self._answers.receive_data(data)
            while (piece := self._answers.next()) is not None:
                if isinstance(piece, Forward):
                    self._write(piece.data)
                elif self._own_answer is not None and not self._own_answer.done():
                    self._own_answer.set_result(piece.content)
        except RemoteProtocolError as error:
            self._end(ConnectionClosed(f"the upstream broker sent what nobody asked for: {error}"))
        except Exception:  # noqa: BLE001 - as in `_route`
            _LOG.exception("The connection of %s is closed for a reason of our own", self._peer)
            self.abort()
        else:
            self._route()

    def upstream_full(self) -> None:
        """Take nothing of the client while the upstream does not read."""
        self._upstream_full = True
        self._pause_reading()

    def upstream_writable(self) -> None:
        """Go on."""
        self._upstream_full = False
        self._route()

    def upstream_lost(self, reason: str) -> None:
        """End with it: its answers are lost, and the client knows what to do about a broker that has gone."""
        if self._own_answer is not None and not self._own_answer.done():
            self._own_answer.set_exception(ConnectionError(reason))
        if not self._closing:
            self._end(ConnectionClosed(f"the upstream broker has gone: {reason}"))

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _advertise(self, node_id: int, host: str, port: int) -> tuple[str, int]:
        self._gateway.brokers.learn(node_id, host, port)
        return self._gateway.addresses.advertised(self._services.listener, node_id, self._endpoint())

    def _begin_upstream(self, work: Coroutine[Any, Any, None]) -> None:
        self._upstream_task = self._loop.create_task(work)
        self._upstream_task.add_done_callback(self._upstream_done)

    def _upstream_done(self, task: asyncio.Task[None]) -> None:
        self._upstream_task = None
        error = None if task.cancelled() else task.exception()
        if self._closing:
            return
        match error:
            case None:
                self._route()
            case NoIdentity() | TokenClientError() | OSError():
                self._end(ConnectionClosed(f"no way to the upstream cluster: {error}"))
            case _:
                _LOG.error("The connection of %s is closed for a reason of our own", self._peer, exc_info=error)
                self.abort()

    async def _open_upstream(self) -> None:
        """Connect and log in as the client's principal, at its broker or, where any will do, at one that can be had."""
        brokers = self._gateway.brokers
        upstream = await self._gateway.connector.connect(
            self.principal, lambda: brokers.candidates(self._broker_id), self
        )
        if self._closing:
            upstream.abort()
            return
        self._upstream = upstream
        if not self._writable:
            upstream.pause_reading()
        self._log_in_later(upstream)

    def _log_in_later(self, upstream: Upstream) -> None:
        """Log in upstream again before the session there ends (KIP-368)."""
        if upstream.login_due_ms is not None:
            seconds = max(0, upstream.login_due_ms - self._services.now_ms()) / 1000
            self._login_timer = self._loop.call_later(min(seconds, LONGEST_TIMER_S), self._log_in_when_drained)

    def _log_in_when_drained(self) -> None:
        self._login_due = True
        self._route()

    def _log_in_again_if_due(self) -> bool:
        """Begin to log in again if it is time and nothing forwarded is outstanding; says whether it is time."""
        if self._login_due and self._answers.outstanding == 0 and self._upstream is not None:
            self._login_due = False
            self._begin_upstream(self._log_in_again(self._upstream))
            return True
        return self._login_due

    async def _log_in_again(self, upstream: Upstream) -> None:
        await self._gateway.connector.log_in_again(self.principal, upstream, self._exchange)
        self._log_in_later(upstream)

    async def _exchange(self, correlation_id: int, request: bytes) -> bytes:
        """Send a request of our own upstream, a whole frame; returns the content of its answer."""
        assert self._upstream is not None  # noqa: S101 - it is what logs in
        self._own_answer = self._loop.create_future()
        self._answers.expect_own(correlation_id)
        self._upstream.write(request)
        return await self._own_answer
