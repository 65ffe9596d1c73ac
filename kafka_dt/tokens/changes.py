"""What a requester may ask for, as values: a store that decides itself gets the request as it was made.

`NewToken` is a token that is asked for. `Renewal` and `Expiry` are changes: for a store that only keeps tokens, their
`decide` is the rule, from the token and the time to the token as it becomes. It depends on nothing else, so it may be
applied again, to another state of the token.

Source: KIP-48; kafka.server.DelegationTokenManagerZk (createToken, renewToken, expireToken)
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import UUID

from kafka_dt.tokens.errors import InvalidPrincipalType, TokenExpired, TokenOwnerMismatch, TokenTooLarge
from kafka_dt.tokens.principal import USER_TYPE, Principal
from kafka_dt.tokens.token import MAX_TIMESTAMP_MS, Token

if TYPE_CHECKING:
    from kafka_dt.tokens.creation_limits import CreationLimits

OwnConnection: TypeAlias = object
"""A connection on which the requester itself has logged in at the store; only the store that it is of looks into it."""

MAX_TOKEN_BYTES: Final = 1_000_000
"""More is not even tried: a store takes about as much in a request. It bounds the renewers."""
ID_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that is asked for."""

    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    max_lifetime_ms: int
    """From issue to max timestamp; 0 or less = the server's maximum, which also is the limit."""
    own: OwnConnection | None = field(default=None, repr=False, compare=False)
    """Where the requester has one, the store itself decides whether it may create the token."""

    def require_types(self) -> None:
        """Refuse principals that cannot own or renew a token, by InvalidPrincipalType."""
        if not self.owner.has_valid_type:
            raise InvalidPrincipalType(self.owner, renewer=False)
        for renewer in self.renewers:
            if renewer.type != USER_TYPE:
                raise InvalidPrincipalType(renewer, renewer=True)

    def require_size(self, limits: CreationLimits) -> None:
        """Refuse a token whose principals alone are too large, before it is encoded.

        Raises:
            TokenTooLarge: no store could take it.
            TokenLimitExceeded: the limits do not allow it.
        """
        size = sum(len(str(principal)) for principal in (self.owner, self.requester, *self.renewers))
        if size > MAX_TOKEN_BYTES:
            raise TokenTooLarge(size, MAX_TOKEN_BYTES)
        limits.require_renewers(self.renewers)
        limits.require_size(size)

    def token(self, key_id: str | None, now_ms: int, limit_ms: int, expiry_time_ms: int, random: bytes) -> Token:
        """Make the token.

        Args:
            key_id: the id of the secret key that makes its HMAC; None where the store makes it.
            now_ms: milliseconds since 1970 in UTC.
            limit_ms: the longest lifetime, in milliseconds.
            expiry_time_ms: how long it lives without a renewal, in milliseconds.
            random: `ID_BYTES` bytes that cannot be guessed.
        """
        lifetime_ms = limit_ms if self.max_lifetime_ms <= 0 else min(self.max_lifetime_ms, limit_ms)
        max_timestamp_ms = min(now_ms + lifetime_ms, MAX_TIMESTAMP_MS)
        return Token(
            token_id=_token_id(random),
            owner=self.owner,
            requester=self.requester,
            renewers=self.renewers,
            issue_timestamp_ms=now_ms,
            max_timestamp_ms=max_timestamp_ms,
            expiry_timestamp_ms=min(max_timestamp_ms, now_ms + expiry_time_ms),
            key_id=key_id,
        )


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
    own: OwnConnection | None = field(default=None, repr=False, compare=False)
    """Where the requester has one, the store itself decides whether it may renew the token."""

    @property
    def deletes(self) -> bool:
        """Whether the token goes at once."""
        return False

    def decide(self, token: Token, now_ms: int) -> Token:
        """Return the token as it becomes; raises TokenOwnerMismatch or TokenExpired, checked in this order."""
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
    own: OwnConnection | None = field(default=None, repr=False, compare=False)
    """Where the requester has one, the store itself decides whether it may expire the token."""

    @property
    def deletes(self) -> bool:
        """Whether the token goes at once."""
        return self.period_ms < 0

    def decide(self, token: Token, now_ms: int) -> Token | None:
        """Return the token as it becomes, None to delete it; raises as `Renewal.decide`."""
        self.on_token(token)
        if not (self.by_super_user or token.may_renew(self.requester)):
            raise TokenOwnerMismatch(self.requester)
        if self.deletes:
            return None
        if token.is_expired(now_ms):
            raise TokenExpired(token.token_id)
        return token.expiring_at(now_ms + self.period_ms)


Change: TypeAlias = Renewal | Expiry


def _token_id(random: bytes) -> str:
    """Return the id made of 16 random bytes: those of a random UUID (RFC 9562, version 4), as a broker's."""
    return urlsafe_b64encode(UUID(bytes=random, version=4).bytes).rstrip(b"=").decode()
