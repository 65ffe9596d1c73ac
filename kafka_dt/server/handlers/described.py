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
"""How much is kept for each layout, in bytes; 190,000 tokens with a renewer."""
KEEPING_BYTES: Final = 200
"""What it takes to keep an entry, besides its bytes on the wire."""


class DescribedTokens:
    """Gives entries; the cache of tokens reports to `token_changed`."""

    def __init__(self, current: Callable[[str], DelegationToken | None], max_bytes: int = MAX_BYTES) -> None:
        self._current = current
        self._max_bytes = max_bytes
        self._by_layout: dict[Any, _Kept] = {}

    async def entries(self, layout: Any, tokens: AsyncIterable[Sequence[DelegationToken]]) -> EncodedArray:
        """Give the entries of tokens, in their order; the layout is kio's entity type of an entry, of any version."""
        kept = self._by_layout.setdefault(layout, _Kept())
        found = EncodedArray()
        # Kept entries are found here, without a call of `_encoded` for each: an answer has thousands.
        hmacs, encoded, current = kept.hmacs, kept.encoded, self._current
        async for batch in tokens:
            entries = [
                encoded[token_id]
                if hmacs.get(token_id := held.token.token_id) == held.hmac and current(token_id) is held
                else self._encoded(layout, kept, held)
                for held in batch
            ]
            found.add(tuple(entries))
        return found

    def token_changed(self, token_id: str, _before: Token | None, _after: Token | None) -> None:
        """Drop the entries of a token."""
        for kept in self._by_layout.values():
            kept.drop(token_id)

    def _encoded(self, layout: Any, kept: _Kept, held: DelegationToken) -> bytes:
        encoded = encode(_described(layout, held))
        # If not, it has changed since it was found: what is kept is of its later state, and of this one nothing may be.
        if self._current(held.token.token_id) is held:
            kept.put(held, encoded, self._max_bytes)
        return encoded


class _Kept:
    """The entries of one layout.

    HMAC and entry are in two dictionaries of bytes, which Python's garbage collector leaves out. At dictionaries of
    anything else it would look again and again, at each element, and it stops everything else meanwhile.
    """

    __slots__ = ("_size", "encoded", "hmacs")

    def __init__(self) -> None:
        self.hmacs: dict[str, bytes] = {}
        """By which the tokens were known then: the cache tells of every change of a token, but not of another key."""
        self.encoded: dict[str, bytes] = {}
        """The entry of each id in `hmacs`."""
        self._size = 0

    def put(self, held: DelegationToken, encoded: bytes, max_bytes: int) -> None:
        """Keep an entry if there is room."""
        token_id = held.token.token_id
        self.drop(token_id)
        size = len(encoded) + KEEPING_BYTES
        if self._size + size <= max_bytes:
            self.hmacs[token_id], self.encoded[token_id] = held.hmac, encoded
            self._size += size

    def drop(self, token_id: str) -> None:
        if self.hmacs.pop(token_id, None) is not None:
            self._size -= len(self.encoded.pop(token_id)) + KEEPING_BYTES


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
