"""A delegation token as a client knows it, and the texts of its parts.

Source: org.apache.kafka.common.security.token.delegation.DelegationToken and TokenInformation.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field

from kafka_dt.client.errors import InvalidArgument


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
    """When it ends for good."""
    hmac: bytes = field(repr=False)
    """The secret, raw: 64 bytes for HMAC-SHA512."""

    @property
    def hmac_base64(self) -> str:
        """The secret as users are given it: base64, the password of a SCRAM login with the token."""
        return base64.b64encode(self.hmac).decode("ascii")


def hmac_from_base64(text: str) -> bytes:
    """Return the raw HMAC of the base64 text that a user was given; blanks around it do not matter.

    Raises InvalidArgument, which does not show the text.
    """
    try:
        hmac = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        # Not chained: the codec's error may hold the text.
        hmac = b""
    # Python takes too much padding and stray bits at the end: signs of a text that was cut or mistyped.
    if not hmac or base64.b64encode(hmac).decode("ascii") != text.strip():
        raise InvalidArgument("the HMAC is not base64 text; give it as it was shown when the token was made")
    return hmac


def split_principal(principal: str) -> tuple[str, str]:
    """Return type and name of a principal such as `User:alice`.

    Raises InvalidArgument for a text without a type or without a name.
    """
    kind, colon, name = principal.partition(":")
    if not (kind and colon and name):
        raise InvalidArgument(f"{principal!r} is not a principal; write it with its type, as User:alice")
    return kind, name
