"""The changes that a requester may ask for, as values: a store that decides itself gets the request as it was made.

For a store that only keeps tokens, `decide` is the rule: from the token and the time to the token as it becomes. It
depends on nothing else, so it may be applied again, to another state of the token.

Source: KIP-48; kafka.server.DelegationTokenManagerZk (renewToken, expireToken)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from kafka_dt.tokens.errors import TokenExpired, TokenOwnerMismatch

if TYPE_CHECKING:
    from kafka_dt.tokens.principal import Principal
    from kafka_dt.tokens.token import Token


def forget(_: Token) -> None:
    """Ignore a report about a token: nothing is written down."""


@dataclass(frozen=True, slots=True)
class Renewal:
    """Moves a token's expiry timestamp, at most to its max timestamp; also backwards."""

    requester: Principal
    period_ms: int
    """From now, in milliseconds; negative = `default_period_ms`."""
    default_period_ms: int
    on_token: Callable[[Token], None] = forget
    """Called with the token as it was found, also if the requester may not renew it."""

    def decide(self, token: Token, now_ms: int) -> Token:
        """Return the token as it becomes.

        Raises:
            TokenOwnerMismatch, TokenExpired: checked in this order.
        """
        self.on_token(token)
        if not token.may_renew(self.requester):
            raise TokenOwnerMismatch(self.requester)
        if token.is_expired(now_ms):
            raise TokenExpired(token.token_id)
        return token.expiring_at(now_ms + (self.default_period_ms if self.period_ms < 0 else self.period_ms))


@dataclass(frozen=True, slots=True)
class Expiry:
    """Sets when a token expires, at most at its max timestamp, or deletes it at once."""

    requester: Principal
    period_ms: int
    """From now, in milliseconds; negative = delete, which works on expired tokens as well."""
    by_super_user: bool = False
    """Whether the requester may expire any token."""
    on_token: Callable[[Token], None] = forget
    """Called with the token as it was found, also if the requester may not expire it."""

    def decide(self, token: Token, now_ms: int) -> Token | None:
        """Return the token as it becomes; None to delete it.

        Raises:
            TokenOwnerMismatch, TokenExpired: checked in this order.
        """
        self.on_token(token)
        if not (self.by_super_user or token.may_renew(self.requester)):
            raise TokenOwnerMismatch(self.requester)
        if self.period_ms < 0:
            return None
        if token.is_expired(now_ms):
            raise TokenExpired(token.token_id)
        return token.expiring_at(now_ms + self.period_ms)


Change: TypeAlias = Renewal | Expiry
