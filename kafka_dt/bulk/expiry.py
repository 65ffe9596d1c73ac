"""End tokens by deleting their znodes: those that a filter selects, or those of a secret key.

A deletion is guarded by the version that was read and told to nodes and brokers, so it holds within a second
everywhere. A token that was renewed meanwhile is decided about again, and ends as well.

Source: KIP-48, first draft ("invalidate all tokens"); kafka.server.DelegationTokenManager.expireToken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_dt.bulk.decisions import Decision, Fail, Leave, Remove
from kafka_dt.bulk.opening import OpenedToken, TokenTask

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_dt.bulk.filters import TokenFilter
    from kafka_dt.tokens import Keyring
    from kafka_dt.zookeeper.errors import InvalidZnode

NOT_READABLE: Final = "not readable"
"""The note of a token whose owner cannot be told."""
STILL_LIVE: Final = "a live token of the key"
"""Why `ExpireOfKey` leaves a token."""


class Expire(TokenTask):
    """Ends the tokens that a filter selects; the note of a removal is the owner.

    A token that is not readable fails where every token is meant, and else is left (`NOT_READABLE`), unless it is meant
    as such.

    Args:
        keyring: of the cluster; None = there is no key, so only plain tokens that name no key are readable.
        selected: which readable tokens are meant; None = none of them.
        unreadable: whether the tokens are meant that are not readable; their note is `NOT_READABLE`.
    """

    announces = True

    def __init__(self, keyring: Keyring | None, selected: TokenFilter | None, *, unreadable: bool = False) -> None:
        super().__init__(keyring)
        self._selected = selected
        self._unreadable = unreadable

    def decide(self, opened: OpenedToken) -> Decision:
        """Decide about one token."""
        token = opened.token
        owner = str(token.owner)
        if self._selected and self._selected.selects(owner, map(str, token.renewers), token.issue_timestamp_ms):
            return Remove(owner)
        return Leave()

    def refuse(self, error: InvalidZnode) -> Decision:
        """Decide about a znode that is not readable."""
        if self._unreadable:
            return Remove(NOT_READABLE)
        return super().refuse(error) if self._selected and self._selected.selects_all else Leave(NOT_READABLE)


class ExpireOfKey(TokenTask):
    """Ends the tokens that a key made and, if asked to, those that do not say which key made them.

    Args:
        keyring: of the cluster; it still holds the key.
        key_id: of the key.
        now_ms: the wall clock, in milliseconds since 1970, to tell which tokens have expired.
        live: whether tokens of the key end that have not expired; else each counts as failed (`STILL_LIVE`).
        nameless: whether tokens end that do not say their key, expired or not.
    """

    announces = True

    def __init__(
        self, keyring: Keyring, key_id: str, now_ms: Callable[[], int], *, live: bool = False, nameless: bool = False
    ) -> None:
        super().__init__(keyring)
        self._key_id = key_id
        self._now_ms = now_ms
        self._live = live
        self._nameless = nameless

    def decide(self, opened: OpenedToken) -> Decision:
        """Decide about one token."""
        token = opened.token
        if token.key_id is None:
            return Remove() if self._nameless else Leave()
        if token.key_id != self._key_id:
            return Leave()
        return Remove() if self._live or token.is_expired(self._now_ms()) else Fail(STILL_LIVE)
