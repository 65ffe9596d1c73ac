"""Share bytes derived from secret keys among the workers of a node: one derivation a znode, not one a worker.

    with node_memory(derivations=MEMORY_BYTES) as memory:     # in the supervisor; the workers inherit it
    derivations = Derivations.shared(memory["derivations"])   # in a worker
    derived = derivations.derive(key, salt)

Every worker opens every sealed znode, and PBKDF2 takes four fifths of that time. So a worker that has sealed or opened
a znode leaves the derived bytes in shared memory, where the other workers find them. The memory needs no lock: a slot
ends with a digest of its content, and a worker that finds a slot half written derives by itself.

The memory has no name and is on no disk. Its content opens single znodes, and tells nothing about the secret keys. It
holds as much as 100,000 tokens need; then the newest entries take the places of others.

Source: RFC 8018 section 5.2 (the salt is new for each znode, and so is what is derived).
"""

from __future__ import annotations

import hashlib
import mmap
from typing import TYPE_CHECKING, Final

from kafka_dt.zookeeper.sealing.sealed import DERIVED_BYTES, SALT_BYTES, derive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_dt.tokens.keyring import SecretKey

SLOTS: Final = 131_072
_KEY_ID_BYTES: Final = 8
_DIGEST_BYTES: Final = 8
_NAME: Final = slice(0, SALT_BYTES + _KEY_ID_BYTES)
_DERIVED: Final = slice(_NAME.stop, _NAME.stop + DERIVED_BYTES)
_SLOT_BYTES: Final = _DERIVED.stop + _DIGEST_BYTES
MEMORY_BYTES: Final = SLOTS * _SLOT_BYTES
"""How much memory the workers share, in bytes."""
_EMPTY: Final = bytes(_SLOT_BYTES)
_PLACES: Final = 8
"""In how many slots next to each other the same may stand."""


class Derivations:
    """Derives as `kafka_dt.zookeeper.sealing.sealed.derive` does, from any thread.

    Args:
        memory: of `MEMORY_BYTES`, zeros at first, the same for all workers.
    """

    __slots__ = ("_memory",)

    def __init__(self, memory: bytearray | mmap.mmap) -> None:
        self._memory = memory

    @classmethod
    def shared(cls, descriptor: int) -> Derivations:
        """Return the derivations in memory that is open as a file, the same for all workers."""
        return cls(mmap.mmap(descriptor, 0))

    def find(self, key: SecretKey, salt: bytes) -> bytes:
        """Return the stored bytes derived from a key with a salt.

        Raises:
            LookupError: no worker has derived it, or it had to make room.
        """
        name = _name(key, salt)
        for place in _places(salt):
            slot = bytes(self._memory[place])
            if slot[_NAME] == name and slot[_DERIVED.stop :] == _digest(slot[: _DERIVED.stop]):
                return slot[_DERIVED]
        raise LookupError

    def derive(self, key: SecretKey, salt: bytes) -> bytes:
        """Return the bytes derived from a key with a salt, found or made."""
        try:
            return self.find(key, salt)
        except LookupError:
            derived = derive(key, salt)
        self._keep(_name(key, salt) + derived, _places(salt))
        return derived

    def _keep(self, content: bytes, places: Sequence[slice]) -> None:
        free = next((place for place in places if self._memory[place] == _EMPTY), None)
        # Where none is free, one that is as random as the content makes room.
        self._memory[free or places[content[-1] % _PLACES]] = content + _digest(content)


def _name(key: SecretKey, salt: bytes) -> bytes:
    return salt + bytes.fromhex(key.id)


def _places(salt: bytes) -> Sequence[slice]:
    """Return the slots that may hold the bytes of a salt."""
    first = int.from_bytes(salt[:8])
    starts = ((first + number) % SLOTS * _SLOT_BYTES for number in range(_PLACES))
    return [slice(start, start + _SLOT_BYTES) for start in starts]


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()
