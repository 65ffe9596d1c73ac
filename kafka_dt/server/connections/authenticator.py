"""Who the client of one connection is, how it logs in, and the session that its last login began.

The authenticator passes what the client sends to its `Login`, and tells the outcome to the protocol's machine and to
the audit. It registers the session of a token, so that the end of the token ends it. A login whose credential is in
memory is decided without a task.

An error of our own, and a login that cannot be decided now, close the connection without an answer: any answer would be
final for some clients, and clients whose connection closes come again.

Source: KIP-43, KIP-152, KIP-306 (delays), KIP-368;
org.apache.kafka.common.security.authenticator.SaslServerAuthenticator.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.audit import RefusalReason
from kafka_dt.audit.durability import AuditUnavailable
from kafka_dt.identity.certificates import CertificateUnusable
from kafka_dt.identity.login.login import Identity, LoggedIn, LoginOutcome, LoginRefused
from kafka_dt.log import of_peer
from kafka_dt.metrics.counts import CERTIFICATE, OK
from kafka_dt.server.audited.connection import FAULTS, ConnectionAudit
from kafka_dt.tokens import ANONYMOUS, Principal
from kafka_dt_protocol import ConnectionClosed
from kafka_dt_protocol.sasl import Challenge

if TYPE_CHECKING:
    import ssl

    from kafka_dt.identity.mechanisms import Relay
    from kafka_dt.server.connections.connection import ClientConnection

_LOG = logging.getLogger(__name__)

LONGEST_NAME: Final = 200
"""How much of a name that a client claims is logged, in characters."""


class Authenticator:
    """The principal of a connection's client, and how it logs in."""

    audit: ConnectionAudit | None
    """What audit events say of the connection; None where nothing is written down."""

    def __init__(self, connection: ClientConnection) -> None:
        self.audit = None
        self._connection = connection
        self._services = connection.services
        self._counts = connection.services.counts
        self._login = self._services.new_login(self._services.listener)
        self._loop = asyncio.get_running_loop()
        self._asked = 0.0  # when the last message of a login came, by the loop's clock in seconds
        self._certified = ANONYMOUS
        self._token_id: str | None = None  # of the token that the session is registered for
        self._ends_ms: int | None = None  # when that token ends, if that has changed since the login was decided

    @property
    def principal(self) -> Principal:
        """The client's principal, as far as it has logged in."""
        identity = self._login.identity
        return identity.principal if identity else self._certified

    @property
    def token_id(self) -> str | None:
        """The token that the client logged in with, last; None if it was no token."""
        identity = self._login.identity
        return identity.token_id if identity else None

    @property
    def by_token(self) -> bool:
        """Whether the client logged in with a token, last."""
        return self.token_id is not None

    def connected(self, transport: asyncio.BaseTransport) -> None:
        """Take the certificate that the client has shown, if it has shown one.

        Raises:
            CertificateUnusable: no principal can be made of it.
        """
        recorder, machine = self._services.recorder, self._connection.machine
        if recorder is not None:
            peer = transport.get_extra_info("peername")
            self.audit = ConnectionAudit(recorder, self._services.listener.name, machine, peer)
        try:
            self._certified = self._services.certified(_certificate(transport))
        except CertificateUnusable:
            self._counts.logins.add(CERTIFICATE, RefusalReason.NOT_ALLOWED)
            if self.audit is not None:
                self.audit.certificate_refused()
            raise
        if self._certified == ANONYMOUS:
            return
        self._counts.logins.add(CERTIFICATE, OK)
        if self.audit is not None:
            self.audit.certified(self._certified)
            if self.audit.strict:
                self._connection.requests.start(self._serve_when_durable(self.audit))

    def relay_by(self, relay: Relay) -> None:
        """Let the cluster behind a gateway decide about the logins that a mechanism relays."""
        self._login.relay_by(relay)

    def begin(self, mechanism: str) -> None:
        """Begin a login by a mechanism; in a session that there is, it must not take too long."""
        self._login.begin(mechanism)
        if self._connection.machine.state.logged_in:
            self._services.deadlines.begin(self._connection.reauthentication_overdue)

    def evaluate(self, message: bytes) -> None:
        """Judge a message of the mechanism, at once or in a task of the connection."""
        self._asked = self._loop.time()
        self._services.preparations.forget(self._login)
        try:
            outcome = self._login.evaluate(message)
        except Exception:  # noqa: BLE001 - it must not end the login unseen, nor sooner than a refusal
            self._went_wrong()
            return
        if isinstance(outcome, LoginOutcome):
            self._conclude(outcome)
        else:
            self._connection.requests.start(self._await(outcome))

    def end_session_at(self, when_ms: int) -> None:
        """End the session at an instant, milliseconds since the epoch, also one that has yet to begin."""
        self._ends_ms = when_ms
        self._cut_session(when_ms)

    def revoked(self) -> None:
        """Take note that the session is no longer registered, for its token has ended."""
        self._token_id = None

    def closing(self) -> None:
        """Take note of a login that ends with the connection, before its mechanism could end it."""
        machine = self._connection.machine
        if machine.login_fault is not None:
            self._counts.logins.add(machine.asked_mechanism, FAULTS[machine.login_fault])
        if self.audit is not None:
            self.audit.closing()

    def lost(self) -> None:
        """Forget the login under way and the session: the connection is closed."""
        foregone = self._login.foregone
        if foregone is not None and self._connection.machine.login_fault is None:
            self._counts.logins.add(foregone.mechanism, foregone.reason)
        if self.audit is not None:
            self.audit.lost(foregone)
        self._services.preparations.forget(self._login)
        self._login.abandon()
        self._leave_session()
        self._services.deadlines.forget(self._connection.reauthentication_overdue)

    async def _await(self, outcome: Awaitable[LoginOutcome]) -> None:
        connection = self._connection
        begun_s = time.perf_counter()
        try:
            known = await outcome
        except Exception:  # noqa: BLE001 - an unforeseen error must not take other connections along
            self._went_wrong()
        else:
            self._counts.login_wait_seconds.observe(time.perf_counter() - begun_s)
            if not connection.closing:  # else the client has gone, and its session ends before it begins
                self._conclude(known)

    def _went_wrong(self) -> None:
        """Break off a login because of the unforeseen error that is being handled."""
        connection = self._connection
        extra = of_peer(connection.client_host)
        _LOG.exception("A login of %s failed because of an unexpected error", connection.peer, extra=extra)
        self._counts.logins.add(connection.machine.asked_mechanism, RefusalReason.UNAVAILABLE)
        if self.audit is not None:
            self.audit.broken_off()
        reason = "an error of the server"
        self._break_off(reason, connection.about("login", failed=True, reason=reason))

    def _conclude(self, outcome: LoginOutcome) -> None:
        if self.audit is not None:
            self.audit.concluded(outcome)
        machine = self._connection.machine
        match outcome:
            case Challenge():
                machine.challenge(outcome.message)
                self._services.preparations.begin(self._login)
            case LoggedIn():
                # First, so that a revocation finds the session, also while the login waits for its event.
                self._join_session(outcome.identity.token_id)
                settled = partial(self._settle, outcome, self._services.steady_ms())
                if self.audit is None or not self.audit.when_durable(partial(settled, self.audit)):
                    self._succeed(outcome)
            case LoginRefused():
                self._counts.logins.add(outcome.mechanism, outcome.reason)
                who = f"{outcome.name[:LONGEST_NAME]!r} by {outcome.mechanism}: " if outcome.name else ""
                if outcome.reason is RefusalReason.UNAVAILABLE:
                    self._break_off(f"{who}{outcome.detail}", self._about(outcome))
                else:
                    self._fail(outcome.message, f"{who}{outcome.detail}", self._about(outcome))

    def _succeed(self, outcome: LoggedIn) -> None:
        self._counts.frequent.logins[outcome.identity.mechanism] += 1
        machine = self._connection.machine
        machine.succeed(outcome.message, outcome.session_lifetime_ms, self._services.steady_ms())
        if self._ends_ms is not None:
            self._cut_session(self._ends_ms)
        self._services.deadlines.forget(self._connection.reauthentication_overdue)
        if _LOG.isEnabledFor(logging.DEBUG):
            self._tell(outcome.identity)

    def _settle(
        self, outcome: LoggedIn, decided_ms: int, audit: ConnectionAudit, error: AuditUnavailable | None
    ) -> None:
        """Let a login succeed whose event is durable, and the connection go on; `decided_ms` is a steady time."""
        if self._connection.closing:
            return
        if error is None:
            lifetime_ms = outcome.session_lifetime_ms
            if lifetime_ms is not None:
                waited_ms = self._services.steady_ms() - decided_ms
                outcome = replace(outcome, session_lifetime_ms=max(0, lifetime_ms - waited_ms))
            self._succeed(outcome)
        else:
            self._counts.logins.add(outcome.identity.mechanism, RefusalReason.UNAVAILABLE)
            audit.broken_off()
            reason = str(error)
            self._break_off(reason, self._connection.about("login", failed=True, reason=reason))
        self._connection.serve()

    def _cut_session(self, when_ms: int) -> None:
        """End the session at an instant of the wall clock, as far away as it is now."""
        services = self._services
        self._connection.machine.session.cut(services.steady_ms() + when_ms - services.now_ms())

    async def _serve_when_durable(self, audit: ConnectionAudit) -> None:
        """Let a connection begin that needs no login but a certificate."""
        try:
            await audit.durable()
        except AuditUnavailable as error:
            audit.broken_off()
            self._connection.end(ConnectionClosed(str(error)), logging.WARNING)

    def _tell(self, identity: Identity) -> None:
        who, mechanism = identity.principal, identity.mechanism
        about = self._connection.about("login", failed=False, user=who.name, mechanism=mechanism)
        _LOG.debug("Login of %r by %s from %s", str(who), mechanism, self._connection.peer, extra=about)

    def _about(self, refused: LoginRefused) -> Mapping[str, Any]:
        return self._connection.about(
            "login",
            failed=True,
            reason=refused.detail,
            code=refused.reason,
            user=refused.name[:LONGEST_NAME],
            mechanism=refused.mechanism,
        )

    def _fail(self, message: str, detail: str, about: Mapping[str, Any]) -> None:
        event = self._connection.machine.fail(message)
        delay_s = self._services.failed_logins.delay_s(self._connection.client_host, self._took_s())
        # A warning: the client is told no reason, so this line is where its user finds one, in `kafka-dt run` as well.
        closed = replace(event, reason=f"failed authentication, {detail}")
        self._connection.end(closed, logging.WARNING, delay_s, about)

    def _break_off(self, detail: str, about: Mapping[str, Any]) -> None:
        """Close without an answer."""
        event = self._connection.machine.break_off(f"a login that cannot be decided now, {detail}")
        self._connection.end(event, logging.WARNING, self._services.failed_logins.undecided_s(self._took_s()), about)

    def _took_s(self) -> float:
        """Say for how many seconds the last message of the login has been looked at."""
        return self._loop.time() - self._asked

    def _join_session(self, token_id: str | None) -> None:
        self._leave_session()
        self._ends_ms = None
        if token_id is not None:
            self._services.sessions.add(token_id, self._connection)
            self._token_id = token_id

    def _leave_session(self) -> None:
        if self._token_id is not None:
            self._services.sessions.remove(self._token_id, self._connection)
            self._token_id = None


def _certificate(transport: asyncio.BaseTransport) -> bytes | None:
    encryption: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    return None if encryption is None else encryption.getpeercert(binary_form=True)
