"""Logins by DIGEST-MD5, which are checked against the passwords of a token, or against a decoy.

The mechanism is for tokens alone, so a user's name is an unknown name. Its exchange needs no derived credential: the
password of a token is the base64 text of its HMAC, as with SCRAM, and where one of several keys may have made the
token, each of their HMACs is a password.

Source: KIP-48, first draft ("Authentication using Token").
"""

from __future__ import annotations

import base64
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final

from kafka_dt.config import ConfigError, MechanismKeys
from kafka_dt.identity.login.exchange import Account, Claim, TokenExchange
from kafka_dt.identity.login.tokens import NoToken
from kafka_dt.identity.mechanisms.mechanism import Accounts, OpenMechanism, Resources
from kafka_dt.tokens import DelegationToken, has_token_id_form
from kafka_dt_protocol.sasl import CredentialRequest, DigestServer, StepResult

UNKNOWN: Final = Account(None)


def refuse_users(keys: MechanismKeys) -> None:
    """Accept a JAAS line, since a broker wants one for each mechanism, but no users in it: none could log in."""
    module = keys.login_module
    if module is not None and module.plain_users:
        raise ConfigError(keys.jaas_key, f"{keys.mechanism} is for tokens alone, it has no users")


def open_digest(_settings: None, _listener: str, resources: Resources) -> OpenMechanism:
    """Check logins against tokens; an unknown name gets a random password, on which nothing that is sent depends."""
    return OpenMechanism(partial(DigestExchange, resources, resources.nonce()))


class DigestExchange(TokenExchange):
    """One login by DIGEST-MD5; the decoy is the password of every name that is not a token's."""

    def __init__(self, resources: Resources, decoy: str, accounts: Accounts) -> None:
        self._machine = DigestServer(resources.nonce())
        self._decoy = decoy
        self._tokens = accounts.tokens

    def evaluate(self, message: bytes) -> StepResult | Coroutine[Any, Any, StepResult]:
        """Take the client's empty first message, or its digest-response."""
        outcome = self._machine.step(message)
        if not isinstance(outcome, CredentialRequest):
            return outcome
        self.name = outcome.name
        self._claim = Claim.TOKEN
        self._store_was_there = self._tokens.can_ask(self.name)
        self._may_be_token = has_token_id_form(outcome.name)
        token = self._tokens.find(outcome.name)
        return self._check_later() if token is None else self._check(token)

    async def _check_later(self) -> StepResult:
        return self._check(await self._tokens.lookup(self.name))

    def _check(self, token: DelegationToken | NoToken) -> StepResult:
        if isinstance(token, NoToken):
            self.account = UNKNOWN
            return self._machine.resume((self._decoy,))
        self.account = Account(token.token.owner, token)
        return self._machine.resume(tuple(base64.b64encode(each).decode("ascii") for each in token.hmacs))
