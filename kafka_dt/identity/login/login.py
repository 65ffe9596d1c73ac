"""One connection's logins: passes the client's messages to an exchange and decides the principal, once, at the end.

`begin` starts the exchange of the mechanism that the client chose, `evaluate` takes each of its messages, `prepare` has
work done while the client computes its proof. `evaluate` gives the outcome, or a coroutine that gives it where the
store, a thread or an issuer must be asked.

A login by token that cannot be decided, because the store of tokens cannot be asked, is refused as UNAVAILABLE. So is
every wrong proof with a name that may be a token's, whether there is such a token or not: else the answer would tell
which ids there are. A token that ends during the exchange does not complete it. At a re-authentication the principal
must stay the same (KIP-368).

Source: KIP-48, KIP-368; org.apache.kafka.common.security.authenticator.SaslServerAuthenticator (ReauthInfo),
org.apache.kafka.common.security.scram.internals.ScramSaslServer,
org.apache.kafka.common.security.plain.internals.PlainSaslServer.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kafka_dt.audit import RefusalReason
from kafka_dt.identity.credentials.newest_first import TooMuchWaits
from kafka_dt.identity.login.exchange import Exchange, TokenExchange
from kafka_dt.identity.mechanisms.mechanism import Accounts, OpenMechanism, Relay, RelayFailed
from kafka_dt.tokens import Principal, StoreUnavailable, Token
from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl import Challenge, CredentialRequest, Failure, Fault, StepResult, Success, VerdictRequest

_REASONS: Final[Mapping[Fault, RefusalReason]] = {
    Fault.PROOF: RefusalReason.WRONG_CREDENTIALS,
    Fault.GRAMMAR: RefusalReason.BROKEN_EXCHANGE,
    Fault.IDENTITY: RefusalReason.NOT_ALLOWED,
}
_GENERIC: Final = "Authentication failed during {} due to invalid credentials with SASL mechanism {}"


@dataclass(slots=True, unsafe_hash=True)
class Identity:
    """Who a connection belongs to."""

    principal: Final[Principal]
    mechanism: Final[str]
    token_id: Final[str | None] = None
    """The token that was logged in with; None without one."""


@dataclass(slots=True, unsafe_hash=True)
class LoggedIn:
    """The login is complete."""

    message: Final[bytes | None]
    """The mechanism's last message to the client; None if it has none."""
    identity: Final[Identity]
    session_lifetime_ms: Final[int | None]
    """None if the session has no end."""
    token: Final[Token | None] = None
    """The token that was logged in with, as it is now."""


@dataclass(frozen=True, slots=True)
class LoginRefused:
    """The login has failed."""

    message: str
    """What the client is told, unless the reason is UNAVAILABLE; nothing that a guesser could use."""
    detail: str
    """What the log is told; no secret either."""
    name: str
    """The user name or token id that the client sent, for the log; empty if it has sent none."""
    mechanism: str
    reason: RefusalReason = RefusalReason.WRONG_CREDENTIALS
    by_token: bool = False
    """Whether the name is meant to be a token id."""
    token: Token | None = None
    """The token of that id, if it is known here."""


LoginOutcome = Challenge | LoggedIn | LoginRefused


