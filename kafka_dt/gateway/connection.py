"""One client of the gateway: what it says about logins and tokens is served here, everything else goes upstream.

`GatewayConnection` is the `ClientConnection` of a node with a second side. Its client logs in as anywhere; the first
request that is not ours opens a connection upstream under the identity of the client's principal, which serves this
client alone: no bytes of two principals ever meet, and correlation ids, order and quotas stay the upstream's.

Requests are told apart by their first bytes and written on as they come. Ours (`LOCAL`, and `NOT_BY_TOKEN` of a client
that logged in with a token) wait until everything forwarded has been answered, and nothing is forwarded while one of
ours is under way, as a broker serves one request of a connection at a time. So both sides write to the client without a
queue between them. An Envelope (`NEVER_FORWARDED`) closes the connection.

Reading stops on either side while the other cannot be written to, while the upstream connection is being opened or
logs in again (KIP-368), and while `MAX_OUTSTANDING` answers are due.

When one side ends, so does the other, whether or not the client reads: it sees what it would see of a broker that has
gone. A client that says goodbye gets the answers that it waits for, and what it sent that needs none still goes
upstream; both have their time. A token that ends takes both sides with it.

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
from kafka_dt.server.connections.connection import ClientConnection
from kafka_dt.server.connections.services import ConnectionServices
from kafka_dt_protocol import ApiKey, ConnectionClosed, RemoteProtocolError, State
from kafka_dt_protocol.api.offered_versions import NEVER_FORWARDED, OfferedByUpstream
from kafka_dt_protocol.rewriting.answer_stream import AnswerStream, Forward
from kafka_dt_protocol.rewriting.request_stream import RequestStart, RequestStream

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
NOT_BY_TOKEN: Final = frozenset({ApiKey.ALTER_USER_SCRAM_CREDENTIALS})
"""What ends here as well if the client logged in with a token. It is refused as on any node: brokers do not check that
a stolen token does not make itself a password (KIP-554)."""
MAX_OUTSTANDING: Final = 1_000
"""How many forwarded requests may wait for their answers; Java's clients send 5, librdkafka more."""
STEPS_IN_A_ROW: Final = 256
"""How many pieces of one connection are passed on before the others get their turn."""
GOODBYE_S: Final = 30.0
"""How long a connection that is ending waits: for the upstream's answers, and for the client to read them."""
REVOKED_S: Final = 1.0
"""How long it waits for the client when its token has ended."""
FLUSH_S: Final = 5.0
"""How long an upstream that is left may take for what was written to it."""


@dataclass(frozen=True, slots=True)
class GatewayServices:
    """What all connections of a gateway share."""

    connector: Connector
    brokers: UpstreamBrokers
    addresses: BrokerAddresses
    offered: OfferedByUpstream


class _Side(Enum):
    """Who answers a request."""

    HERE = auto()
    UPSTREAM = auto()


