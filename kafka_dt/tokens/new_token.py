"""A token that is asked for: what is refused before anything is stored, and the token that is made of it.

Source: KIP-48; kafka.server.DelegationTokenManagerZk.createToken.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_dt.tokens.errors import InvalidPrincipalType, TokenTooLarge
from kafka_dt.tokens.principal import USER_TYPE, Principal
from kafka_dt.tokens.token import MAX_TIMESTAMP_MS, Token

if TYPE_CHECKING:
    from kafka_dt.tokens.creation_limits import CreationLimits

MAX_TOKEN_BYTES: Final = 1_000_000
"""More is not even tried: ZooKeeper takes about as much in a request (`jute.maxbuffer`). It bounds the renewers."""
ID_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that is asked for."""

    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    max_lifetime_ms: int
    """From issue to max timestamp; 0 or less = the server's maximum, which also is the limit."""

    def require_types(self) -> None:
        """Refuse principals that cannot own or renew a token.

        Raises:
            InvalidPrincipalType: the owner or a renewer cannot.
        """
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


def _token_id(random: bytes) -> str:
    """Return the id made of 16 random bytes: those of a random UUID (RFC 9562, version 4), as a broker's."""
    uuid = bytearray(random)
    uuid[6] = uuid[6] & 0x0F | 0x40
    uuid[8] = uuid[8] & 0x3F | 0x80
    return urlsafe_b64encode(uuid).rstrip(b"=").decode()
