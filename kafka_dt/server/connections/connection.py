"""One client's socket: bytes to `protocol`, its events to the login and the handlers, their answers back.

The shell is plain: read, feed, do what each event says, write. Requests of one connection are served one at a time, in
order. While one is under way, or the client does not read its answers, little more is read than what is there already.

A login whose credential is in memory is served without a task. What nobody foresaw is logged whole, answered without
detail where an answer is owed, and touches no other connection.

Limit: the end of a client is not seen while its socket is not read. So a long describe goes on after its client has
left if the client had sent more than `READ_AHEAD_BYTES` behind it. `LongWork` lets one such describe work at a time.

Source: Kafka's SocketServer.Processor; aioquic's asyncio shell for the shape.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Coroutine
from dataclasses import replace
from typing import Any, Final, cast

from kio.schema.errors import ErrorCode

from kafka_dt.audit import RefusalReason
from kafka_dt.config import Endpoint
from kafka_dt.identity.certificates.client_principal import CertificateUnusable
from kafka_dt.identity.login.login import LoggedIn, LoginOutcome, Refused
from kafka_dt.log import Words, of_peer
from kafka_dt.server.addresses import address_text, as_ipv4, client_host
from kafka_dt.server.audited.connection import ConnectionAudit
from kafka_dt.server.connections.reading import Reading
from kafka_dt.server.connections.services import ConnectionServices
from kafka_dt.server.handlers import RequestContext
from kafka_dt.server.listeners.deadlines import LoginConnection
from kafka_dt.tokens import ANONYMOUS, Principal
from kafka_dt_protocol import (
    ConnectionClosed,
    Event,
    MechanismChosen,
    RemoteProtocolError,
    RequestReceived,
    ServerConnection,
    State,
    TokenReceived,
    refusal,
)
from kafka_dt_protocol.sasl import Challenge

_LOG = logging.getLogger(__name__)

READ_AHEAD_BYTES: Final = 64 * 1024
"""How much may wait behind a request that is under way before reading stops."""
RETIREMENT_S: Final = 10.0
"""How long a connection that is to be closed waits for a moment without a request; then it takes no further one."""
LONGEST_NAME: Final = 200
"""How much of a name that somebody claims is logged, in characters."""
EVENTS_IN_A_ROW: Final = 64
"""How many requests of one connection are served before the others get their turn."""

SOFTWARE_CHARACTERS: Final = 80
"""How much of what a client calls its library goes into a line of the log."""


class ClientConnection(LoginConnection):
    """The server's end of one connection.

    Args:
        services: what it shares with the others of its listener.
    """

    last_received: float = 0.0
    """When something was received last, by the loop's clock in seconds."""

    def __init__(self, services: ConnectionServices) -> None:
        self._services = services
        self._machine = ServerConnection(services.listener.mechanisms, services.limits)
        self._login = services.new_login(services.listener)
        self._audit: ConnectionAudit | None = None
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._login_asked = 0.0  # when the last message of a login came, by the loop's clock in seconds
        self._peer = "an unknown address"
        self._client_host = ""
        self._certified = ANONYMOUS
        self._session_token: str | None = None
        self._closing = False
        self._finishing = False
        self._retiring = False
        self._reading = Reading(services.memory, self._give_up)
        self._writable = True
        self._pump_scheduled = False
        self._client_left = False
        self._ends_with_client = False

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the socket."""
        # uvloop's transports are asyncio's in all but their class.
        self._transport = cast("asyncio.Transport", transport)
        self._reading.begin(self._transport)
        peer = transport.get_extra_info("peername")
        self._peer = address_text(peer)
        self._client_host = client_host(peer)
        if self._services.recorder is not None:
            self._audit = ConnectionAudit(self._services.recorder, self._services.listener.name, self._machine, peer)
        self.last_received = self._loop.time()
        self._services.opened(self)
        try:
            self._certified = self._services.certified(_certificate(transport))
        except CertificateUnusable as error:
            if self._audit is not None:
                self._audit.certificate_refused()
            self._end(ConnectionClosed(str(error)))
        else:
            if self._audit is not None and self._certified != ANONYMOUS:
                self._audit.certified(self._certified)

    def data_received(self, data: bytes) -> None:
        """Take bytes of the client."""
        if self._closing:
            return
        self.last_received = self._loop.time()
        self._machine.receive_data(data)
        self._pump()
        if self._machine.buffered > READ_AHEAD_BYTES and (self._held_up() or self._pump_scheduled):
            self._reading.pause()

    def eof_received(self) -> bool:
        """Serve what has been received before the connection is closed."""
        self._client_leaves()
        if not self._closing:
            self._machine.receive_eof()
            self._pump()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection; a change that is under way is completed."""
        del exc  # that a client is gone is nothing to report
        self._closing = True
        self._client_leaves()
        if self._audit is not None:
            self._audit.lost(self._login.foregone)
        self._login.abandon()
        self._leave_session()
        self._services.deadlines.forget(self._reauthentication_overdue)
        self._machine.discard()
        self._reading.end()
        self._services.closed(self)

    def pause_writing(self) -> None:
        """Serve no further request while the client does not read its answers."""
        self._writable = False
        self._reading.client_reads_not(self._machine.unsent)

    def resume_writing(self) -> None:
        """Go on serving."""
        self._writable = True
        self._reading.client_reads()
        self._pump()

    # Session

    def revoke(self) -> None:
        """Close the connection: its token is no more."""
        if not self._closing:
            self._session_token = None
            _LOG.info(
                "Closing the connection of %s: its token was revoked or has expired",
                self._client(),
                extra=of_peer(self._client_host),
            )
            self.close()

    def login_overdue(self) -> None:
        """Close the connection unless its first login has been completed; also one that waits for us."""
        if not (self._closing or self._machine.state.logged_in):
            self._give_up_login("login")

    def _reauthentication_overdue(self) -> None:
        if not self._closing and self._machine.state is not State.READY:
            self._give_up_login("re-authentication")

    def _give_up_login(self, kind: str) -> None:
        seconds = self._services.deadlines.timeout_s
        self._end(ConnectionClosed(f"the {kind} took longer than {seconds:g} s (kafka.dt.login.timeout.ms)"))
        self.abort()  # whether or not the client reads what was written before

    def end_session_at(self, when_ms: int) -> None:
        """Let the session end at an instant, milliseconds since the epoch, unless its lifetime ends before."""
        self._machine.end_session_at(when_ms)

    @property
    def closing(self) -> bool:
        """Whether it is closed but for what the client has not read yet."""
        return self._closing

    @property
    def busy(self) -> bool:
        """Whether a request is being served here, so that a client that is silent is not idle."""
        return self._machine.awaits_answer

    @property
    def owes_answers(self) -> bool:
        """Whether something was asked for that is still to be answered, by whomever, or is being answered."""
        return self.busy or self._machine.answers_at_length

    @property
    def principal(self) -> Principal:
        """Who the client is, as far as it has shown."""
        identity = self._login.identity
        return identity.principal if identity else self._certified

    @property
    def _by_token(self) -> bool:
        """Whether the client logged in with a token, last."""
        identity = self._login.identity
        return identity is not None and identity.token_id is not None

    def finish(self) -> None:
        """Close as soon as what is under way has been answered."""
        self._finishing = True
        if not self.owes_answers:
            self.close()

    def retire(self) -> None:
        """Close as soon as no request is under way, so that the client connects again, to this node or another."""
        self._retiring = True
        self._loop.call_later(RETIREMENT_S, self._finish_retirement)
        self._retire_if_quiet()

    def abort(self) -> None:
        """Close without writing what the client has not read."""
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """Write what is left to be written and close."""
        self._closing = True
        if self._transport is not None:
            self._flush()
            self._transport.close()

    # Events

    def _pump(self) -> None:
        """Do what the events say until one must be waited for; what nobody foresaw ends this connection alone."""
        try:
            self._do_events()
            if self._audit is not None:
                self._audit.heard()
            self._account()
            self._retire_if_quiet()
        except Exception as error:  # noqa: BLE001 - it must not reach the loop, which would leave the connection hanging
            self._log_own(error)
            self.abort()

    def _do_events(self) -> None:
        for _ in range(EVENTS_IN_A_ROW):
            if self._closing or self._held_up():
                return
            if self._machine.answers_at_length:
                self._flush()
                break
            if self._finishing:
                if not self.owes_answers:
                    self.close()
                return
            event = self._machine.next_event(self._services.now_ms())
            if not (isinstance(event, ConnectionClosed) and event.delayed):
                # The answer to a failed login waits with the closing: guessing takes its time.
                self._flush()
            if self._machine.has_more:
                break
            if event is None:
                self._reading.resume()
                self._settled()
                return
            self._on_event(event)
            if self._machine.drained:
                self._flush()
                self._reading.resume()
                self._settled()
                return
        self._pump_later()

    def _on_event(self, event: Event) -> None:
        match event:
            case RequestReceived():
                self._start(self._serve(event))
            case TokenReceived():
                self._evaluate(event.message)
            case MechanismChosen():
                self._login.begin(event.mechanism)
                if self._machine.state.logged_in:
                    self._services.deadlines.begin(self._reauthentication_overdue)
            case ConnectionClosed():
                self._end(event)

    def _retire_if_quiet(self) -> None:
        if self._retiring and not self._closing and self._is_quiet():
            _LOG.info(
                "Closing the connection of %s: its age is that of kafka.dt.connections.max.age.ms",
                self._client(),
                extra=of_peer(self._client_host),
            )
            self.close()

    def _finish_retirement(self) -> None:
        if not self._closing and self._machine.state is State.READY:
            self.finish()

    def _is_quiet(self) -> bool:
        """Whether no request and no login has begun that is not answered."""
        return self._machine.state is State.READY and not (self.owes_answers or self._held_bytes() or self._task)

    def _settled(self) -> None:
        """Hear that everything received so far has been served; for those who stand in front of others."""

    async def _serve(self, request: RequestReceived) -> None:
        try:
            self._machine.respond(await self._services.handler(self._context(request), request.body))
        except RemoteProtocolError as error:
            self._end(self._machine.reject(str(error)))
        except Exception:  # noqa: BLE001 - what nobody foresaw must not take other requests along
            key = request.header.api_key
            _LOG.exception("A request of API %d of %s failed", key, self._peer, extra=of_peer(self._client_host))
            self._machine.respond(refusal(request.header, request.body, ErrorCode.unknown_server_error))

    def _end_with_client(self) -> None:
        """Call off the request under way when the client goes, or has gone: for long work that changes nothing.

        A client that closes its socket looks like one that will send no more, so that is taken for going as well.
        """
        self._ends_with_client = True
        if self._client_left and self._task is not None:
            self._task.cancel()

    def _client_leaves(self) -> None:
        self._client_left = True
        if self._ends_with_client and self._task is not None:
            self._task.cancel()

    def _evaluate(self, message: bytes) -> None:
        self._login_asked = self._loop.time()
        outcome = self._login.evaluate(message)
        if isinstance(outcome, Coroutine):
            self._start(self._await_login(outcome))
        else:
            self._conclude(outcome)

    async def _await_login(self, outcome: Awaitable[LoginOutcome]) -> None:
        try:
            known = await outcome
        except Exception:  # noqa: BLE001 - as above
            _LOG.exception("A login of %s failed for a reason of our own", self._peer, extra=of_peer(self._client_host))
            if self._audit is not None:
                self._audit.broken_off()
            self._break_off_login("an error of the server")
        else:
            if not self._closing:  # else the client has gone, and its session ends before it begins
                self._conclude(known)

    def _conclude(self, outcome: LoginOutcome) -> None:
        if self._audit is not None:
            self._audit.concluded(outcome)
        match outcome:
            case Challenge():
                self._machine.challenge(outcome.message)
                self._loop.call_soon(self._login.prepare)  # when the challenge has been written
            case LoggedIn():
                self._machine.succeed(outcome.message, outcome.session_lifetime_ms, self._services.now_ms())
                self._services.deadlines.forget(self._reauthentication_overdue)
                self._join_session(outcome.identity.token_id)
            case Refused():
                who = f"{outcome.name[:LONGEST_NAME]!r} by {outcome.mechanism}: " if outcome.name else ""
                if outcome.reason is RefusalReason.UNAVAILABLE:
                    self._break_off_login(f"{who}{outcome.detail}")
                else:
                    self._fail_login(outcome.message, f"{who}{outcome.detail}")

    def _fail_login(self, message: str, detail: str) -> None:
        event = self._machine.fail(message)
        delay_s = self._services.failed_logins.delay_s(self._client_host, self._login_took_s())
        # A warning: the client is told no reason, so this line is where its user finds one, in `kafka-dt run` as well.
        self._end(replace(event, reason=f"failed authentication, {detail}"), logging.WARNING, delay_s)

    def _break_off_login(self, detail: str) -> None:
        """Close without an answer: any would be final for some clients, and those whose connection ends come again."""
        event = self._machine.break_off(f"a login that cannot be decided now, {detail}")
        self._end(event, logging.WARNING, self._services.failed_logins.undecided_s(self._login_took_s()))

    def _login_took_s(self) -> float:
        """Say for how many seconds the last message of the login has been looked at."""
        return self._loop.time() - self._login_asked

    def _end(self, event: ConnectionClosed, level: int = logging.INFO, delay_s: float | None = None) -> None:
        """Close; where the event is delayed after so many seconds, by default as after any failed login."""
        self._closing = True
        if self._audit is not None:
            self._audit.closing()
        if event.error:
            _LOG.log(
                level,
                "Closing the connection of %s on listener %s: %s",
                self._client(),
                self._services.listener.name,
                Words(event.reason),
                extra=of_peer(self._client_host),
            )
        if event.delayed:
            # What the client sends meanwhile is read and dropped: closing with unread bytes would reset the
            # connection, and the client might never see the answer.
            self._reading.resume()
            if delay_s is None:
                delay_s = self._services.failed_logins.delay_s(self._client_host)
            self._loop.call_later(delay_s, self.close)
        else:
            self.close()

    def _log_own(self, error: BaseException) -> None:
        """Log an error that is not the client's."""
        text = "The connection of %s is closed for a reason of our own"
        _LOG.error(text, self._peer, exc_info=error, extra=of_peer(self._client_host))

    def _client(self) -> str:
        """Say for the log where the client is and what it calls its library, if it did (KIP-511: printable ASCII)."""
        software = self._machine.client_software
        return f"{self._peer} ({' '.join(software):.{SOFTWARE_CHARACTERS}})" if software else self._peer

    # What a request and a session know

    def _context(self, request: RequestReceived) -> RequestContext:
        return RequestContext(
            header=request.header,
            principal=self.principal,
            client_host=self._client_host,
            token_login=self._by_token,
            security_protocol=self._services.listener.security_protocol,
            endpoint=self._endpoint(),
            audit=self._audit,
            end_with_client=self._end_with_client,
        )

    def _endpoint(self) -> Endpoint:
        """Say where this client reaches this node: as advertised, else where it has connected to."""
        advertised = self._services.listener.advertised
        if advertised.host and advertised.port:
            return advertised
        host, port = self._transport.get_extra_info("sockname")[:2] if self._transport else ("", 0)
        return Endpoint(advertised.name, advertised.host or as_ipv4(host), advertised.port or port)

    def _join_session(self, token_id: str | None) -> None:
        self._leave_session()
        if token_id is not None:
            self._services.sessions.add(token_id, self)
            self._session_token = token_id

    def _leave_session(self) -> None:
        if self._session_token is not None:
            self._services.sessions.remove(self._session_token, self)
            self._session_token = None

    # Flow control

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._task = self._loop.create_task(work)
        self._task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        self._ends_with_client = False
        error = None if task.cancelled() else task.exception()
        if task.cancelled():
            self.abort()
        elif error is not None:
            self._log_own(error)
            self.abort()
        else:
            self._pump()

    def _held_up(self) -> bool:
        return self._machine.awaits_answer or self._task is not None or not self._writable

    def _pump_later(self) -> None:
        if not self._pump_scheduled:
            self._pump_scheduled = True
            self._loop.call_soon(self._pump_scheduled_now)

    def _pump_scheduled_now(self) -> None:
        self._pump_scheduled = False
        self._pump()

    def _flush(self) -> None:
        data = self._machine.data_to_send()
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    # Memory

    def _give_up(self, reason: str) -> None:
        """Close at once, for what the connection holds is needed for others."""
        self._machine.discard()
        if not self._closing:
            self._end(ConnectionClosed(reason))
        self.abort()

    def _account(self) -> None:
        """Say what is held here; between requests that is nothing, and while the client reads its answers."""
        if not self._writable:  # a request may have been served meanwhile
            self._reading.client_reads_not(self._machine.unsent)
        size = 0 if self._closing else self._held_bytes()
        if size or self._reading.holds:
            self._reading.account(
                size,
                frames=self._frames_given(),
                unfinished=self._waits_for_client(),
                logged_in=self._machine.state.logged_in,
            )

    def _held_bytes(self) -> int:
        return self._machine.buffered

    def _frames_given(self) -> int:
        return self._machine.frames_given

    def _waits_for_client(self) -> bool:
        """Whether nothing can be done with what is held before more arrives."""
        return not (self._held_up() or self._pump_scheduled)


def _certificate(transport: asyncio.BaseTransport) -> bytes | None:
    ssl_object = transport.get_extra_info("ssl_object")
    return None if ssl_object is None else cast("ssl.SSLObject", ssl_object).getpeercert(binary_form=True)
