"""A delegation token as a client knows it, and the texts of its parts.

Source: org.apache.kafka.common.security.token.delegation.DelegationToken and
org.apache.kafka.common.security.token.delegation.TokenInformation.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafka_dt.client.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationToken:
    """A token with its secret. Principals are texts such as `User:alice`; instants are milliseconds since 1970 UTC."""

    token_id: str
    """22 characters, base64url: the user name of a login with the token."""
    owner: str
    """Who a login with the token is."""
    requester: str
    """Who asked for it; servers before Kafka 3.3 do not say and the owner stands here."""
    renewers: tuple[str, ...]
    """Who may renew and expire it besides the owner."""
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    """When it ends unless it is renewed."""
    max_timestamp_ms: int
    """The end that no renewal can move."""
    hmac: bytes = field(repr=False)
    """The secret, raw: 64 bytes for HMAC-SHA512."""

    @property
    def hmac_base64(self) -> str:
        """The secret as users are given it: base64, the password of a SCRAM login with the token."""
        return base64.b64encode(self.hmac).decode("ascii")


def hmac_from_base64(text: str, source: str = "the HMAC") -> bytes:
    """Return the raw HMAC of the base64 text that a user was given; blanks around it do not matter.

    source: where the text comes from, for the error
    Raises InvalidArgument, which does not show the text.
    """
    text = text.strip()
    if not text:
        raise InvalidArgument(f"{source} is empty")
    try:
        hmac = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        # Not chained: the codec's error may hold the text.
        hmac = b""
    # Python takes too much padding and stray bits at the end: signs of a text that was cut or mistyped.
    if not hmac or base64.b64encode(hmac).decode("ascii") != text:
        raise InvalidArgument(f"{source} is not base64 text; give it as it was shown when the token was made")
    return hmac


def raw_hmac(hmac: object) -> bytes:
    """Return the HMAC that a caller gave as bytes.

    Raises InvalidArgument for a token or a text, with the way out; it does not show them.
    """
    if isinstance(hmac, DelegationToken):
        raise InvalidArgument("hmac is a DelegationToken; give its secret: token.hmac")
    if isinstance(hmac, str):
        raise InvalidArgument("hmac is a text; give the raw bytes: token.hmac, or hmac_from_base64(text)")
    if not isinstance(hmac, bytes):
        raise InvalidArgument(f"hmac is of the type {type(hmac).__name__}; give the raw bytes: token.hmac")
    return hmac


def split_principals(name: str, principals: Iterable[str]) -> list[tuple[str, str]]:
    """Return type and name of each principal.

    name: of the argument that holds them
    Raises InvalidArgument as `split_principal`, and for one text, whose letters would be taken for principals.
    """
    if isinstance(principals, str):
        raise InvalidArgument(f"{name} is one text; give a list: {name}=[{principals!r}]")
    return [split_principal(principal) for principal in principals]


def split_principal(principal: str) -> tuple[str, str]:
    """Return type and name of a principal such as `User:alice`.

    Raises InvalidArgument for a text without a type or without a name.
    """
    kind, colon, name = principal.partition(":")
    if not (kind and colon and name):
        raise InvalidArgument(f"{principal!r} is not a principal; write it with its type, as User:alice")
    return kind, name