class _Turn(Enum):
    """What can be done for the client now."""

    PASS_ON = auto()
    """A piece of the request under way is there, and can be passed on."""
    READ = auto()
    """More has to be read."""
    WAIT = auto()
    """Something else comes first."""


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
        self._request: RequestStart | None = None  # the one under way, or one that has to wait
        self._side: _Side | None = None  # whose the request under way is; None between two
        self._passed_on: list[bytes] = []  # to be written upstream, all at once
        self._upstream: Upstream | None = None
        self._upstream_full = False
        self._upstream_task: asyncio.Task[None] | None = None
        self._login_timer: asyncio.TimerHandle | None = None
        self._login_due = False
        self._own_answer: asyncio.Future[bytes] | None = None
        self._deadline: asyncio.TimerHandle | None = None
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
        """Serve what has been received before the connection is closed, if that does not take too long."""
        self._client_leaves()
        if not self._eof:
            self._eof = True
            self._abort_in(GOODBYE_S)
            self._route()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """End the other side as well."""
        super().connection_lost(exc)
        self._leave_upstream()
        if self._deadline is not None:
            self._deadline.cancel()

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

    # The end

    @property
    def owes_answers(self) -> bool:
        """Whether a request is being served, here or upstream."""
        return super().owes_answers or self._upstream_task is not None or self._answers.outstanding > 0

    def revoke(self) -> None:
        """Close both sides, in any state: the token is no more."""
        self._leave_upstream(at_once=True)
        super().revoke()
        self._abort_in(REVOKED_S)

    def close(self) -> None:
        """Write what is left to be written, upstream as well, and close."""
        self._leave_upstream()
        self._abort_in(GOODBYE_S)
        super().close()

    def abort(self) -> None:
        """Close both sides without writing what has not been read."""
        self._leave_upstream(at_once=True)
        super().abort()

    def _abort_in(self, seconds: float) -> None:
        """Set the time that the client has from now on; the first end of several counts."""
        deadline = self._loop.call_later(seconds, self.abort)
        if self._deadline is not None:
            deadline, other = sorted((deadline, self._deadline), key=lambda timer: timer.when())
            other.cancel()
        self._deadline = deadline

    def _leave_upstream(self, *, at_once: bool = False) -> None:
        """End the upstream's side; what was written needs no answer any more, but may be a Produce with acks=0."""
        if self._login_timer is not None:
            self._login_timer.cancel()
        if self._upstream_task is not None:
            self._upstream_task.cancel()
        if not at_once:
            self._write_upstream()
        upstream, self._upstream = self._upstream, None
        if upstream is None:
            return
        if at_once:
            upstream.abort()
        else:
            upstream.close()
            self._loop.call_later(FLUSH_S, upstream.abort)

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
            self._write_upstream()
            self._account()
            self._retire_if_quiet()
        except RemoteProtocolError as error:
            self._end(self._machine.give_up(str(error)))
        except Exception as error:  # noqa: BLE001 - it must not reach the loop, which would leave the connection hanging
            self._log_own(error)
            self.abort()
        finally:
            self._routing = False

    def _held_bytes(self) -> int:
        # A piece that waits to be forwarded is not counted: no more than a socket's buffer, and not the client's fault.
        return super()._held_bytes() + (self._requests.buffered if self._reading.wanted else 0)

    def _is_quiet(self) -> bool:
        return self._side is None and not self._requests.buffered and super()._is_quiet()

    def _frames_given(self) -> int:
        return super()._frames_given() + self._requests.given

    def _waits_for_client(self) -> bool:
        return self._reading.wanted and super()._waits_for_client()

    def _take_requests(self) -> None:
        for _ in range(STEPS_IN_A_ROW):
            if self._closing:
                return
            turn = self._turn()
            if turn is _Turn.READ:
                self._reading.resume()
                self._end_if_answered()
                return
            if turn is _Turn.WAIT:
                self._reading.pause()
                self._finish_if_answered()
                return
            self._pass_on()
        self._route_scheduled = True
        self._loop.call_soon(self._route_again)

    def _route_again(self) -> None:
        self._route_scheduled = False
        self._route()

    def _turn(self) -> _Turn:
        """Say what can be done now, and begin with the next request if that is it."""
        if self._upstream_task is not None or self._upstream_full:
            return _Turn.WAIT
        if self._side is not None:
            return _Turn.PASS_ON if self._requests.buffered else _Turn.READ
        if self._finishing or self._held_up() or self._machine.answers_at_length or self._log_in_again_if_due():
            return _Turn.WAIT
        return self._begin_request() if self._requests.buffered else _Turn.READ

    def _begin_request(self) -> _Turn:
        if self._machine.state is not State.READY:  # in a login a frame may have no header
            if self._requests.next_length() is None:
                return _Turn.READ
            self._side = _Side.HERE
            return _Turn.PASS_ON
        self._request = self._request or self._requests.next_start()
        if self._request is None:
            return _Turn.READ
        self._side = self._side_of(self._request)
        return _Turn.WAIT if self._side is None else _Turn.PASS_ON

    def _side_of(self, request: RequestStart) -> _Side | None:
        """Say who answers a request now; None while others come first, or there is no way upstream so far."""
        if request.api_key in LOCAL or (request.api_key in NOT_BY_TOKEN and self._by_token):
            return None if self._answers.outstanding else _Side.HERE
        if request.api_key in NEVER_FORWARDED:
            self._end(ConnectionClosed(f"API {request.api_key} is for brokers and not forwarded"))
        elif self._machine.session_ended(self._services.now_ms()):
            self._end(ConnectionClosed("the session has ended"))
        elif self._upstream is None:
            self._begin_upstream(self._open_upstream())
        elif self._answers.outstanding < MAX_OUTSTANDING:
            self._answers.expect(request)
            return _Side.UPSTREAM
        return None

    def _pass_on(self) -> None:
        """Pass on a piece of the request under way."""
        piece = self._requests.take()
        side = self._side
        if self._requests.finished:
            self._side = self._request = None
        if side is _Side.HERE:
            self._machine.receive_data(piece)
            self._pump()
        else:
            self._passed_on.append(piece)

    def _write_upstream(self) -> None:
        """Write what was passed on: a call of the system costs more than all that is done with a short request."""
        pieces = self._passed_on
        if pieces:
            self._passed_on = []
            if self._upstream is not None:
                self._upstream.write(*pieces)

    def _finish_if_answered(self) -> None:
        """Close as `finish` has asked for: what is under way is answered, and nothing after it is taken."""
        if self._finishing and self._side is None and not self.owes_answers:
            self.close()

    def _end_if_answered(self) -> None:
        """Close after a client that has said goodbye; a request that it has not sent whole is owed no answer."""
        half_sent = self._side is _Side.UPSTREAM and self._request is not None and self._request.answered
        if self._eof and self._answers.outstanding == int(half_sent):
            super().eof_received()

    # The upstream's side

    def upstream_data(self, data: bytes) -> None:
        """Take answers."""
        if self._closing:
            return
        if self._own_answer is None or self._own_answer.done():
            # Who waits for answers is idle only while none come. A login of ours, which happens again and again on a
            # connection that nobody uses, is no sign of life.
            self.last_received = self._loop.time()
        pieces: list[bytes] = []
        try:
            self._take_answers(data, pieces)
        except RemoteProtocolError as error:
            self._write(pieces)
            self._end(ConnectionClosed(f"the upstream broker sent what nobody asked for: {error}"))
        except Exception as error:  # noqa: BLE001 - as in `_route`
            self._log_own(error)
            self.abort()
        else:
            self._write(pieces)
            if not self._reading.wanted or self._eof or self._finishing or self._login_due or self._retiring:
                self._route()  # something has waited for these answers

    def upstream_full(self) -> None:
        """Take nothing of the client while the upstream does not read."""
        self._upstream_full = True
        self._reading.pause()

    def upstream_writable(self) -> None:
        """Go on."""
        self._upstream_full = False
        self._route()

    def upstream_lost(self, reason: str) -> None:
        """End with it: its answers are lost, and the client knows what to do about a broker that has gone."""
        if not self._closing:
            self._end(ConnectionClosed(f"the upstream broker has gone: {reason}"))

    def _take_answers(self, data: bytes, pieces: list[bytes]) -> None:
        """Add what the client is to get to some pieces."""
        answers = self._answers
        answers.receive_data(data)
        while (piece := answers.next()) is not None:
            if isinstance(piece, Forward):
                pieces.append(piece.data)
            elif self._own_answer is not None and not self._own_answer.done():
                self._own_answer.set_result(piece.content)

    def _write(self, pieces: list[bytes]) -> None:
        """Write to the client, all at once, as in `_write_upstream`."""
        transport = self._transport
        if not pieces or transport is None or transport.is_closing():
            return
        if len(pieces) == 1:
            transport.write(pieces[0])
        else:
            transport.writelines(pieces)

    def _advertise(self, node_id: int, host: str, port: int) -> tuple[str, int]:
        self._gateway.brokers.learn(node_id, host, port)
        return self._gateway.addresses.advertised(self._services.listener, node_id, self._endpoint())

    def _begin_upstream(self, work: Coroutine[Any, Any, None]) -> None:
        self._upstream_task = self._loop.create_task(work)
        self._upstream_task.add_done_callback(self._upstream_done)

    def _upstream_done(self, task: asyncio.Task[None]) -> None:
        self._upstream_task = None
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if self._closing:
            return
        match error:
            case None:
                self._route()
            case asyncio.CancelledError():
                self._end(ConnectionClosed("no way to the upstream cluster: the login was called off"))
            case NoIdentity() | TokenClientError() | OSError():
                self._end(ConnectionClosed(f"no way to the upstream cluster: {error}"))
            case _:
                self._log_own(error)
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
            self._login_timer = self._loop.call_later(seconds, self._log_in_when_drained)

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
