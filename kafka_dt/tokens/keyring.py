"""The secret keys of a node: the current one makes tokens, and the tokens of all of them are accepted.

    keyring = Keyring(current, algorithm, previous=[older, oldest])
    token_key = keyring.current                     # makes a token: its id is written beside it
    keyring.hmacs(token_id, key_id)                 # what its holder may have

A token says which key made it. One that a broker has made or rewritten says nothing, and then may be of any key of the
ring; that of the oldest is shown, because brokers get a new key last. The oldest is the last of the previous keys:
while a rotation is prepared they begin with the key to come, and the current one is among them once more. `replace`
changes the ring while the node runs; `keys rotate` sees that all nodes accept a key before one makes tokens with it.

A key is never shown. Its id is: it is cut from an expensive derivation with a salt of its own. So it tells nothing
about HMACs, and a guess of the key cannot be checked cheaply. The ring is for one event loop, keys for any thread.

Source: kafka.server.DelegationTokenManager.createHmac; KIP-48 "Delegation Token Master Key"; KIP-395
("Encrypt-then-MAC"); RFC 8018 section 5.2 (PBKDF2)
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final

from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

ID_SALT: Final = b"kafka-dt key id"
ID_ITERATIONS: Final = 10_000
ID_BYTES: Final = 8
SHORT_CHARACTERS: Final = 32
"""A key with fewer characters may be guessed; Kafka takes it, and so do we, with a warning."""


class HmacAlgorithm(Enum):
    """The algorithms of `kafka.dt.token.hmac.algorithm`, by their Java names."""

    HMAC_SHA512 = "HmacSHA512"
    HMAC_SHA256 = "HmacSHA256"
    HMAC_SHA1 = "HmacSHA1"

    hash_name: str
    """The name of the hash function in hashlib."""

    def __init__(self, java_name: str) -> None:
        self.hash_name = java_name.removeprefix("Hmac").lower()

    @property
    def hmac_bytes(self) -> int:
        """The length of an HMAC."""
        return hashlib.new(self.hash_name, usedforsecurity=False).digest_size


class SecretKey:
    """A secret key; equal if the text is; its repr shows the id.

    Args:
        secret: the text of `delegation.token.secret.key`, used as UTF-8.

    Raises:
        ValueError: the key is empty; a server without a key has no tokens.
    """

    __slots__ = ("_id", "_is_short", "_secret")

    def __init__(self, secret: str) -> None:
        if not secret:
            raise ValueError("the secret key of delegation tokens is empty")
        self._secret = secret.encode()
        self._is_short = len(secret) < SHORT_CHARACTERS
        self._id: str | None = None

    def __repr__(self) -> str:
        return f"SecretKey({self.id})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SecretKey):
            return NotImplemented
        return hmac.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        return hash(self._secret)

    @property
    def id(self) -> str:
        """16 hex characters that reveal nothing of the key; the first use takes some milliseconds."""
        if self._id is None:
            self._id = self.derive(ID_SALT, ID_ITERATIONS, ID_BYTES).hex()
        return self._id

    @property
    def is_short(self) -> bool:
        """Whether the key has fewer than 32 characters."""
        return self._is_short

    def hmac(self, token_id: str, algorithm: HmacAlgorithm = HmacAlgorithm.HMAC_SHA512) -> bytes:
        """Return the raw HMAC of `token_id`, as long as the hash: 64, 32 or 20 bytes."""
        # An id with half a surrogate pair cannot be UTF-8; a broker puts "?" there, and so an odd znode does no harm.
        return hmac.digest(self._secret, token_id.encode(errors="replace"), algorithm.hash_name)

    def derive(self, salt: bytes, iterations: int, length: int) -> bytes:
        """Return `length` bytes of PBKDF2-HMAC-SHA512; a thread that computes them does not hold up the others."""
        return PBKDF2HMAC(SHA512(), length, salt, iterations).derive(self._secret)


class Keyring:
    """The keys and the algorithm; its repr shows only the second.

    Args:
        current: makes the new tokens; a text is made a key.
        algorithm: how HMACs are computed, the same for all keys.
        previous: the others, newest first; one that is there twice counts once, where it is first.

    Raises:
        ValueError: a key is empty; a server without a key has no keyring, and no tokens.
    """

    __slots__ = ("_algorithm", "_by_id", "_keys", "_listeners", "_oldest_first")

    def __init__(
        self,
        current: SecretKey | str,
        algorithm: HmacAlgorithm = HmacAlgorithm.HMAC_SHA512,
        previous: Sequence[SecretKey | str] = (),
    ) -> None:
        self._algorithm = algorithm
        keys = _made(current, previous)
        self._keys = tuple(dict.fromkeys(keys))
        self._oldest_first = tuple(dict.fromkeys(reversed(keys)))
        self._by_id: Mapping[str, SecretKey] = {}
        self._listeners: tuple[Callable[[], None], ...] = ()

    def __repr__(self) -> str:
        return f"Keyring({self._algorithm.value})"

    @property
    def algorithm(self) -> HmacAlgorithm:
        """How HMACs are computed."""
        return self._algorithm

    @property
    def current(self) -> SecretKey:
        """The key that makes new tokens."""
        return self._keys[0]

    @property
    def keys(self) -> tuple[SecretKey, ...]:
        """All keys, the current one first, then from newest to oldest."""
        return self._keys

    @property
    def oldest(self) -> SecretKey:
        """The key that a token is taken to be of which does not say its key."""
        return self._oldest_first[0]

    @property
    def hmac_bytes(self) -> int:
        """The length of every HMAC of this keyring; anything else matches no token."""
        return self._algorithm.hmac_bytes

    def get(self, key_id: str) -> SecretKey | None:
        """Return the key with that id; None if it is not in the ring."""
        if not self._by_id:
            self._by_id = {key.id: key for key in self._keys}
        return self._by_id.get(key_id)

    def hmacs(self, token_id: str, key_id: str | None) -> tuple[bytes, ...]:
        """Return every HMAC by which the holder of a token may be known, the one to be shown first.

        Args:
            token_id: of the token.
            key_id: of the key that made it; None if that is not known, then there is an HMAC of each key.

        Returns:
            Raw HMACs, all different; none if the key is not in the ring.
        """
        if key_id is None:
            if len(self._keys) == 1:
                return (self.current.hmac(token_id, self._algorithm),)
            return tuple(key.hmac(token_id, self._algorithm) for key in self._oldest_first)
        key = self.get(key_id)
        return () if key is None else (key.hmac(token_id, self._algorithm),)

    def replace(self, current: SecretKey | str, previous: Sequence[SecretKey | str] = ()) -> bool:
        """Change the keys, and call the listeners if that makes a difference.

        Returns:
            Whether there is another current key, another key, one less, or another order.

        Raises:
            ValueError: a key is empty; nothing has changed.
        """
        known = {key: key for key in self._keys}
        # A key that stays remains the same object, so that its id is not computed again.
        made = [known.get(key, key) for key in _made(current, previous)]
        keys, oldest_first = tuple(dict.fromkeys(made)), tuple(dict.fromkeys(reversed(made)))
        if (keys, oldest_first) == (self._keys, self._oldest_first):
            return False
        self._keys, self._oldest_first = keys, oldest_first
        self._by_id = {}
        for listener in self._listeners:
            listener()
        return True

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every change, in the order in which they were added; it must not raise."""
        self._listeners = (*self._listeners, listener)


def _made(current: SecretKey | str, previous: Sequence[SecretKey | str]) -> list[SecretKey]:
    return [key if isinstance(key, SecretKey) else SecretKey(key) for key in (current, *previous)]
