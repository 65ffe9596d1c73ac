"""One connection's logins: drives the SASL machine that the client chose and decides the principal, once, at the end.

`begin` starts an exchange, `evaluate` takes each message of it and gives either the outcome or, where the store must be
asked, a credential derived, an issuer's keys fetched or Kerberos run, a coroutine that gives it. `prepare`, called when
a challenge is on its way, has such work done while the client computes; `abandon` ends it.

A login by token that cannot be decided, because the store of tokens cannot be asked, is refused as UNAVAILABLE. That is
so for every wrong proof of what may be a token, whether there is one or not: else the answer would tell which ids there
are.

At a re-authentication the principal must stay the same (KIP-368). A token that ended during the exchange does not
complete it. The session of a token, a bearer's or one of ours, ends with the token, and no session outlives
`connections.max.reauth.ms`.

Source: KIP-48, KIP-368; Kafka's SaslServerAuthenticator (ReauthInfo), ScramSaslServer, PlainSaslServer.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafka_dt.audit import RefusalReason
from kafka_dt.config import Listener, Mechanism
from kafka_dt.identity.credentials.digest_md5 import DigestSubject
from kafka_dt.identity.credentials.newest_first import TooMuchWaits
from kafka_dt.identity.credentials.scram import Claim, Subject, Subjects
from kafka_dt.identity.kerberos.contexts import Kerberos
from kafka_dt.identity.kerberos.names import NoShortName
from kafka_dt.identity.login.token_search import TokenSearch
from kafka_dt.identity.oauth.bearer import BearerTokens, Judgement
from kafka_dt.tokens import Principal, StoreUnavailable, Token, has_token_id_form
from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl import (
    TOKENAUTH,
    BearerRejected,
    Challenge,
    CredentialRequest,
    DigestServer,
    Failure,
    Fault,
    OAuthBearerServer,
    Outcome,
    PlainServer,
    ScramMechanism,
    ScramServer,
    ServerMechanism,
    Success,
    VerdictRequest,
)

_SCRAM: Final[Mapping[Mechanism, ScramMechanism]] = {
    Mechanism.SCRAM_SHA_256: ScramMechanism.SHA_256,
    Mechanism.SCRAM_SHA_512: ScramMechanism.SHA_512,
}
_REASONS: Final[Mapping[Fault, RefusalReason]] = {
    Fault.PROOF: RefusalReason.WRONG_CREDENTIALS,
    Fault.GRAMMAR: RefusalReason.BROKEN_EXCHANGE,
    Fault.IDENTITY: RefusalReason.NOT_ALLOWED,
}
_GENERIC: Final = "Authentication failed during {} due to invalid credentials with SASL mechanism {}"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a connection belongs to."""

    principal: Principal
    mechanism: Mechanism
    token_id: str | None = None
    """The token that was logged in with; None without one."""


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """The login is complete."""

    message: bytes | None
    """The mechanism's last message to the client; None if it has none."""
    identity: Identity
    session_lifetime_ms: int | None
    """None if the session has no end."""
    token: Token | None = None
    """The token that was logged in with, as it is now."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The login has failed."""

    message: str
    """What the client is told, unless the reason is UNAVAILABLE; nothing that a guesser could use."""
    detail: str
    """What the log is told; no secret either."""
    name: str
    """Who the client says it is, a user name or a token id, for the log; empty if it has not said it."""
    mechanism: Mechanism
    reason: RefusalReason = RefusalReason.WRONG_CREDENTIALS
    by_token: bool = False
    """Whether the name is meant to be a token id."""
    token: Token | None = None
    """The token of that id, if it is known here."""


LoginOutcome = Challenge | LoggedIn | Refused


