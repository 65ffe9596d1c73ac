"""What audit events say of one connection: its client, and how its logins ended.

A login that just stops, because the client goes away, is no event, unless it was clear by then that it is refused.
Java's clients say what they are only after the login (SaslClientAuthenticator asks for version 0 of ApiVersions), and
a client that logs in by certificate has sent nothing by then. So the event of a login waits until the client has named
its software: at most `SOFTWARE_SECONDS`, and not beyond a request that is an event. In strict mode it does not wait:
the client hears of its login only when the event is durable.

Source: docs/audit.md.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kafka_dt.audit import EventType, Outcome, RefusalReason
from kafka_dt.audit.durability import Place, Settled
from kafka_dt.audit.recorder import Facts, Origin, Recorder
from kafka_dt.identity.login.login import LoggedIn, LoginOutcome, LoginRefused
from kafka_dt.metrics.counts import CERTIFICATE
from kafka_dt.server.addresses import as_ipv4
from kafka_dt.tokens import Principal
from kafka_dt_protocol import LoginFault, ServerConnection

SOFTWARE_SECONDS: Final = 1.0
"""How long a login waits for the client to say what it is."""
LONGEST_MECHANISM: Final = 40
"""How much is written down of what a client takes for a mechanism, in characters; SASL's have 20 at most."""

FAULTS: Final = {
    LoginFault.NOT_OFFERED: RefusalReason.UNSUPPORTED_MECHANISM,
    LoginFault.MECHANISM_CHANGED: RefusalReason.NOT_ALLOWED,
    LoginFault.OUT_OF_TURN: RefusalReason.BROKEN_EXCHANGE,
}
"""Why a login was refused that its mechanism could not end."""


