"""One client's socket: bytes to `kafka_dt_protocol`, its events to logins and handlers, their answers back.

Requests of one connection are served one at a time, in order. While one is under way, or the client does not read its
answers, the connection reads little more than it has read already. An unforeseen error is logged whole and touches no
other connection.

Limit: the end of a client is not seen while its socket is not read. So a long describe goes on after its client has
left if the client had sent more than `READ_AHEAD_BYTES` behind it. `LongWork` lets one such describe work at a time.

Source: kafka.network.Processor; aioquic's asyncio shell for the shape.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from kafka_dt.identity.certificates import CertificateUnusable
from kafka_dt.log import ComposedText, event, of_peer
from kafka_dt.server.addresses import address_text, client_host
from kafka_dt.server.connections.authenticator import Authenticator
from kafka_dt.server.connections.intake import Intake, ServedHere
from kafka_dt.server.connections.reading import Reading
from kafka_dt.server.connections.requests import ConnectionRequests
from kafka_dt.server.connections.services import ConnectionServices
from kafka_dt.server.handlers import AskCluster
from kafka_dt.tokens import OwnConnection
from kafka_dt_protocol import (
    ConnectionClosed,
    Event,
    MechanismChosen,
    RequestReceived,
    ServerConnection,
    State,
    TokenReceived,
)
from kafka_dt_protocol.wire.proxy_header import Endpoint

_LOG = logging.getLogger(__name__)

RETIREMENT_S: Final = 10.0
"""How long a connection that is to be closed waits for a moment without a request; then it takes no further one."""
EVENTS_IN_A_ROW: Final = 64
"""How many requests of one connection are served before the others get their turn."""

SOFTWARE_CHARACTERS: Final = 80
"""How much of what a client calls its library goes into a line of the log."""


class ClientConnection(asyncio.Protocol):
    """The server's end of one connection."""

    last_received: float
    """When something was received last, by the loop's clock in seconds."""
    peer: str = "an unknown address"
    """Where the client is, for the log."""
    client_host: str = ""
    """The client's address, as ACLs have it."""
    closing: bool
    """Whether it is closed, except that the client has not read all answers yet."""
    finishing: bool
    """Whether it closes as soon as what is under way has been answered."""
    retiring: bool
    """Whether it closes as soon as no request is under way."""
    writable: bool
    """Whether the client reads what is written."""
    goes_on: bool
    """Whether it goes on serving by itself, when others have had their turn."""

    def __init__(
        self, services: ConnectionServices, new_intake: Callable[[ClientConnection], Intake] = ServedHere
    ) -> None:
        # Python looks up what an instance has itself much faster than a default of its class.
        self.last_received = 0.0
        self.closing = self.finishing = self.retiring = self.goes_on = False
        self.writable = True
        self.services = services
        self.machine = ServerConnection(tuple(services.listener.mechanisms), services.limits, services.apis)
        self.authenticator = Authenticator(self)
        self.requests = ConnectionRequests(self)
        self.reading = Reading(services.memory, self._give_up)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._intake = new_intake(self)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the socket."""
        self._intake.connected(transport)
        # uvloop's transports are asyncio's in all but their class.
        self._transport = cast("asyncio.Transport", transport)
        self.reading.begin(self._transport)
        peer = transport.get_extra_info("peername")
        self.peer = address_text(peer)
        self.client_host = client_host(peer)
        self.last_received = self._loop.time()
        self.services.opened(self)
        self.services.counts.frequent.connections += 1
        try:
            self.authenticator.connected(transport)
        except CertificateUnusable as error:
            self.end(ConnectionClosed(str(error)))

    def data_received(self, data: bytes) -> None:
        """Take bytes of the client."""
        if self.closing:
            return
        self.last_received = self._loop.time()
        self._intake.receive(data)

    def eof_received(self) -> bool:
        """Serve what has been received before the connection is closed."""
        self.requests.client_leaves()
        self._intake.receive_eof()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection; a change that is under way is completed."""
        del exc  # that a client is gone is nothing to report
        self.closing = True
        self.requests.client_leaves()
        self.authenticator.lost()
        self.machine.discard()
        self.reading.end()
        self.services.closed(self)
        self._intake.lost()

    def pause_writing(self) -> None:
        """Serve no further request while the client does not read its answers."""
        self.writable = False
        self.reading.client_reads_not(self.machine.unsent)
        self._intake.client_reads_not()

    def resume_writing(self) -> None:
        """Go on serving."""
        self._intake.client_reads()
        self.writable = True
        self.reading.client_reads()
        self.serve()

    # Its end

    def revoke(self) -> None:
        """Close the connection: its token was revoked or has expired."""
        if not self.closing:
            _LOG.info(
                "Closing the connection of %s: its token was revoked or has expired",
                self._client(),
                extra=self.about("connection-close", reason="its token was revoked or has expired"),
            )
        self.end_session()

    def end_session(self) -> None:
        """Close the connection as `revoke` does; the caller logs why."""
        self._intake.revoked()
        if not self.closing:
            self.authenticator.revoked()
            self.close()

    def login_overdue(self) -> None:
        """Close the connection unless its first login has been completed; also one that waits for us."""
        if not (self.closing or self.machine.state.logged_in):
            self._give_up_login("login")

    def reauthentication_overdue(self) -> None:
        """Close the connection unless its session has logged in again; also one that waits for us."""
        if not self.closing and self.machine.state is not State.READY:
            self._give_up_login("re-authentication")

    def _give_up_login(self, kind: str) -> None:
        seconds = self.services.deadlines.timeout_s
        self.end(ConnectionClosed(f"the {kind} took longer than {seconds:g} s (kafka.dt.login.timeout.ms)"))
        self.abort()  # whether or not the client reads what was written before

    def end_session_at(self, when_ms: int) -> None:
        """Let the session end at an instant, milliseconds since the epoch, unless its lifetime ends before."""
        self.authenticator.end_session_at(when_ms)

    @property
    def client_name(self) -> str:
        """What all connections of a client have in common, as far as can be told: its address and its client id."""
        return f"{self.client_host} {self.machine.client_id}"

    @property
    def busy(self) -> bool:
        """Whether a request is being served here, so that a client that is silent is not idle."""
        return self.machine.awaits_answer

    @property
    def owes_answers(self) -> bool:
        """Whether a request waits for its answer, here or at the intake, or is being answered."""
        return self.busy or self.machine.answers_at_length or self._intake.owes_answers

    def finish(self) -> None:
        """Close as soon as what is under way has been answered."""
        self.finishing = True
        if not self.owes_answers:
            self.close()

    def retire(self) -> None:
        """Close as soon as no request is under way, so that the client connects again, to this node or another."""
        self.retiring = True
        self._loop.call_later(RETIREMENT_S, self._finish_retirement)
        self._retire_if_quiet()

    def abort(self) -> None:
        """Close without writing what the client has not read."""
        self._intake.aborting()
        self.closing = True
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """Write what is left to be written and close."""
        self._intake.closing()
        self.closing = True
        if self._transport is not None:
            self._flush()
            self._transport.close()

    def end(
        self,
        closed: ConnectionClosed,
        level: int = logging.INFO,
        delay_s: float | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        """Close, and log why.

        Args:
            closed: why.
            level: of the line.
            delay_s: the time to the closing in seconds, if it is delayed; by default that after any failed login.
            about: what the line is about; by default the closing.
        """
        self.closing = True
        self.authenticator.closing()
        if closed.error:
            _LOG.log(
                level,
                "Closing the connection of %s on listener %s: %s",
                self._client(),
                self.services.listener.name,
                ComposedText(closed.reason),
                extra=about or self.about("connection-close", reason=closed.reason),
            )
        if closed.delayed:
            # What the client sends meanwhile is read and dropped: closing with unread bytes would reset the
            # connection, and the client might never see the answer.
            self.reading.resume()
            if delay_s is None:
                delay_s = self.services.failed_logins.delay_s(self.client_host)
            self._loop.call_later(delay_s, self.close)
        else:
            self.close()

    def reject(self, reason: str) -> None:
        """Close, because the client sent what makes no sense; the reason is one line for the log."""
        self.end(self.machine.give_up(reason))

    def fail(self, error: BaseException) -> None:
        """Close at once because of an error that is not the client's, and log it whole."""
        text = "The connection of %s is closed because of an unexpected error"
        _LOG.error(text, self.peer, exc_info=error, extra=of_peer(self.client_host))
        self.abort()

    def _give_up(self, reason: str) -> None:
        """Close at once, because other connections need the memory."""
        self.machine.discard()
        if not self.closing:
            self.end(ConnectionClosed(reason))
        self.abort()

    def _retire_if_quiet(self) -> None:
        if self.retiring and not self.closing and self._is_quiet():
            _LOG.info(
                "Closing the connection of %s: its age is that of kafka.dt.connections.max.age.ms",
                self._client(),
                extra=self.about("connection-close", reason="its age"),
            )
            self.close()

    def _finish_retirement(self) -> None:
        if not self.closing and self.machine.state is State.READY:
            self.finish()

    def _is_quiet(self) -> bool:
        """Whether no request and no login has begun that is not answered."""
        machine, intake = self.machine, self._intake
        idle = machine.state is State.READY and intake.idle and not (machine.buffered or intake.held_bytes)
        return idle and not (self.owes_answers or self.requests.task)

    def about(self, action: str, *, failed: bool | None = None, reason: str = "", **login: str) -> Mapping[str, Any]:
        """Say what a line of the log about this client is about: `event`'s arguments."""
        host, listener, software = self.client_host, self.services.listener.name, self._software()
        return event(action, failed=failed, host=host, listener=listener, software=software, reason=reason, **login)

    def _client(self) -> str:
        """Say for the log where the client is and what it calls its library, if it did."""
        software = self._software()
        return f"{self.peer} ({software})" if software else self.peer

    def _software(self) -> str:
        """Say what the client calls its library (KIP-511: printable ASCII); empty if it did not."""
        return " ".join(self.machine.client_software or ())[:SOFTWARE_CHARACTERS]

    # Events

    def serve(self, data: bytes = b"") -> None:
        """Take bytes and do what the events say until one must be waited for; what fails ends this connection alone."""
        try:
            if data:
                self.machine.receive_data(data)
            self._do_events()
            if self.authenticator.audit is not None:
                self.authenticator.audit.heard()
            self.settle()
        except Exception as error:  # noqa: BLE001 - it must not reach the loop, which would leave the connection hanging
            self.fail(error)

    def serve_rest(self) -> None:
        """Serve the bytes that have arrived, and then close: the client sends no more."""
        if not self.closing:
            self.machine.receive_eof()
            self.serve()

    def _do_events(self) -> None:
        machine = self.machine
        for _ in range(EVENTS_IN_A_ROW):
            if self.closing or self.held_up():
                return
            if machine.answers_at_length:
                self._flush()
                break
            if self.finishing:
                if not self.owes_answers:
                    self.close()
                return
            event = machine.next_event(self.services.steady_ms())
            if machine.unsent and not (isinstance(event, ConnectionClosed) and event.delayed):
                # The answer to a failed login waits with the closing: guessing takes its time.
                self._flush()
            if machine.has_more:
                break
            if event is None:
                self.reading.resume()
                self._intake.served()
                return
            self._on_event(event)
            if machine.drained:
                self._flush()
                self.reading.resume()
                self._intake.served()
                return
        self._serve_later()

    def _on_event(self, event: Event) -> None:
        match event:
            case RequestReceived():
                self.requests.begin(event)
            case TokenReceived():
                self.authenticator.evaluate(event.message)
            case MechanismChosen():
                self.authenticator.begin(event.mechanism)
            case ConnectionClosed():
                self.end(event)

    # Flow control

    def held_up(self) -> bool:
        """Whether nothing can be served now: a request is under way, or the client does not read."""
        return self.machine.awaits_answer or self.requests.task is not None or not self.writable

    def _serve_later(self) -> None:
        if not self.goes_on:
            self.goes_on = True
            self._loop.call_soon(self._serve_scheduled)

    def _serve_scheduled(self) -> None:
        self.goes_on = False
        self.serve()

    def addresses(self) -> tuple[Endpoint | None, Endpoint | None]:
        """Give host and port of the client, and of what it has connected to; None where they are not known."""
        info = self._transport.get_extra_info if self._transport is not None else lambda _: None
        peer, own = info("peername"), info("sockname")
        return (peer[0], peer[1]) if peer else None, (own[0], own[1]) if own else None

    @property
    def own_upstream(self) -> OwnConnection | None:
        """The client's own connection to the cluster whose tokens the node serves; None if it has none."""
        return self._intake.own_upstream

    @property
    def ask_cluster(self) -> AskCluster | None:
        """What sends the request under way to the cluster behind the gateway; None where the node decides itself."""
        return self._intake.ask_cluster

    def own_address(self) -> tuple[str, int]:
        """Give host and port that the client has connected to; none before there is a socket."""
        host, port = self._transport.get_extra_info("sockname")[:2] if self._transport else ("", 0)
        return host, port

    def write(self, pieces: Sequence[bytes]) -> None:
        """Write answers of the intake, all at once: a call of the system costs more than all else that they need."""
        transport = self._transport
        if not pieces or transport is None or transport.is_closing():
            return
        if len(pieces) == 1:
            transport.write(pieces[0])
        else:
            transport.writelines(pieces)

    def _flush(self) -> None:
        data = self.machine.data_to_send()
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def settle(self) -> None:
        """Say what is held here; between requests that is nothing, and while the client reads its answers.

        A connection that is to retire closes if no request is under way.
        """
        machine, intake, reading = self.machine, self._intake, self.reading
        if not self.writable:  # a request may have been served meanwhile
            reading.client_reads_not(machine.unsent)
        size = 0 if self.closing else machine.buffered + intake.held_bytes
        if size or reading.holds:
            reading.account(
                size,
                frames=machine.frames_given + intake.frames_given,
                unfinished=reading.wanted and not (self.goes_on or self.held_up()),
                logged_in=machine.state.logged_in,
            )
        if self.retiring:
            self._retire_if_quiet()
