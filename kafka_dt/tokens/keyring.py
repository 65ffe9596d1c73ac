"""The secret that makes tokens: HMAC(secret key, token id).

Whoever knows the key can make the HMAC of any token, so all nodes and brokers of a cluster must have the same one, and
it is never shown. `HmacSHA512` is what brokers use; `HmacSHA1` is the text of KIP-48. The HMAC of an id never
changes, so it is computed once, when the token enters the cache (about a microsecond).

Source: kafka.server.DelegationTokenManager.createHmac; KIP-48 "Token acquisition"; RFC 2104
"""

from __future__ import annotations

import hashlib
import hmac
from enum import Enum


class HmacAlgorithm(Enum):
    """The algorithms of `kafka.dt.token.hmac.algorithm`, by their Java names."""

    HMAC_SHA512 = "HmacSHA512"
    HMAC_SHA256 = "HmacSHA256"
    HMAC_SHA1 = "HmacSHA1"

    @property
    def hash_name(self) -> str:
        """The name of the hash function in hashlib."""
        return self.value.removeprefix("Hmac").lower()


class Keyring:
    """The secret key and its algorithm; its repr shows only the second.

    Args:
        secret_key: the text of `delegation.token.secret.key`, used as UTF-8.
        algorithm: how the HMAC is computed.

    Raises:
        ValueError: the key is empty; a server without a key has no keyring, and no tokens.
    """

    __slots__ = ("_algorithm", "_hash_name", "_key")

    def __init__(self, secret_key: str, algorithm: HmacAlgorithm = HmacAlgorithm.HMAC_SHA512) -> None:
        if not secret_key:
            raise ValueError("the secret key of delegation tokens is empty")
        self._key = secret_key.encode()
        self._algorithm = algorithm
        self._hash_name = algorithm.hash_name

    def __repr__(self) -> str:
        return f"Keyring({self._algorithm.value})"

    def hmac(self, token_id: str) -> bytes:
        """Return the raw HMAC of `token_id`, as long as the hash: 64, 32 or 20 bytes."""
        # An id with half a surrogate pair cannot be UTF-8; a broker puts "?" there, and so an odd znode does no harm.
        return hmac.digest(self._key, token_id.encode(errors="replace"), self._hash_name)

    @property
    def hmac_bytes(self) -> int:
        """The length of every HMAC of this keyring; anything else matches no token."""
        return hashlib.new(self._hash_name, usedforsecurity=False).digest_size
