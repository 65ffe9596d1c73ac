"""A delegation token: what is known about it, and the questions it answers by itself.

`Token` is what stands in the store and what describe shows. `DelegationToken` adds the HMAC, which is the secret: who
has it can log in as the owner. Both are values; a renewed token is a new value.

Instants are milliseconds since 1970 in UTC and fit Kafka's int64.

Source: KIP-48 "Token Details", KIP-373; org.apache.kafka.common.security.token.delegation.TokenInformation
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafka_dt.tokens.principal import Principal

MAX_TIMESTAMP_MS: Final = 2**63 - 1
"""The last instant Kafka can write; later ones are capped here instead of overflowing."""


@dataclass(frozen=True, slots=True)
class Token:
    """Everything about a token except its secret."""

    token_id: str
    """22 characters, base64url without padding of 16 random bytes; older or foreign ones may differ."""
    owner: Principal
    """The principal as which a login with this token acts."""
    requester: Principal
    """The principal that asked for the token: the owner, or one that may create tokens for other users (KIP-373)."""
    renewers: tuple[Principal, ...]
    """Who may renew and expire it besides the owner, as given: order and duplicates are kept."""
    issue_timestamp_ms: int
    """When it was created."""
    max_timestamp_ms: int
    """The end that no renewal moves."""
    expiry_timestamp_ms: int
    """The end unless it is renewed."""
    key_id: str | None = None
    """The id of the secret key that made it; None if a broker has written it, which does not say."""

    @property
    def end_timestamp_ms(self) -> int:
        """When it ends unless it is renewed: the earlier of expiry and max timestamp."""
        return min(self.expiry_timestamp_ms, self.max_timestamp_ms)

    def is_expired(self, now_ms: int) -> bool:
        """Say whether the token has ended at `now_ms`; in the very millisecond of its end it has not."""
        return self.end_timestamp_ms < now_ms

    def may_renew(self, principal: Principal) -> bool:
        """Say whether `principal` may renew and expire the token: the owner and the renewers may."""
        return principal == self.owner or principal in self.renewers

    def concerns(self, principal: Principal) -> bool:
        """Say whether `principal` may see the token as one of its own: owner, renewers and requester may."""
        return self.may_renew(principal) or principal == self.requester

    def expiring_at(self, expiry_timestamp_ms: int) -> Token:
        """Return the token with another expiry timestamp, at most its max timestamp."""
        return replace(self, expiry_timestamp_ms=min(expiry_timestamp_ms, self.max_timestamp_ms))


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token and its secret."""

    token: Token
    hmac: bytes = field(repr=False)
    """The raw HMAC; 64 bytes with HmacSHA512. The password of a login is its base64 text."""
    alternatives: tuple[bytes, ...] = field(default=(), repr=False)
    """The HMACs that are as good, where it is not known which of several keys made the token."""

    @property
    def hmacs(self) -> tuple[bytes, ...]:
        """All HMACs by which the token is known, the one that is shown first."""
        return (self.hmac, *self.alternatives)

    def has_hmac(self, hmac: bytes) -> bool:
        """Say whether the token is known by that HMAC; not for a guesser's, the time it takes is not constant."""
        return hmac == self.hmac or hmac in self.alternatives


def ends_sooner(before: Token | None, after: Token | None) -> bool:
    """Say whether a change is a revocation: the token is gone, or ends earlier than it would have.

    Args:
        before: the token as it was known, None if it was not known.
        after: the token as it is now, None if it is gone.
    """
    if before is None:
        return False
    return after is None or after.end_timestamp_ms < before.end_timestamp_ms
