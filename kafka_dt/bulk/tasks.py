"""Tasks for token znodes: seal, unseal, seal with the current key, verify, and end the tokens of a filter or of a key.

The JSON inside stays byte for byte what it was, so sealing and unsealing give back what a broker wrote. A token ends by
the deletion of its znode, which is told to nodes and brokers, so it holds within a second everywhere. No renewal holds
it up: who owns and renews a token, when it was issued and which key made it never change, so a deletion that these
decide needs no guard. One that depends on the expiry, or on what is not readable, is guarded by the version.

Source: KIP-395, "Future work"; KIP-48, first draft ("invalidate all tokens"); kafka.server.DelegationTokenManager.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_dt.bulk.decisions import Decision, Fail, Leave, Remove, Write
from kafka_dt.bulk.opening import DerivedForBatch, OpenedToken, TokenTask
from kafka_dt.zookeeper.sealing.sealed import SALT_BYTES, seal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kafka_dt.bulk.decisions import Found
    from kafka_dt.tokens import Keyring, Token
    from kafka_dt.zookeeper.errors import InvalidZnode

NOT_READABLE: Final = "not readable"
"""The note of a token whose owner cannot be told."""
STILL_LIVE: Final = "a live token of the key"
"""Why `ExpireOfKey` leaves a token."""


class SealingTask(TokenTask):
    """Seals what `decide` writes, with the current key and random bytes, cryptographically strong, for salts.

    Nothing is announced: the tokens stay the same, and a broker could not read them.
    """

    announces = False

    def __init__(self, keyring: Keyring, random_bytes: Callable[[int], bytes]) -> None:
        super().__init__(keyring)
        self._current = keyring.current
        self._random_bytes = random_bytes

    def __call__(self, found: Sequence[Found]) -> list[Decision]:
        """Decide about each znode of a batch, and seal the data to write."""
        decisions = super().__call__(found)
        salts = [self._random_bytes(SALT_BYTES) for each in decisions if isinstance(each, Write)]
        ahead, fresh = DerivedForBatch(self._current, salts), iter(salts)
        return [
            Write(seal(self._current, each.data, next(fresh), ahead)) if isinstance(each, Write) else each
            for each in decisions
        ]


class Seal(SealingTask):
    """Seals plain znodes, and seals again those that are sealed with an older key."""

    def decide(self, opened: OpenedToken) -> Decision:
        """Decide about one token."""
        return Leave() if opened.sealed_by == self._current else Write(opened.plaintext)


class Reseal(SealingTask):
    """Seals again, with the current key, the znodes that the key of `key_id` sealed, or any older key; None = any.

    Plain znodes stay plain. The keyring still holds the older keys.
    """

    def __init__(self, keyring: Keyring, random_bytes: Callable[[int], bytes], key_id: str | None = None) -> None:
        super().__init__(keyring, random_bytes)
        self._key_id = key_id

    def decide(self, opened: OpenedToken) -> Decision:
        """Decide about one token."""
        key = opened.sealed_by
        is_meant = key is not None and key != self._current and self._key_id in (None, key.id)
        return Write(opened.plaintext) if is_meant else Leave()


class Unseal(TokenTask):
    """Makes sealed znodes plain, and tells brokers, which can read them from now on."""

    announces = True

    def decide(self, opened: OpenedToken) -> Decision:
        """Decide about one token."""
        return Leave() if opened.sealed_by is None else Write(opened.plaintext)


class Verify(TokenTask):
    """Checks MAC, JSON, name, key and times of each znode, and changes nothing."""

    announces = False

    def decide(self, opened: OpenedToken) -> Decision:
        """Decide about one token."""
        odd = _odd_times(opened.token)
        return Fail(f"odd times: {odd}") if odd else Leave()


@dataclass(frozen=True, slots=True)
class TokenFilter:
    """Conditions of a token; each condition that is given must hold."""

    owners: frozenset[str] = frozenset()
    """One of these owns it (`User:alice`); empty = any owner."""
    renewers: frozenset[str] = frozenset()
    """One of these is a renewer of it; empty = any renewers, or none."""
    issued_before_ms: int | None = None
    """It was issued before this instant, in milliseconds since 1970; None = at any time."""

    @property
    def selects_all(self) -> bool:
        """Whether no token is left out."""
        return not (self.owners or self.renewers) and self.issued_before_ms is None

    def selects(self, owner: str, renewers: Iterable[str], issue_timestamp_ms: int) -> bool:
        """Say whether a token is meant; principals are texts such as `User:alice`."""
        if self.owners and owner not in self.owners:
            return False
        if self.renewers and self.renewers.isdisjoint(renewers):
            return False
        return self.issued_before_ms is None or issue_timestamp_ms < self.issued_before_ms


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
            return Remove(owner, guarded=False)
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

    def __init__(self, keyring: Keyring, key_id: str, now_ms: Callable[[], int], *, live: bool, nameless: bool) -> None:
        super().__init__(keyring)
        self._key_id = key_id
        self._now_ms = now_ms
        self._live = live
        self._nameless = nameless

    def decide(self, opened: OpenedToken) -> Decision:
        """Decide about one token."""
        token = opened.token
        if token.key_id is None:
            return Remove(guarded=False) if self._nameless else Leave()
        if token.key_id != self._key_id:
            return Leave()
        if self._live:
            return Remove(guarded=False)
        return Remove() if token.is_expired(self._now_ms()) else Fail(STILL_LIVE)


def _odd_times(token: Token) -> str:
    """Return the fault in the times of a token; empty if a broker could have made them."""
    if token.issue_timestamp_ms < 0:
        return "it was issued before 1970"
    if token.max_timestamp_ms < token.issue_timestamp_ms:
        return "the maximum is before the issue"
    if token.expiry_timestamp_ms < token.issue_timestamp_ms:
        return "the expiry is before the issue"
    if token.expiry_timestamp_ms > token.max_timestamp_ms:
        return "the expiry is beyond the maximum"
    return ""
