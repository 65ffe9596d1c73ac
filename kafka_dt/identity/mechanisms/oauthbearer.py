"""Logins by OAUTHBEARER, which are decided by a verdict on the client's bearer token.

Source: RFC 7628; KIP-255, KIP-768.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from kafka_dt.identity.login.exchange import Account, Exchange
from kafka_dt.identity.mechanisms.mechanism import Accounts, OpenMechanism, Resources
from kafka_dt.identity.oauth.bearer import BearerTokens, Judgement
from kafka_dt.identity.oauth.jwks import Jwks
from kafka_dt.identity.oauth.settings import OAuthBearerSettings
from kafka_dt.tokens import Principal
from kafka_dt_protocol.sasl import BearerAccepted, OAuthBearerServer, StepResult, VerdictRequest


def open_bearer(settings: OAuthBearerSettings, _listener: str, resources: Resources) -> OpenMechanism:
    """Judge bearer tokens as a listener's settings say."""
    keys = Jwks(settings, resources.threads, resources.now_ms) if settings.jwks_url else None
    tokens = BearerTokens(settings, keys, resources.now_ms)

    def begin(_: Accounts) -> Exchange:
        return BearerExchange(tokens)

    return OpenMechanism(begin, tokens.start, tokens.close)


class BearerExchange(Exchange):
    """One login by OAUTHBEARER.

    Args:
        tokens: judges the bearer token.
    """

    def __init__(self, tokens: BearerTokens) -> None:
        self._machine = OAuthBearerServer()
        self._tokens = tokens

    def evaluate(self, message: bytes) -> StepResult | Coroutine[Any, Any, StepResult]:
        """Take the client's first message, or its answer to a refusal."""
        self.foregone = None
        outcome = self._machine.step(message)
        if not isinstance(outcome, VerdictRequest):
            return outcome
        judgement = self._tokens.judge(outcome.bearer_token)
        return self._take(judgement) if isinstance(judgement, Judgement) else self._take_later(judgement)

    async def _take_later(self, judgement: Coroutine[Any, Any, Judgement]) -> StepResult:
        return self._take(await judgement)

    def _take(self, judgement: Judgement) -> StepResult:
        verdict = judgement.verdict
        if isinstance(verdict, BearerAccepted):
            self.account = Account(Principal.user(verdict.name), ends_timestamp_ms=judgement.expiry_timestamp_ms)
        else:
            self.foregone = verdict.detail
        return self._machine.resume(verdict)
