"""Ends tokens by deleting their znodes: those that a filter selects, or those of certain secret keys.

A deletion is guarded by the version that was read and told to nodes and brokers, so it holds within a second
everywhere. A token that was renewed meanwhile is decided about again, and ends as well.

Source: KIP-48, first draft ("invalidate all tokens"); kafka.server.DelegationTokenManager.expireToken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_dt.bulk.decisions import Decision, Leave, Remove
from kafka_dt.bulk.opening import Opener

if TYPE_CHECKING:
    from collections.abc import Collection

    from kafka_dt.bulk.filters import TokenFilter
    from kafka_dt.tokens import Keyring


class Expire:
    """Ends the tokens that a filter selects; the note of a removal is the owner.

    Args:
        keyring: of the cluster.
        selected: which tokens are meant.
    """

    announces: Final = True

    def __init__(self, keyring: Keyring, selected: TokenFilter) -> None:
        self._opener = Opener(keyring)
        self._selected = selected

    def __call__(self, token_id: str, data: bytes) -> Decision:
        """Decide about one znode."""
        token = self._opener.open(token_id, data).token
        owner = str(token.owner)
        if self._selected.selects(owner, map(str, token.renewers), token.issue_timestamp_ms):
            return Remove(owner)
        return Leave()


class ExpireOfKeys:
    """Ends the tokens that certain keys made.

    Args:
        keyring: of the cluster; it still holds the keys.
        key_ids: of the keys; None among them means the tokens that do not say which key made them.
    """

    announces: Final = True

    def __init__(self, keyring: Keyring, key_ids: Collection[str | None]) -> None:
        self._opener = Opener(keyring)
        self._key_ids = frozenset(key_ids)

    def __call__(self, token_id: str, data: bytes) -> Decision:
        """Decide about one znode."""
        return Remove() if self._opener.open(token_id, data).token.key_id in self._key_ids else Leave()
