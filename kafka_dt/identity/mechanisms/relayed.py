"""Logins that the cluster behind a gateway decides: the node passes on what both sides say, unchanged.

The node reads the client's first message for the name alone, which is the client's principal when the cluster has
accepted the login. The node keeps no password, no key and no user. Logins by one of the node's tokens are the
exception: a broker may not know the token, and it refuses the proof of a client that cannot send `tokenauth`. So the
node checks them itself.

A first message that does not follow its RFC to the letter is refused here, so that the node and the cluster cannot read
two different names in it. The principal is `User:` and the name, as at brokers without a principal builder.

Source: RFC 4616, RFC 5802, RFC 7628; KIP-43, KIP-152, KIP-368 (session lifetime).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final

from joserfc.errors import InvalidClaimError

from kafka_dt.config import ConfigError, MechanismKeys
from kafka_dt.identity.login.exchange import Account, Exchange
from kafka_dt.identity.login.tokens import NoToken
from kafka_dt.identity.mechanisms.mechanism import Accounts, OpenMechanism, Relay, Resources
from kafka_dt.identity.mechanisms.oauthbearer import principal_name
from kafka_dt.identity.mechanisms.scram import ScramExchange, claim_of
from kafka_dt.tokens import Principal
from kafka_dt_protocol import LocalProtocolError
from kafka_dt_protocol.sasl import (
    ABORT,
    OAUTHBEARER,
    PLAIN,
    BearerAccepted,
    Challenge,
    CredentialRequest,
    Failure,
    Fault,
    OAuthBearerServer,
    PlainServer,
    ScramMechanism,
    StepResult,
    Success,
    VerdictRequest,
)

_REFUSED: Final = "the cluster behind the gateway has refused it"


def no_users(keys: MechanismKeys) -> None:
    """Accept a JAAS line, since a broker wants one for each mechanism, but no users in it: the cluster has them.

    Raises:
        ConfigError: the line has users.
    """
    module = keys.login_module
    if module is not None and module.plain_users:
        raise ConfigError(
            keys.jaas_key, "its users could not log in: logins are relayed to the cluster, which has users"
        )


def name_claim(keys: MechanismKeys) -> str:
    """Read which claim of a bearer token is the name of its principal."""
    claim: str = keys.value("sasl.oauthbearer.sub.claim.name")
    return claim


def open_relayed_plain(_settings: None, _listener: str, _resources: Resources) -> OpenMechanism:
    """Relay the logins by PLAIN."""
    return OpenMechanism(RelayedPlain)


def open_relayed_scram(
    mechanism: ScramMechanism, _settings: None, _listener: str, resources: Resources
) -> OpenMechanism:
    """Relay the logins of users by a SCRAM mechanism; check those by token here."""
    return OpenMechanism(partial(RelayedScram, mechanism, resources.nonce))


def open_relayed_bearer(claim: str, _listener: str, _resources: Resources) -> OpenMechanism:
    """Relay the logins by OAUTHBEARER; `claim` has the name of the principal."""
    return OpenMechanism(partial(RelayedBearer, claim))


class RelayedPlain(Exchange):
    """One login by PLAIN: one message, and the cluster's answer."""

    def __init__(self, accounts: Accounts) -> None:
        self._relay = _relay(accounts)

    def evaluate(self, message: bytes) -> StepResult | Coroutine[Any, Any, StepResult]:
        """Take the client's only message."""
        outcome = PlainServer().step(message)
        if not isinstance(outcome, CredentialRequest):
            return outcome
        authorization_id, _, _ = message.partition(b"\0")
        if authorization_id not in (b"", outcome.name.encode()):
            # A broker refuses it as well; another system might let the client act there as that user.
            return Failure("the authorization id is not the user name", fault=Fault.IDENTITY)
        self.name = outcome.name
        return self._pass_on(message)

    async def _pass_on(self, message: bytes) -> StepResult:
        await self._relay.begin(PLAIN)
        return await _last(self, self._relay, message)


