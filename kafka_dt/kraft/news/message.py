"""What a node tells the other nodes: that a token ends sooner than it was to.

    message = Revocation.of(token_id, hmac, end_timestamp_ms)
    Revocation.decode(message.encode()) == message
    message.is_proved_by(hmac)         # by a node that knows the token

A message proves that its writer knows the secret of the token, and does not give the secret away: it carries a MAC
whose key is the token's HMAC. So another writer of the topic can end no token.

The text is JSON, for people who read the topic:

    {"version": 1, "token_id": "...", "end_timestamp": null, "proof": "..."}

Source: RFC 2104 (HMAC); docs/decisions/0034-news-of-revocations.md.
"""

from __future__ import annotations

import base64
import binascii
import hmac as keyed
import json
from dataclasses import dataclass, field
from typing import Final, Self

from kafka_dt.tokens import has_token_id_form
from kafka_dt.tokens.token import MAX_TIMESTAMP_MS

VERSION: Final = 1
MAX_BYTES: Final = 1_024
"""A longer message is none of ours."""
_PURPOSE: Final = b"kafka-dt revocation"
_DIGEST: Final = "sha256"


@dataclass(frozen=True, slots=True)
class Revocation:
    """A token ends sooner than it was to."""

    token_id: str
    """Has the form of Kafka's."""
    end_timestamp_ms: int | None
    """When it ends now, in milliseconds since 1970; None if it was deleted."""
    proof: bytes = field(repr=False)
    """32 bytes: an HMAC-SHA256 of the two others, with the token's own HMAC as its key."""

    @classmethod
    def of(cls, token_id: str, hmac: bytes, end_timestamp_ms: int | None) -> Self:
        """Make the message about a token, whose HMAC it is."""
        return cls(token_id, end_timestamp_ms, _proof(token_id, hmac, end_timestamp_ms))

    def is_proved_by(self, hmac: bytes) -> bool:
        """Say whether the writer knew the token's HMAC, in constant time."""
        return keyed.compare_digest(self.proof, _proof(self.token_id, hmac, self.end_timestamp_ms))

    def encode(self) -> bytes:
        """Return the value of a record."""
        fields = {
            "version": VERSION,
            "token_id": self.token_id,
            "end_timestamp": self.end_timestamp_ms,
            "proof": base64.b64encode(self.proof).decode("ascii"),
        }
        return json.dumps(fields).encode()

    @classmethod
    def decode(cls, value: bytes | None) -> Self | None:
        """Read the value of a record; None if it is no message of this version."""
        if value is None or len(value) > MAX_BYTES:
            return None
        try:
            match json.loads(value):
                case {"version": 1, "token_id": str(token_id), "end_timestamp": end_ms, "proof": str(proof)} if (
                    has_token_id_form(token_id) and _is_instant(end_ms)
                ):
                    return cls(token_id, end_ms, base64.b64decode(proof, validate=True))
        except (ValueError, RecursionError, binascii.Error):
            pass  # others may write to the topic; a reader counts what is no message
        return None


def _is_instant(end_ms: object) -> bool:
    return end_ms is None or (type(end_ms) is int and 0 <= end_ms <= MAX_TIMESTAMP_MS)


def _proof(token_id: str, hmac: bytes, end_ms: int | None) -> bytes:
    return keyed.digest(hmac, b"\0".join((_PURPOSE, token_id.encode(), str(end_ms).encode())), _DIGEST)
