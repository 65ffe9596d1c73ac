"""What `kafka-dt keys` does with a token znode: seal it, unseal it, seal it with the current key, verify it.

The JSON inside stays byte for byte what it was, so sealing and unsealing give back what a broker wrote.

Source: KIP-395, "Future work"; kafka.server.DelegationTokenManager (how a broker makes the times of a token).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_dt.bulk.decisions import Decision, Fail, Leave, Write
from kafka_dt.bulk.opening import DerivedForBatch, OpenedToken, TokenTask
from kafka_dt.zookeeper.sealing.sealed import SALT_BYTES, seal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kafka_dt.bulk.decisions import Found
    from kafka_dt.tokens import Keyring, Token


class SealingTask(TokenTask):
    """Seals what `decide` writes, with the current key.

    Nothing is announced: the tokens stay the same, and a broker could not read them.

    Args:
        keyring: of the cluster.
        random_bytes: cryptographically strong, for salts.
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
    """Seals again, with the current key, znodes that are sealed with an older one; plain znodes stay plain.

    Args:
        keyring: of the cluster; it still holds the older keys.
        random_bytes: cryptographically strong, for salts.
        key_id: which key is to be needed no more; None = none but the current one.
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
        odd = odd_times(opened.token)
        return Fail(f"odd times: {odd}") if odd else Leave()


def odd_times(token: Token) -> str:
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
