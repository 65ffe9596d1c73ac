"""The intake of a gateway: the gateway serves the requests about logins and tokens, and forwards all others.

The first request that is not ours opens a connection upstream (`upstream_side.py`) under the identity of the client's
principal. It serves this client alone: no bytes of two principals ever meet, and correlation ids, order and quotas stay
the upstream's. Requests are told apart by their first bytes and written on as they come; the table of APIs says which
are ours (`AtGateway`). Ours wait until everything forwarded has been answered, and nothing is forwarded while one of
ours is under way, as a broker serves one request of a connection at a time. So both sides write to the client without a
queue between them. Where audit events are written, changes of ACLs and SCRAM users are ours as well: the handler sends
the request upstream as it came, and reads the answer before the client gets it (`audited_changes.py`).

Reading stops on either side while the other cannot be written to, while the upstream connection is being opened or
logs in again (KIP-368), and while `MAX_OUTSTANDING` answers are due.

When one side ends, so does the other. A client that says goodbye gets the answers that it waits for, and what it sent
that needs none still goes upstream; both have their time. A token that ends takes both sides with it.

Source: docs/design.md#the-gateway; kafka.network.Processor; KIP-43, KIP-152, KIP-368, KIP-951.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Final

from kafka_dt.gateway.relay import ClientRelay
from kafka_dt.gateway.upstream_side import UpstreamSide
from kafka_dt.server.connections.connection import ClientConnection
from kafka_dt.server.connections.services import ConnectionServices
from kafka_dt_protocol import AtGateway, ConnectionClosed, RemoteProtocolError, State
from kafka_dt_protocol.rewriting import RequestStart, RequestStream

if TYPE_CHECKING:
    from kafka_dt.client import Address
    from kafka_dt.client.login import Channel
    from kafka_dt.gateway.services import GatewayServices
    from kafka_dt.server.handlers import AskCluster

MAX_OUTSTANDING: Final = 1_000
"""How many forwarded requests may wait for their answers; Java's clients send 5, librdkafka more."""
STEPS_IN_A_ROW: Final = 256
"""How many pieces of one connection are passed on before the others get their turn."""
GOODBYE_S: Final = 30.0
"""How long a connection that is ending waits: for the upstream's answers, and for the client to read them."""
REVOKED_S: Final = 1.0
"""How long it waits for the client when its token has ended."""


class Side(Enum):
    """The side that answers a request: the gateway or the cluster."""

    HERE = auto()
    UPSTREAM = auto()
    BOTH = auto()
    """The gateway, with what the cluster answers to the same request."""


@dataclass(frozen=True, slots=True)
class KeptRequest:
    """A request that is read here before it goes to the cluster as it came."""

    start: RequestStart
    received: bytearray = field(default_factory=bytearray, repr=False)


class _Turn(Enum):
    """What can be done for the client now."""

    PASS_ON = auto()
    """A piece of the request under way is there, and can be passed on."""
    READ = auto()
    """More has to be read."""
    WAIT = auto()
    """Something else comes first."""


