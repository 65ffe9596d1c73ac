"""The entries of tokens in the answers to DescribeDelegationToken, encoded once and used again.

To make and encode the entry of a token takes ten times as long as to find it, and a monitoring client asks for the
same ones again and again. An entry is kept from its first use until its token changes; answers that are not read yet
share its bytes.

Limit: `MAX_BYTES` for each layout of the API that is in use. When they are used up, the entries of other tokens are
encoded for each answer anew.

Source: KIP-48, KIP-373.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Sequence
from typing import Any, Final

from kafka_dt.tokens import DelegationToken, Token
from kafka_dt_protocol import build, element_type
from kafka_dt_protocol.wire.encoding import EncodedArray, encode

MAX_BYTES: Final = 64 * 1024 * 1024
"""How much is kept for each layout, in bytes; 230,000 tokens with a renewer."""
KEEPING_BYTES: Final = 140
"""What it takes to keep an entry, besides its bytes on the wire."""


class DescribedTokens:
    """Gives entries; the cache of tokens reports to `token_changed`, so that what is kept is true."""

    def __init__(self, current: Callable[[str], DelegationToken | None], max_bytes: int = MAX_BYTES) -> None:
        self._current = current
        self._max_bytes = max_bytes
        self._by_layout: dict[Any, _Kept] = {}

    async def entries(self, layout: Any, token_ids: AsyncIterable[Sequence[str]]) -> EncodedArray:
        """Give the entries of tokens, in their order.

        Args:
            layout: kio's entity type of an entry, of any version.
            token_ids: in batches, of tokens that are there when a batch is given.
        """
        kept = self._by_layout.setdefault(layout, _Kept())
        found = EncodedArray()
        # Kept entries are found here, without a call for each: an answer has thousands.
        encoded = kept.encoded
        async for batch in token_ids:
            found.add(tuple([encoded.get(each) or self._encoded(layout, kept, each) for each in batch]))
        return found

    def token_changed(self, token_id: str, _before: Token | None, _after: Token | None) -> None:
        """Drop the entries of a token."""
        for kept in self._by_layout.values():
            kept.drop(token_id)

    def _encoded(self, layout: Any, kept: _Kept, token_id: str) -> bytes:
        held = self._current(token_id)
        assert held is not None  # noqa: S101 - it is there
        encoded = encode(_described(layout, held))
        kept.put(token_id, encoded, self._max_bytes)
        return encoded


class _Kept:
    """The entries of one layout.

    They are in a dictionary of bytes, which Python's garbage collector leaves out. At a dictionary of anything else it
    would look again and again, at each element, and it stops everything else meanwhile.
    """

    __slots__ = ("_size", "encoded")

    def __init__(self) -> None:
        self.encoded: dict[str, bytes] = {}
        """The entry of each token id."""
        self._size = 0

    def put(self, token_id: str, encoded: bytes, max_bytes: int) -> None:
        """Keep an entry if there is room."""
        size = len(encoded) + KEEPING_BYTES
        if self._size + size <= max_bytes:
            self.encoded[token_id] = encoded
            self._size += size

    def drop(self, token_id: str) -> None:
        encoded = self.encoded.pop(token_id, None)
        if encoded is not None:
            self._size -= len(encoded) + KEEPING_BYTES


def token_details(held: DelegationToken) -> dict[str, Any]:
    """Give what the answers to create and describe call alike."""
    token = held.token
    return {
        "principal_type": token.owner.type,
        "principal_name": token.owner.name,
        "token_requester_principal_type": token.requester.type,
        "token_requester_principal_name": token.requester.name,
        "token_id": token.token_id,
        "hmac": held.hmac,
    }


def _described(layout: Any, held: DelegationToken) -> Any:
    """Make the entry of a token; its timestamps are plain numbers in kio's schema, unlike those of create."""
    renewer = element_type(layout, "renewers")
    return build(
        layout,
        issue_timestamp=held.token.issue_timestamp_ms,
        expiry_timestamp=held.token.expiry_timestamp_ms,
        max_timestamp=held.token.max_timestamp_ms,
        renewers=tuple(renewer(principal_type=p.type, principal_name=p.name) for p in held.token.renewers),
        **token_details(held),
    )