class ConnectionAudit:
    """The audit of one connection."""

    __slots__ = (
        *("_address", "_connection", "_listener", "_machine", "_mechanism", "_place", "_port", "_recorder"),
        *("_timer", "_token_id", "_waiting"),
    )

    def __init__(self, recorder: Recorder, listener: str, machine: ServerConnection, peer: Any) -> None:
        self._recorder = recorder
        self._listener = listener
        self._machine = machine
        self._address, self._port = peer_address(peer)
        self._connection = recorder.connection()
        self._mechanism: str | None = None
        self._token_id: str | None = None
        self._waiting: tuple[int, Principal, Facts] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._place: Place = ()

    @property
    def strict(self) -> bool:
        """Whether the client may hear of its login only when `durable` has returned."""
        return self._recorder.strict

    def when_durable(self, settled: Settled) -> bool:
        """Call `settled` later, when it is known whether the event of the last login is durable.

        Returns:
            Whether `settled` will be called: False if the client need not wait.
        """
        return self._recorder.when_durable(self._place, settled)

    async def durable(self) -> None:
        """Wait until the event of the last login is durable.

        Raises:
            AuditUnavailable: it cannot be written now.
        """
        await self._recorder.durable(self._place)

    def certified(self, principal: Principal) -> None:
        """Write down that the client logged in by certificate."""
        self._mechanism = CERTIFICATE
        self._wait_for_software(principal, Facts())

    def certificate_refused(self) -> None:
        """Write down that no principal can be made of a certificate."""
        self._refuse(CERTIFICATE, RefusalReason.NOT_ALLOWED)

    def concluded(self, outcome: LoginOutcome) -> None:
        """Write down how a login has ended, if it has."""
        self._settle()
        match outcome:
            case LoggedIn():
                self._logged_in(outcome)
            case LoginRefused():
                self._refused(outcome)

    def broken_off(self) -> None:
        """Write down that a login failed because of an unexpected error."""
        self._refuse(self._machine.asked_mechanism, RefusalReason.UNAVAILABLE)

    def heard(self) -> None:
        """Write down the login that waits, if the client has said what it is."""
        if self._waiting is not None and self._machine.client_software is not None:
            self._settle()

    def lost(self, foregone: LoginRefused | None) -> None:
        """Write down the login that waits, and `foregone`: how the login under way would have ended."""
        self._settle()
        if foregone is not None and self._machine.login_fault is None:
            self._refused(foregone)

    def closing(self) -> None:
        """Write down a login that ends with the connection, before its mechanism could end it."""
        fault = self._machine.login_fault
        if fault is not None:
            self._refuse(self._machine.asked_mechanism, FAULTS[fault])

    def origin(self, principal: Principal) -> Origin:
        """Say where a request of a principal comes from."""
        self._settle()
        return self._session(principal)

    def _session(self, principal: Principal) -> Origin:
        return self._origin(
            self._mechanism, str(principal), by_token=self._token_id is not None, session_token_id=self._token_id
        )

    def _logged_in(self, outcome: LoggedIn) -> None:
        self._mechanism, self._token_id = outcome.identity.mechanism, outcome.identity.token_id
        token = outcome.token
        facts = Facts()
        if token is not None:
            facts = Facts(token_id=token.token_id, owner=str(token.owner), requester=str(token.requester))
        self._wait_for_software(outcome.identity.principal, facts)

    def _wait_for_software(self, principal: Principal, facts: Facts) -> None:
        self._waiting = (self._recorder.now_ms(), principal, facts)
        if self._machine.client_software is not None or self.strict:
            self._settle()
        else:
            self._timer = asyncio.get_running_loop().call_later(SOFTWARE_SECONDS, self._settle)

    def _settle(self) -> None:
        """Write down the login that waits, if one does."""
        if self._waiting is None:
            return
        (time_ms, principal, facts), self._waiting = self._waiting, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        origin = self._session(principal)
        self._place = self._recorder.record(EventType.LOGIN, Outcome.OK, origin, time_ms=time_ms, **facts)

    def _refused(self, refused: LoginRefused) -> None:
        name, token = refused.name, refused.token
        claimed = str(Principal.user(name)) if name and not refused.by_token else None
        owner = None if token is None else str(token.owner)
        self._recorder.record(
            EventType.LOGIN,
            Outcome.REFUSED,
            self._origin(refused.mechanism, claimed or owner),
            reason=refused.reason,
            token_id=name if refused.by_token else None,
            owner=owner,
            requester=None if token is None else str(token.requester),
        )

    def _refuse(self, mechanism: str | None, reason: RefusalReason) -> None:
        asked = None if mechanism is None else mechanism[:LONGEST_MECHANISM]
        self._recorder.record(EventType.LOGIN, Outcome.REFUSED, self._origin(asked, None), reason=reason)

    def _origin(
        self,
        mechanism: str | None,
        principal: str | None,
        *,
        by_token: bool | None = None,
        session_token_id: str | None = None,
    ) -> Origin:
        software = self._machine.client_software or (None, None)
        return Origin(
            listener=self._listener,
            mechanism=mechanism,
            principal=principal,
            by_token=by_token,
            session_token_id=session_token_id,
            client_id=self._machine.client_id,
            client_software=software[0],
            client_software_version=software[1],
            client_address=self._address,
            client_port=self._port,
            connection=self._connection,
        )


def certificate_not_accepted(recorder: Recorder, listener: str, peer: Any) -> None:
    """Write down that TLS did not take a client's certificate, or missed one, so that there is no connection."""
    address, port = peer_address(peer)
    origin = Origin(
        listener=listener,
        mechanism=CERTIFICATE,
        client_address=address,
        client_port=port,
        connection=recorder.connection(),
    )
    recorder.record(EventType.LOGIN, Outcome.REFUSED, origin, reason=RefusalReason.WRONG_CREDENTIALS)


def peer_address(peer: Any) -> tuple[str | None, int | None]:
    """Give host and port of a peer name, where there is one."""
    return (as_ipv4(str(peer[0])), int(peer[1])) if isinstance(peer, tuple) and len(peer) > 1 else (None, None)
