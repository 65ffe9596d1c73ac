"""What `kafka-dt keys` does with a token znode: seal it, unseal it, seal it with the current key, verify it.

The JSON inside stays byte for byte what it was, so sealing and unsealing give back what a broker wrote.

Source: KIP-395, "Future work"; kafka.server.DelegationTokenManager (how a broker makes the times of a token).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_dt.bulk.decisions import Decision, Fail, Leave, Write
from kafka_dt.bulk.opening import Opener
from kafka_dt.zookeeper.sealing import SALT_BYTES, seal

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_dt.bulk.opening import OpenedToken
    from kafka_dt.tokens import Keyring, Token


class _Sealing:
    """What writes sealed znodes. It is not announced: the token is the same, and a broker could not read it."""

    announces: Final = False

    def __init__(self, keyring: Keyring, random_bytes: Callable[[int], bytes]) -> None:
        self._opener = Opener(keyring)
        self._current = keyring.current
        self._random_bytes = random_bytes

    def _sealed(self, opened: OpenedToken) -> Write:
        return Write(seal(self._current, opened.plaintext, self._random_bytes(SALT_BYTES)))


class Seal(_Sealing):
    """Seals what is plain, and seals again what is sealed with an older key.

    Args:
        keyring: of the cluster.
        random_bytes: cryptographically strong, for salts.
    """

    def __call__(self, token_id: str, data: bytes) -> Decision:
        """Decide about one znode."""
        opened = self._opener.open(token_id, data)
        return Leave() if opened.sealed_by == self._current else self._sealed(opened)


class Reseal(_Sealing):
    """Seals again, with the current key, what is sealed with a certain one; plain znodes stay plain.

    Args:
        keyring: of the cluster; it still holds the key.
        random_bytes: cryptographically strong, for salts.
        key_id: which key is to be needed no more.
    """

    def __init__(self, keyring: Keyring, random_bytes: Callable[[int], bytes], key_id: str) -> None:
        super().__init__(keyring, random_bytes)
        self._key_id = key_id

    def __call__(self, token_id: str, data: bytes) -> Decision:
        """Decide about one znode."""
        opened = self._opener.open(token_id, data)
        if opened.sealed_by is None or opened.sealed_by.id != self._key_id or opened.sealed_by == self._current:
            return Leave()
        return self._sealed(opened)


class Unseal:
    """Makes sealed znodes plain, and tells brokers, which can read them from now on.

    Args:
        keyring: of the cluster.
    """

    announces: Final = True

    def __init__(self, keyring: Keyring) -> None:
        self._opener = Opener(keyring)

    def __call__(self, token_id: str, data: bytes) -> Decision:
        """Decide about one znode."""
        opened = self._opener.open(token_id, data)
        return Leave() if opened.sealed_by is None else Write(opened.plaintext)


class Verify:
    """Checks MAC, JSON, name, key and times of each znode, and changes nothing.

    Args:
        keyring: of the cluster.
    """

    announces: Final = False

    def __init__(self, keyring: Keyring) -> None:
        self._opener = Opener(keyring)

    def __call__(self, token_id: str, data: bytes) -> Decision:
        """Decide about one znode."""
        odd = odd_times(self._opener.open(token_id, data).token)
        return Fail(f"odd times: {odd}") if odd else Leave()


def odd_times(token: Token) -> str:
    """Say what is odd about the times of a token; empty if a broker would make them like that."""
    if token.issue_timestamp_ms < 0:
        return "it was issued before 1970"
    if token.max_timestamp_ms < token.issue_timestamp_ms:
        return "the maximum is before the issue"
    if token.expiry_timestamp_ms < token.issue_timestamp_ms:
        return "the expiry is before the issue"
    if token.expiry_timestamp_ms > token.max_timestamp_ms:
        return "the expiry is beyond the maximum"
    return ""