class Login:
    """The logins of one connection."""

    identity: Identity | None = None
    """The connection's owner, as the last successful login established it."""
    foregone: LoginRefused | None = None
    """How the exchange under way can only end, though the client has still a message to send: many never send it."""

    def __init__(self, mechanisms: Mapping[str, OpenMechanism], accounts: Accounts, now_ms: Callable[[], int]) -> None:
        self._mechanisms = mechanisms
        self._accounts = accounts
        self._tokens = accounts.tokens
        self._now_ms = now_ms
        self._mechanism = ""
        self._exchange: Exchange | None = None

    def relay_by(self, relay: Relay) -> None:
        """Let the cluster behind a gateway decide about the logins that a mechanism relays."""
        self._accounts = replace(self._accounts, relay=relay)

    def begin(self, mechanism: str) -> None:
        """Start an exchange by a mechanism that the listener offers."""
        self.abandon()
        self.foregone = None
        self._mechanism = mechanism
        self._exchange = self._mechanisms[mechanism].begin(self._accounts)

    def evaluate(self, message: bytes) -> LoginOutcome | Coroutine[Any, Any, LoginOutcome]:
        """Take the client's next message; gives the outcome, or a coroutine that gives it where it has to wait."""
        exchange = self._exchange
        if exchange is None:
            raise LocalProtocolError("no exchange is under way")
        self.foregone = None
        outcome = exchange.evaluate(message)
        if isinstance(outcome, StepResult):
            return self._conclude_when_sure(exchange, outcome)
        return self._conclude_awaited(exchange, outcome)

    def prepare(self) -> None:
        """Look for what the next message will be checked against; to be called when the challenge is on its way.

        The challenge itself must not wait for it, nor take longer where there is something to be found.
        """
        if self._exchange is not None:
            self._exchange.prepare()

    def abandon(self) -> None:
        """End what `prepare` has begun: the client has gone, or begins anew."""
        if self._exchange is not None:
            self._exchange.abandon()

    async def _conclude_awaited(self, exchange: Exchange, waiting: Coroutine[Any, Any, StepResult]) -> LoginOutcome:
        try:
            outcome = await waiting
        except (StoreUnavailable, TooMuchWaits, RelayFailed) as error:
            return self._refused(exchange, str(error), reason=RefusalReason.UNAVAILABLE)
        concluded = self._conclude_when_sure(exchange, outcome)
        return concluded if isinstance(concluded, LoginOutcome) else await concluded

    def _conclude_when_sure(
        self, exchange: Exchange, outcome: StepResult
    ) -> LoginOutcome | Coroutine[Any, Any, LoginOutcome]:
        if isinstance(outcome, Success):
            token = exchange.account.token if exchange.account is not None else None
            if token is not None and not self._tokens.revocations_heard(token.token.token_id):
                return self._conclude_later(exchange, outcome, token.token.token_id)
        return self._conclude(exchange, outcome)

    async def _conclude_later(self, exchange: Exchange, success: Success, token_id: str) -> LoginOutcome:
        if not await self._tokens.hear_revocations(token_id):
            detail = "the token may have been revoked, and the store cannot be asked"
            return self._refused(exchange, detail, reason=RefusalReason.UNAVAILABLE)
        return self._conclude(exchange, success)

    def _conclude(self, exchange: Exchange, outcome: StepResult) -> LoginOutcome:
        match outcome:
            case Challenge():
                if exchange.foregone is not None:
                    self.foregone = self._refused(exchange, exchange.foregone)
                return outcome
            case Success():
                return self._complete(exchange, outcome)
            case Failure():
                detail = self._why(exchange, outcome)
                return self._refused(exchange, detail, outcome.message, _REASONS[outcome.fault])
            case CredentialRequest() | VerdictRequest():
                raise LocalProtocolError("an exchange passed on what its machine asked for")

    def _complete(self, exchange: Exchange, success: Success) -> LoginOutcome:
        account = exchange.account
        if account is None:
            raise LocalProtocolError("an exchange has succeeded without an account")
        exchange.name = success.identity
        if account.principal is None:
            return self._refused(exchange, "a decoy was matched")
        mechanism = self._mechanism
        if account.token is None:
            identity = Identity(account.principal, mechanism)
            return self._establish(exchange, success.message, identity, account.ends_timestamp_ms)
        token = self._tokens.still_alive(account.token, success.proved)
        if token is None:
            detail = "the token ended during the login, or its secret key left the ring"
            return self._refused(exchange, detail, reason=self._tokens.why_not(exchange.name))
        identity = Identity(account.principal, mechanism, token.token_id)
        return self._establish(exchange, success.message, identity, token.end_timestamp_ms, token)

    def _establish(
        self,
        exchange: Exchange,
        message: bytes | None,
        identity: Identity,
        ends_timestamp_ms: int | None,
        token: Token | None = None,
    ) -> LoginOutcome:
        before = self.identity
        if before is not None and before.principal != identity.principal:
            changed = f"{_dotted(before.principal)}: {_dotted(identity.principal)}"
            text = f"Cannot change principals during re-authentication from {changed}"
            detail = "the principal is another one than before"
            return self._refused(exchange, detail, text, RefusalReason.NOT_ALLOWED)
        lifetime = session_lifetime_ms(
            ends_timestamp_ms, self._mechanisms[identity.mechanism].max_reauth_ms, self._now_ms()
        )
        self.identity = identity
        # A connection may live long: it keeps nothing of an exchange that has succeeded.
        exchange.abandon()
        self._exchange = None
        return LoggedIn(message, identity, lifetime, token)

    def _why(self, exchange: Exchange, failure: Failure) -> str:
        """Say why, for the log: a decoy fails like a wrong password, which would send an operator the wrong way."""
        # The same steps for a known name and an unknown one: they take the same time.
        no_token = ", and no live token with that id" if isinstance(exchange, TokenExchange) else ""
        return f"there is no such user{no_token}" if exchange.is_unknown() else failure.detail

    def _refused(
        self,
        exchange: Exchange,
        detail: str,
        message: str | None = None,
        reason: RefusalReason = RefusalReason.WRONG_CREDENTIALS,
    ) -> LoginRefused:
        name = exchange.name
        by_token = exchange.is_by_token()
        if reason is RefusalReason.WRONG_CREDENTIALS:
            if exchange.is_undecided():
                reason = RefusalReason.UNAVAILABLE
                detail = f"{detail}, as far as is known while the store cannot be asked"
            elif exchange.is_unknown():
                reason = self._tokens.why_not(name) if by_token else RefusalReason.UNKNOWN_USER
                if reason is RefusalReason.EXPIRED_TOKEN:
                    detail = "the token has expired"
        token = self._tokens.known(name) if by_token else None
        mechanism = self._mechanism
        if message is None:
            message = _GENERIC.format("re-authentication" if self.identity else "authentication", mechanism)
        return LoginRefused(message, detail, name, mechanism, reason, by_token, token)


def session_lifetime_ms(ends_timestamp_ms: int | None, max_reauth_ms: int, now_ms: int) -> int | None:
    """Say how many milliseconds a session lasts, 0 or more; None if nothing ends it."""
    lifetimes = []
    if ends_timestamp_ms is not None:
        lifetimes.append(max(0, ends_timestamp_ms - now_ms))
    if max_reauth_ms > 0:
        lifetimes.append(max_reauth_ms)
    return min(lifetimes, default=None)


def _dotted(principal: Principal) -> str:
    return f"{principal.type}.{principal.name}"
