"""The entries of tokens in the answers to DescribeDelegationToken, encoded once and used again.

To make and encode the entry of a token takes ten times as long as to find it, and whoever watches tokens asks for the
same ones again and again. An entry is good for as long as the cache of tokens gives the same object.

Limit: an entry takes about 300 bytes, and at most `MAX_ENTRIES` are kept for each layout of the API that is in use;
the oldest go first.

Source: KIP-48, KIP-373.
"""

from __future__ import annotations

from typing import Any, Final

from kafka_dt.tokens import DelegationToken
from protocol import build, element_type
from protocol.encoding import Encoded, encode

MAX_ENTRIES: Final = 50_000


class DescribedTokens:
    """Gives entries.

    Args:
        max_entries: how many are kept for each layout.
    """

    def __init__(self, max_entries: int = MAX_ENTRIES) -> None:
        self._max_entries = max_entries
        self._by_layout: dict[Any, dict[str, tuple[DelegationToken, Encoded]]] = {}

    def entry(self, layout: Any, held: DelegationToken) -> Encoded:
        """Give the entry of a token.

        Args:
            layout: kio's entity type of an entry, of any version.
            held: the token.
        """
        entries = self._by_layout.setdefault(layout, {})
        token_id = held.token.token_id
        known = entries.get(token_id)
        if known is not None and known[0] is held:
            return known[1]
        encoded = Encoded(encode(_described(layout, held)))
        entries[token_id] = (held, encoded)
        if len(entries) > self._max_entries:
            del entries[next(iter(entries))]
        return encoded


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