class RelayedScram(ScramExchange):
    """One login by SCRAM: by token as in `ScramExchange`, else two messages and the cluster's answers."""

    def __init__(self, mechanism: ScramMechanism, nonce: Callable[[], str], accounts: Accounts) -> None:
        super().__init__(mechanism, nonce, accounts)
        self._relay = _relay(accounts)
        self._relayed = False

    def evaluate(self, message: bytes) -> StepResult | Coroutine[Any, Any, StepResult]:
        """Take the client-first or the client-final message."""
        return _last(self, self._relay, message) if self._relayed else super().evaluate(message)

    def _begin(self, request: CredentialRequest, message: bytes) -> StepResult | Coroutine[Any, Any, StepResult]:
        if request.token:
            return self._challenge(request)
        if self._accounts.may_be_token(request.name, claim_of(request)):
            return self._begin_later(request, message)
        return self._pass_on(request, message)

    async def _begin_later(self, request: CredentialRequest, message: bytes) -> StepResult:
        """Ask for a token of that name first: its client does not say that it is one."""
        if isinstance(await self._tokens.lookup(request.name), NoToken):
            return await self._pass_on(request, message)
        return self._challenge(request)

    async def _pass_on(self, request: CredentialRequest, message: bytes) -> StepResult:
        self.name = request.name
        self._relayed = True
        await self._relay.begin(self._mechanism)
        answer = await self._relay.pass_on(message)
        return Failure(_REFUSED, answer.refusal) if answer.refusal is not None else Challenge(answer.message)


class RelayedBearer(Exchange):
    """One login by OAUTHBEARER: one message and the cluster's answer, or two if that is a refusal."""

    def __init__(self, claim: str, accounts: Accounts) -> None:
        self._machine = OAuthBearerServer()
        self._claim = claim
        self._relay = _relay(accounts)

    def evaluate(self, message: bytes) -> StepResult | Coroutine[Any, Any, StepResult]:
        """Take the client's first message, or its answer to a refusal."""
        if self.foregone is not None:
            if message != ABORT:
                # A broker would take another token here, of a name that has not been read.
                return Failure("a message after a refusal that does not end the login", fault=Fault.GRAMMAR)
            return self._abort(message)
        outcome = self._machine.step(message)
        if not isinstance(outcome, VerdictRequest):
            return outcome
        try:
            self.name = _subject(outcome.bearer_token, self._claim)
        except (InvalidClaimError, ValueError, AttributeError, RecursionError):
            # Text of the client may be in the error.
            return Failure(f"the bearer token has no name in its claim {self._claim!r}", fault=Fault.GRAMMAR)
        return self._pass_on(message)

    async def _pass_on(self, message: bytes) -> StepResult:
        await self._relay.begin(OAUTHBEARER)
        answer = await self._relay.pass_on(message)
        if answer.refusal is not None:
            return Failure(_REFUSED, answer.refusal)
        if answer.message:
            self.foregone = _REFUSED
            return Challenge(answer.message)
        self.account = Account(Principal.user(self.name), ends_timestamp_ms=answer.ends_timestamp_ms)
        return self._machine.resume(BearerAccepted(self.name))

    async def _abort(self, message: bytes) -> StepResult:
        """End a login that has been refused; nothing that the cluster says makes it succeed."""
        answer = await self._relay.pass_on(message)
        return Failure(_REFUSED, answer.refusal)


async def _last(exchange: Exchange, relay: Relay, message: bytes) -> StepResult:
    """Pass on a message whose answer decides the login."""
    answer = await relay.pass_on(message)
    if answer.refusal is not None:
        return Failure(_REFUSED, answer.refusal)
    exchange.account = Account(Principal.user(exchange.name), ends_timestamp_ms=answer.ends_timestamp_ms)
    return Success(answer.message, exchange.name)


def _relay(accounts: Accounts) -> Relay:
    if accounts.relay is None:
        raise LocalProtocolError("only the connection of a gateway has a cluster to relay a login to")
    return accounts.relay


def _subject(token: str, claim: str) -> str:
    """Read the principal's name in a bearer token that is not verified yet."""
    _header, payload, _signature = token.split(".")
    decoded = base64.b64decode(payload + "=" * (-len(payload) % 4), altchars=b"-_", validate=True)
    claims = json.loads(decoded, object_pairs_hook=_without_doubles)
    name = principal_name(claims, claim)
    if name != claims[claim]:
        raise ValueError  # some brokers take the blanks around a name away, others do not
    return name


def _without_doubles(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that is there twice: of two names the cluster may read the other one."""
    claims = dict(pairs)
    if len(claims) < len(pairs):
        raise ValueError
    return claims
