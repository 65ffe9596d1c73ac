"""One secret key: what it makes of a token id, what it derives, and the name by which it may be spoken of.

The key is enough to make the HMAC of any token, so it is never shown. The key id is shown: it stands beside every token
that the key made, in the commands' tables and in the log. The id is cut from an expensive derivation with a salt of its
own. So it tells nothing about the HMACs, and an attacker who guesses keys cannot check a guess cheaply.

A key is used from any thread; nothing in it changes but the id, which is computed when it is first asked for.

Source: KIP-395 ("Encrypt-then-MAC"); RFC 8018 section 5.2 (PBKDF2); kafka.server.DelegationTokenManager.createHmac
"""

from __future__ import annotations

import hashlib
import hmac
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