class Forwarding:
    """The gateway's intake of one client.

    Args:
        connection: the client's.
        services: as of any connection.
        gateway: what all of them share.
        broker_id: the upstream broker that the port stands for; None where any will do, or TLS tells it by a name.
    """

    def __init__(
        self,
        connection: ClientConnection,
        services: ConnectionServices,
        gateway: GatewayServices,
        broker_id: int | None = None,
    ) -> None:
        self._connection = connection
        self._machine = connection.machine
        self._services = services
        self._frequent = services.counts.frequent
        self._gateway = gateway
        self._at_gateway = services.apis.at_gateway
        self._broker_id = broker_id
        self._loop = asyncio.get_running_loop()
        self._requests = RequestStream(services.limits.after_login_bytes)
        self.upstream: Final = UpstreamSide(
            connection,
            self._route,
            self._answered,
            self._advertise,
            connector=gateway.connector,
            now_ms=services.now_ms,
        )
        self._answers = self.upstream.answers
        self._relay: ClientRelay | None = None
        if gateway.relayed is not None:
            self._relay = ClientRelay(
                connection,
                self.upstream,
                open_upstream=lambda: self.upstream.open_for_login(self._candidates),
                logins=gateway.relayed,
                now_ms=services.now_ms,
            )
            connection.authenticator.relay_by(self._relay)
        self._request: RequestStart | None = None  # the one under way, or one that has to wait
        self._side: Side | None = None  # whose the request under way is; None between two
        self._kept: KeptRequest | None = (
            None  # the request under way, if its side is BOTH, until the cluster has got it
        )
        self._deadline: asyncio.TimerHandle | None = None
        self._eof = False
        self._lost = False
        self._routing = False
        self._route_scheduled = False

    # What the connection asks and tells: see `Intake`

    @property
    def owes_answers(self) -> bool:
        """Whether a request is being forwarded, or its answer is due."""
        return self.upstream.task is not None or self._answers.outstanding > 0

    @property
    def idle(self) -> bool:
        """Whether no request has begun that is not passed on whole."""
        return self._side is None and not self._requests.buffered

    @property
    def held_bytes(self) -> int:
        """How much waits of the client.

        A piece that the cluster does not take now is not counted: no more than a socket's buffer, and not the client's
        fault.
        """
        waiting = 0 if self.upstream.full or self.upstream.task is not None else self._requests.buffered
        return waiting if self._kept is None else waiting + len(self._kept.received)

    @property
    def frames_given(self) -> int:
        """How many requests have been taken whole."""
        return self._requests.given

    @property
    def own_upstream(self) -> Channel | None:
        """What asks the cluster about tokens as the client itself, if it has logged in there."""
        return self._relay.channel() if self._relay is not None and self._gateway.makes_its_tokens else None

    @property
    def ask_cluster(self) -> AskCluster | None:
        """What sends the request under way to the cluster, if its answer is for audit events."""
        return None if self._kept is None else partial(self._ask_cluster, self._kept)

    def connected(self, transport: asyncio.BaseTransport) -> None:
        """Find out which broker the client means, and offer what that broker speaks."""
        name = transport.get_extra_info("server_name")
        if self._broker_id is None and name is not None:
            self._broker_id = self._gateway.addresses.broker_of_name(name)
        versions = self._gateway.brokers.versions(self._broker_id)
        self._machine.offer(None if versions is None else self._gateway.offered.of(versions))

    def receive(self, data: bytes) -> None:
        """Take bytes of the client."""
        if self._is_login_step(data):
            self._connection.serve(data)
        else:
            self._requests.receive_data(data)
            self._route()

    def receive_eof(self) -> None:
        """Serve what has been received before the connection is closed, if that does not take too long."""
        if not self._eof:
            self._eof = True
            self._abort_in(GOODBYE_S)
            self._route()

    def served(self) -> None:
        """Go on when what was asked of us has been answered."""
        if self._side is None:
            self._kept = None
        if not self._untouched:
            self._route()

    def client_reads_not(self) -> None:
        """Take nothing of the upstream while the client does not read."""
        self.upstream.pause_reading()

    def client_reads(self) -> None:
        """Go on."""
        self.upstream.resume_reading()

    def closing(self) -> None:
        """Write what is left to be written upstream, and leave the client its time."""
        self.upstream.leave()
        if not self._lost:  # the end of a failed login waits, and its client may not
            self._abort_in(GOODBYE_S)

    def aborting(self) -> None:
        """Leave the upstream without writing what has not been written."""
        self.upstream.leave(at_once=True)

    def revoked(self) -> None:
        """Leave the upstream at once, in any state: the token was revoked or has expired."""
        self.upstream.leave(at_once=True)
        self._abort_in(REVOKED_S)

    def lost(self) -> None:
        """End the other side as well."""
        self._lost = True
        self.upstream.leave()
        if self._relay is not None:
            self._relay.lost()
        if self._deadline is not None:
            self._deadline.cancel()

    def _abort_in(self, seconds: float) -> None:
        """Set the time that the client has from now on; the first end of several counts."""
        deadline = self._loop.call_later(seconds, self._connection.abort)
        if self._deadline is not None:
            deadline, other = sorted((deadline, self._deadline), key=lambda timer: timer.when())
            other.cancel()
        self._deadline = deadline

    # From the client

    @property
    def _untouched(self) -> bool:
        """Whether nothing waits here, and nothing was forwarded: as in a login, unless the cluster decides about it."""
        upstream = self.upstream
        nothing_upstream = upstream.link is None and upstream.task is None
        return nothing_upstream and self._side is None and not (self._eof or self._requests.buffered)

    def _is_login_step(self, data: bytes) -> bool:
        """Say whether bytes are one whole frame of a login, which the connection can serve at once.

        Nearly all are. They need not pass through `_requests`, which would cost a third of a login's Python.
        """
        connection = self._connection
        return (
            self._machine.state is not State.READY
            and len(data) == 4 + int.from_bytes(data[:4])
            and self._untouched
            and not (self._routing or self._route_scheduled)
            and not (connection.finishing or connection.held_up() or self._machine.answers_at_length)
        )

    def _route(self) -> None:
        """Take requests and pass them on until one has to wait; an unexpected error ends only this client."""
        if self._routing or self._route_scheduled:
            return
        self._routing = True
        try:
            self._take_requests()
            self.upstream.write()
            self._connection.settle()
        except RemoteProtocolError as error:
            self._connection.reject(str(error))
        except Exception as error:  # noqa: BLE001 - it must not reach the loop, which would leave the connection hanging
            self._connection.fail(error)
        finally:
            self._routing = False

    def _take_requests(self) -> None:
        connection = self._connection
        for _ in range(STEPS_IN_A_ROW):
            if connection.closing:
                return
            turn = self._turn()
            if turn is _Turn.READ:
                connection.reading.resume()
                self._end_if_answered()
                return
            if turn is _Turn.WAIT:
                connection.reading.pause()
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
        if self.upstream.task is not None or self.upstream.full:
            return _Turn.WAIT
        if self._side is not None:
            return _Turn.PASS_ON if self._requests.buffered else _Turn.READ
        if self._connection.finishing or self._connection.held_up() or self._machine.answers_at_length:
            return _Turn.WAIT
        if self.upstream.log_in_again_if_due():
            return _Turn.WAIT
        return self._begin_request() if self._requests.buffered else _Turn.READ

    def _begin_request(self) -> _Turn:
        if self._machine.state is not State.READY:  # in a login a frame may have no header
            if self._requests.next_length() is None:
                return _Turn.READ
            self._side = Side.HERE
            return _Turn.PASS_ON
        self._request = self._request or self._requests.next_start()
        if self._request is None:
            return _Turn.READ
        self._side = self._side_of(self._request)
        self._kept = KeptRequest(self._request) if self._side is Side.BOTH else None
        return _Turn.WAIT if self._side is None else _Turn.PASS_ON

    def _side_of(self, request: RequestStart) -> Side | None:
        """Say which side answers a request now; None while others come first, or there is no way upstream so far."""
        rule = self._at_gateway.get(request.api_key)
        if rule is AtGateway.SERVED or (rule is AtGateway.SERVED_BY_TOKEN and self._connection.authenticator.by_token):
            return None if self._answers.outstanding else Side.HERE
        if rule is AtGateway.NEVER:
            self._connection.end(ConnectionClosed(f"API {request.api_key} is for brokers only and not forwarded"))
        elif self._machine.session.ended(self._services.steady_ms()):
            self._connection.end(ConnectionClosed("the session has ended"))
        elif self.upstream.link is None:
            self.upstream.open(self._candidates)
        elif request.api_key in self._gateway.audited:
            return None if self._answers.outstanding else Side.BOTH
        elif self._answers.outstanding < MAX_OUTSTANDING:
            self._answers.expect(request)
            self._frequent.forwarded[request.api_key] += 1
            return Side.UPSTREAM
        return None

    def _pass_on(self) -> None:
        """Pass on a piece of the request under way."""
        piece = self._requests.take()
        side = self._side
        if self._requests.finished:
            self._side = self._request = None
        if side is Side.UPSTREAM:
            self.upstream.pieces.append(piece)
            return
        if self._kept is not None:
            self._kept.received.extend(piece)
        self._connection.serve(piece)

    async def _ask_cluster(self, kept: KeptRequest) -> bytes:
        """Send the request under way as it came, and give the content of its answer; raises EOFError if none comes."""
        self._kept = None
        self._frequent.forwarded[kept.start.api_key] += 1
        return await self.upstream.ask(bytes(kept.received), kept.start.correlation_id)

    def _finish_if_answered(self) -> None:
        """Close as `finish` has asked for: what is under way is answered, and nothing after it is taken."""
        connection = self._connection
        if connection.finishing and self._side is None and not connection.owes_answers:
            connection.close()

    def _end_if_answered(self) -> None:
        """Close after a client that has said goodbye; a request that it has not sent whole is owed no answer."""
        half_sent = self._side is Side.UPSTREAM and self._request is not None and self._request.answered
        if self._eof and self._answers.outstanding == int(half_sent):
            self._connection.serve_rest()

    # From the cluster

    def _answered(self) -> None:
        """Go on if something has waited for the answers that the client has got."""
        connection = self._connection
        if (
            self._eof
            or not connection.reading.wanted
            or self.upstream.login_due
            or connection.finishing
            or connection.retiring
        ):
            self._route()

    def _candidates(self) -> list[Address]:
        return self._gateway.brokers.candidates(self._broker_id)

    def _advertise(self, node_id: int, host: str, port: int) -> tuple[str, int]:
        self._gateway.brokers.learn(node_id, host, port)
        return self._gateway.addresses.advertised(
            self._services.listener, node_id, self._connection.requests.endpoint()
        )
