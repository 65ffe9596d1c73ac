"""Logins by SCRAM, of users and of tokens.

The challenge is made of what the name alone decides. If the name may be a token's, the exchange looks for the token and
derives its credential while the client computes its proof: `prepare` begins that when the challenge is on its way.

Source: KIP-48, KIP-84; org.apache.kafka.common.security.scram.internals.ScramSaslServer;
docs/decisions/0009-the-challenge-tells-nothing.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from kafka_dt.identity.credentials.scram import ScramAccount, ScramAccounts
from kafka_dt.identity.login.exchange import Claim, TokenExchange
from kafka_dt.identity.mechanisms.mechanism import Accounts, OpenMechanism, Resources
from kafka_dt_protocol.sasl import (
    TOKENAUTH,
    CredentialRequest,
    ScramMechanism,
    ScramServer,
    StepResult,
)


def open_scram(mechanism: ScramMechanism, _settings: None, _listener: str, resources: Resources) -> OpenMechanism:
    """Check the logins of a SCRAM mechanism against the cluster's users and tokens."""
    return OpenMechanism(partial(ScramExchange, mechanism, resources.nonce))


class ScramExchange(TokenExchange):
    """One login by SCRAM."""

    def __init__(self, mechanism: ScramMechanism, nonce: Callable[[], str], accounts: Accounts) -> None:
        self._mechanism = mechanism
        self._machine = ScramServer(mechanism, nonce())
        self._tokens = accounts.tokens
        self._accounts: ScramAccounts = accounts.scram
        self._searches = False
        self._found: ScramAccount | None = None
        self._lookup: asyncio.Task[ScramAccount] | None = None

    def evaluate(self, message: bytes) -> StepResult | Coroutine[Any, Any, StepResult]:
        """Take the client-first or the client-final message."""
        outcome = self._machine.step(message)
        if not isinstance(outcome, CredentialRequest):
            return outcome
        if not self._searches:
            return self._begin(outcome, message)
        if self._found is None and not self._find():
            return self._check_later()
        return self._check()

    def prepare(self) -> None:
        """Begin to ask the store, or to derive the credential, if memory does not have it."""
        if self._searches and self._lookup is None and self._found is None and not self._find():
            self._lookup = asyncio.get_running_loop().create_task(self._accounts.lookup(self._mechanism, self.name))
            self._lookup.add_done_callback(_seen)

    def abandon(self) -> None:
        """End what `prepare` has begun."""
        if self._lookup is not None:
            self._lookup.cancel()

    def _begin(self, request: CredentialRequest, message: bytes) -> StepResult | Coroutine[Any, Any, StepResult]:
        """Take the name of the client-first message."""
        del message  # it is of use where logins are relayed
        return self._challenge(request)

    def _challenge(self, request: CredentialRequest) -> StepResult:
        self.name = request.name
        self._claim = claim_of(request)
        self._store_was_there = self._tokens.can_ask(self.name)
        beginning = self._accounts.begin(self._mechanism, request.name, self._claim)
        self._may_be_token = beginning.may_be_token
        self.account = beginning.account
        self._searches = beginning.account is None
        return self._machine.resume(beginning.challenged)

    def _find(self) -> bool:
        """Look for the account in memory; False if it does not have all that it takes."""
        self._found = self._accounts.find(self._mechanism, self.name)
        return self._found is not None

    def _check(self) -> StepResult:
        assert self._found is not None  # noqa: S101 - the callers have seen to that
        self.account = self._found
        return self._machine.resume(self._found.credential)

    async def _check_later(self) -> StepResult:
        if self._lookup is not None:
            self._found = await self._lookup
        else:
            self._found = await self._accounts.lookup(self._mechanism, self.name)
        return self._check()


def claim_of(request: CredentialRequest) -> Claim:
    """Tell what the client says its user name is."""
    if request.token:
        return Claim.TOKEN
    return Claim.USER if TOKENAUTH in request.extensions else Claim.UNSAID


def _seen(task: asyncio.Task[ScramAccount]) -> None:
    """Take note of how a task ended: if the client leaves, no caller asks, and asyncio would log that."""
    if not task.cancelled():
        task.exception()
