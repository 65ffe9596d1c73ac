"""The errors of requests about tokens.

    Exception
    └── TokenError                  a request about tokens is refused
        ├── TokensDisabled              no secret key is set
        ├── TokenRequestNotAllowed      this connection may not ask about tokens
        ├── TokenAuthorizationFailed    the requester may not have tokens for that owner
        ├── InvalidPrincipalType        the owner's type cannot be a type, or a renewer is not a user
        ├── TokenNotFound               no such token (any more)
        ├── TokenOwnerMismatch          neither owner nor renewer
        ├── TokenExpired                expiry or max timestamp passed
        ├── TokenTooLarge               more renewers than the store can keep with one token
        ├── TokenLimitExceeded          a limit of tokens does not allow one more, or one as large
        ├── TooManyCreates              the requester has asked for too many tokens in this minute
        └── StoreUnavailable            the store cannot be asked, or its answer is too old

Errors carry fields and word themselves; no caller parses the text. They know no Kafka error codes: the server maps each
TokenError to its code in one table. No field holds a secret: an HMAC that matches nothing is not repeated.

Source: KIP-48 "Public Interfaces", org.apache.kafka.common.errors
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_dt.tokens.principal import Principal


class TokenError(Exception):
    """A request about tokens is refused; the subclass says why."""


@dataclass(eq=False)
class TokensDisabled(TokenError):
    """Tokens cannot be made or checked, because no secret key is set."""

    setting: str = "delegation.token.secret.key"
    """The setting that switches tokens on."""

    def __str__(self) -> str:
        return f"Delegation tokens are disabled: {self.setting} is not set."


@dataclass(eq=False)
class TokenRequestNotAllowed(TokenError):
    """A connection without authentication, or one that logged in with a token, may not ask about tokens."""

    reason: str
    """What is wrong with the connection, as half a sentence."""

    def __str__(self) -> str:
        return f"Delegation token requests are not allowed here: {self.reason}."


@dataclass(eq=False)
class TokenAuthorizationFailed(TokenError):
    """The requester may not create tokens for that owner."""

    requester: Principal
    owner: Principal

    def __str__(self) -> str:
        return f"{self.requester} may not create delegation tokens for {self.owner}."


@dataclass(eq=False)
class InvalidPrincipalType(TokenError):
    """The owner's type is empty or contains a colon, or a renewer has a type other than `User`."""

    principal: Principal
    renewer: bool
    """Whether the principal is a renewer; else it is the owner."""

    def __str__(self) -> str:
        if self.renewer:
            return f"{self.principal} cannot be a renewer: only the type User can."
        return (
            f"A principal of type {self.principal.type!r} cannot own a token: "
            "a type must not be empty and must not contain a colon."
        )


@dataclass(eq=False)
class TokenNotFound(TokenError):
    """No token has that HMAC or id, or it has been deleted."""

    token_id: str | None = None
    """The id where it is known; None when only an HMAC was given, which is not repeated."""

    def __str__(self) -> str:
        if self.token_id is None:
            return "No delegation token has this HMAC."
        return f"There is no delegation token {self.token_id}."


@dataclass(eq=False)
class TokenOwnerMismatch(TokenError):
    """Only the owner and the renewers may renew or expire a token."""

    requester: Principal

    def __str__(self) -> str:
        return f"{self.requester} is neither the owner nor a renewer of this delegation token."


@dataclass(eq=False)
class TokenExpired(TokenError):
    """The token's expiry timestamp or its max timestamp has passed."""

    token_id: str

    def __str__(self) -> str:
        return f"Delegation token {self.token_id} has expired."


@dataclass(eq=False)
class TokenTooLarge(TokenError):
    """A token would be larger than the store can ever take; another try fails as well."""

    size: int
    """How many bytes it takes, at least."""
    limit: int
    """How many bytes the store takes."""

    def __str__(self) -> str:
        return (
            f"A delegation token of {self.size} bytes is more than the {self.limit} that can be stored: "
            "name fewer renewers."
        )


@dataclass(eq=False)
class TokenLimitExceeded(TokenError):
    """A limit that an operator has set does not allow the new token."""

    what: str
    """What was asked for, as the subject of a sentence."""
    setting: str
    """The setting that has the limit."""
    limit: int

    def __str__(self) -> str:
        return f"{self.what} is more than {self.setting}={self.limit} allows."


@dataclass(eq=False)
class TooManyCreates(TokenError):
    """The requester has asked for too many tokens in this minute."""

    requester: Principal
    setting: str
    """The setting that has the limit."""
    limit: int
    """How many tokens it may ask for in a minute."""
    retry_after_ms: int
    """When the next minute begins, in milliseconds from now."""

    def __str__(self) -> str:
        return (
            f"{self.requester} has asked for as many delegation tokens in this minute as {self.setting}={self.limit} "
            f"allows; the next minute begins in {self.retry_after_ms} ms."
        )


@dataclass(eq=False)
class StoreUnavailable(TokenError):
    """The store of the tokens cannot be asked now, or what is known of it is too old to rely on.

    After a change it means: not acknowledged. The change may have been made or not; a later look will tell.
    """

    reason: str
    """What happened, as half a sentence for the log."""

    def __str__(self) -> str:
        return f"The store of delegation tokens is not available: {self.reason}."