class Login:
    """The logins of one connection.

    Args:
        listener: the listener that the connection came in by.
        subjects: finds what a login is checked against.
        now_ms: the clock, milliseconds since the epoch.
        nonce: makes the server's nonce of SCRAM and DIGEST-MD5, printable ASCII without commas.
        bearer: judges the tokens of OAUTHBEARER; None where the listener does not offer it.
        kerberos: runs GSSAPI; None where the listener does not offer it.
    """

    identity: Identity | None = None
    """Whom the last successful login made the connection's owner."""
    foregone: Refused | None = None
    """What the exchange under way can only come to, though the client has still to say a word: many never say it."""

    def __init__(
        self,
        listener: Listener,
        subjects: Subjects,
        now_ms: Callable[[], int],
        nonce: Callable[[], str],
        *,
        bearer: BearerTokens | None = None,
        kerberos: Kerberos | None = None,
    ) -> None:
        self._listener = listener
        self._subjects = subjects
        self._now_ms = now_ms
        self._nonce = nonce
        self._bearer = bearer
        self._kerberos = kerberos
        self._mechanism = Mechanism.PLAIN
        self._machine: ServerMechanism[Any] | None = None
        self._subject: Subject | DigestSubject | None = None
        self._claim = Claim.USER
        self._name = ""
        self._bearer_expiry_ms: int | None = None
        self._search: TokenSearch | None = None
        self._may_be_token = False
        self._store_was_there = True

    def begin(self, mechanism: str) -> None:
        """Start an exchange by a mechanism that the listener offers."""
        self._mechanism = Mechanism(mechanism)
        self.abandon()
        self.foregone = None
        self._subject = None
        self._claim = Claim.USER
        self._name = ""
        self._bearer_expiry_ms = None
        self._may_be_token = False
        match self._mechanism:
            case Mechanism.PLAIN:
                self._machine = PlainServer()
            case Mechanism.OAUTHBEARER:
                self._machine = OAuthBearerServer()
            case Mechanism.GSSAPI:
                self._machine = self._running_kerberos().new_machine()
            case Mechanism.SCRAM_SHA_256 | Mechanism.SCRAM_SHA_512:
                self._machine = ScramServer(_SCRAM[self._mechanism], self._nonce())
            case Mechanism.DIGEST_MD5:
                self._machine = DigestServer(self._nonce())

    def evaluate(self, message: bytes) -> LoginOutcome | Coroutine[Any, Any, LoginOutcome]:
        """Take the client's next message.

        Returns:
            The outcome, or a coroutine that gives it when it cannot be known without waiting.
        """
        if self._mechanism is Mechanism.GSSAPI:
            return self._run_kerberos(message)
        self.foregone = None
        outcome = self._running().step(message)
        match outcome:
            case CredentialRequest():
                return self._find(outcome)
            case VerdictRequest():
                return self._judge(outcome.bearer_token)
            case _:
                return self._conclude_when_sure(outcome)

    def prepare(self) -> None:
        """Look for what the next message will be checked against; to be called when the challenge is on its way.

        The challenge itself must not wait for it, nor take longer where there is something to be found.
        """
        if self._search is not None:
            self._search.begin()

    def abandon(self) -> None:
        """End what `prepare` has begun: the client has gone, or begins anew."""
        if self._search is not None:
            self._search.abandon()
            self._search = None

    async def _run_kerberos(self, message: bytes) -> LoginOutcome:
        return self._conclude(await self._running_kerberos().run(self._running().step, message))

    def _find(self, request: CredentialRequest) -> LoginOutcome | Coroutine[Any, Any, LoginOutcome]:
        self._name = request.name
        if self._mechanism is Mechanism.PLAIN:
            return self._check_password(request.name)
        if self._search is None:
            self._claim = _claim(request)
            self._store_was_there = self._subjects.tokens.can_ask()
            if self._mechanism is not Mechanism.DIGEST_MD5:
                return self._challenge(_SCRAM[self._mechanism], request.name)
            self._may_be_token = has_token_id_form(request.name)
        subject = self._found()
        return self._look_up() if subject is None else self._conclude_when_sure(self._check_proof(subject))

    def _challenge(self, mechanism: ScramMechanism, name: str) -> LoginOutcome:
        """Answer the first message of SCRAM; where a token may be meant, it is found for the second."""
        beginning = self._subjects.scram.begin(mechanism, name, self._claim)
        self._subject = beginning.subject
        self._may_be_token = beginning.may_be_token
        if beginning.subject is None:
            self._search = TokenSearch(self._subjects.scram, mechanism, name)
        return self._conclude(self._running().resume(beginning.challenged))

    def _found(self) -> Subject | DigestSubject | None:
        return self._subjects.digest.find(self._name) if self._search is None else self._search.found()

    def _conclude_when_sure(self, outcome: Outcome) -> LoginOutcome | Coroutine[Any, Any, LoginOutcome]:
        token = self._subject.token if self._subject is not None else None
        if (
            isinstance(outcome, Success)
            and token is not None
            and not self._subjects.tokens.revocations_heard(token.token.token_id)
        ):
            return self._conclude_later(outcome)
        return self._conclude(outcome)

    async def _conclude_later(self, success: Success) -> LoginOutcome:
        if not await self._subjects.tokens.hear_revocations():
            detail = "the token may have been revoked, and the store cannot be asked"
            return self._refused(detail, reason=RefusalReason.UNAVAILABLE)
        return self._conclude(success)

    def _judge(self, bearer_token: str) -> LoginOutcome | Coroutine[Any, Any, LoginOutcome]:
        if self._bearer is None:
            raise LocalProtocolError("there is nobody to judge bearer tokens")
        judgement = self._bearer.judge(bearer_token)
        if isinstance(judgement, Judgement):
            return self._take_verdict(judgement)
        return self._await_verdict(judgement)

    async def _await_verdict(self, judgement: Coroutine[Any, Any, Judgement]) -> LoginOutcome:
        return self._take_verdict(await judgement)

    def _take_verdict(self, judgement: Judgement) -> LoginOutcome:
        self._bearer_expiry_ms = judgement.expiry_timestamp_ms
        if isinstance(judgement.verdict, BearerRejected):
            self.foregone = self._refused(judgement.verdict.detail)
        return self._conclude(self._running().resume(judgement.verdict))

    async def _look_up(self) -> LoginOutcome:
        subject: Subject | DigestSubject
        try:
            if self._search is None:
                subject = await self._subjects.digest.lookup(self._name)
            else:
                subject = await self._search.finish()
        except (StoreUnavailable, TooMuchWaits) as error:
            return self._refused(str(error), reason=RefusalReason.UNAVAILABLE)
        outcome = self._conclude_when_sure(self._check_proof(subject))
        return outcome if isinstance(outcome, LoginOutcome) else await outcome

    def _check_password(self, name: str) -> LoginOutcome:
        return self._conclude(self._running().resume(self._listener.plain_users.get(name)))

    def _check_proof(self, subject: Subject | DigestSubject) -> Outcome:
        """Go on with what was found: SCRAM has the client prove it now, DIGEST-MD5 has the proof already."""
        self._subject = subject
        return self._running().resume(subject.credential)

    def _conclude(self, outcome: Outcome) -> LoginOutcome:
        match outcome:
            case Challenge():
                return outcome
            case Success():
                return self._complete(outcome)
            case Failure():
                return self._refused(self._why(outcome), outcome.message, _REASONS[outcome.fault])
            case CredentialRequest() | VerdictRequest():
                raise LocalProtocolError("a mechanism asked twice what a login is checked against")

    def _complete(self, success: Success) -> LoginOutcome:
        self._name = self._name or success.identity
        if self._subject is None:
            try:
                identity = Identity(self._principal(success.identity), self._mechanism)
            except NoShortName as error:
                return self._refused(str(error), reason=RefusalReason.NOT_ALLOWED)
            return self._establish(success.message, identity, self._bearer_expiry_ms)
        if self._subject.principal is None:
            return self._refused("a decoy was matched")
        if self._subject.token is None:
            return self._establish(success.message, Identity(self._subject.principal, self._mechanism), None)
        token = self._subjects.tokens.still_alive(self._subject.token, success.proved)
        if token is None:
            detail = "the token ended during the login, or its secret key left the ring"
            return self._refused(detail, reason=self._subjects.tokens.why_not(self._name))
        identity = Identity(self._subject.principal, self._mechanism, token.token_id)
        return self._establish(success.message, identity, token.end_timestamp_ms, token)

    def _establish(
        self, message: bytes | None, identity: Identity, ends_timestamp_ms: int | None, token: Token | None = None
    ) -> LoginOutcome:
        before = self.identity
        if before is not None and before.principal != identity.principal:
            changed = f"{_dotted(before.principal)}: {_dotted(identity.principal)}"
            text = f"Cannot change principals during re-authentication from {changed}"
            return self._refused("the principal is another one than before", text, RefusalReason.NOT_ALLOWED)
        lifetime = session_lifetime_ms(ends_timestamp_ms, self._max_reauth_ms(), self._now_ms())
        self.identity = identity
        self._forget_exchange()
        return LoggedIn(message, identity, lifetime, token)

    def _forget_exchange(self) -> None:
        """Keep nothing of an exchange that has succeeded: a connection may live long."""
        self.abandon()
        self._machine = None
        self._subject = None

    def _why(self, failure: Failure) -> str:
        """Say why, for the log: a decoy fails like a wrong password, which would send an operator the wrong way."""
        if self._subject is not None and self._subject.principal is None:
            return "there is no such user, and no live token with that id"
        return failure.detail

    def _refused(
        self, detail: str, message: str | None = None, reason: RefusalReason = RefusalReason.WRONG_CREDENTIALS
    ) -> Refused:
        by_token = self._claims_token()
        if reason is RefusalReason.WRONG_CREDENTIALS:
            if self._is_undecided():
                reason, detail = (
                    RefusalReason.UNAVAILABLE,
                    f"{detail}, as far as is known while the store cannot be asked",
                )
            elif self._is_nobody():
                reason = self._subjects.tokens.why_not(self._name) if by_token else RefusalReason.UNKNOWN_USER
        token = self._subjects.tokens.known(self._name) if by_token else None
        return Refused(message or self._generic(), detail, self._name, self._mechanism, reason, by_token, token)

    def _claims_token(self) -> bool:
        """Say whether the name is meant to be a token id: the client says so, or it looks like one and is no user's."""
        if self._claim is Claim.UNSAID:
            if self._subject is not None and self._subject.token is not None:
                return True
            return (self._subject is None or self._is_nobody()) and has_token_id_form(self._name)
        return self._claim is Claim.TOKEN

    def _is_undecided(self) -> bool:
        """Say whether a wrong proof may be due to a token that the store has and this node does not know."""
        return self._may_be_token and not (self._store_was_there and self._subjects.tokens.can_ask())

    def _is_nobody(self) -> bool:
        """Say whether there is nobody of that name who could log in."""
        if self._mechanism is Mechanism.PLAIN:
            return bool(self._name) and self._name not in self._listener.plain_users
        return self._subject is not None and self._subject.principal is None

    def _principal(self, name: str) -> Principal:
        if self._mechanism is Mechanism.GSSAPI:
            return self._running_kerberos().principal(name)
        return Principal.user(name)

    def _max_reauth_ms(self) -> int:
        configured: Mapping[Mechanism, int] = self._listener.max_reauth_ms
        return configured.get(self._mechanism, 0)

    def _generic(self) -> str:
        return _GENERIC.format("re-authentication" if self.identity else "authentication", self._mechanism)

    def _running(self) -> ServerMechanism[Any]:
        if self._machine is None:
            raise LocalProtocolError("no exchange is under way")
        return self._machine

    def _running_kerberos(self) -> Kerberos:
        if self._kerberos is None:
            raise LocalProtocolError("there is no Kerberos on this listener")
        return self._kerberos


def session_lifetime_ms(ends_timestamp_ms: int | None, max_reauth_ms: int, now_ms: int) -> int | None:
    """Say how long a session lasts.

    Args:
        ends_timestamp_ms: when the token that was logged in with ends, if there is one.
        max_reauth_ms: `connections.max.reauth.ms`; 0 is no limit.
        now_ms: milliseconds since the epoch.

    Returns:
        Milliseconds, 0 or more; None if nothing ends the session.
    """
    lifetimes = []
    if ends_timestamp_ms is not None:
        lifetimes.append(max(0, ends_timestamp_ms - now_ms))
    if max_reauth_ms > 0:
        lifetimes.append(max_reauth_ms)
    return min(lifetimes, default=None)


def _claim(request: CredentialRequest) -> Claim:
    if request.token:
        return Claim.TOKEN
    return Claim.USER if TOKENAUTH in request.extensions else Claim.UNSAID


def _dotted(principal: Principal) -> str:
    return f"{principal.type}.{principal.name}"
