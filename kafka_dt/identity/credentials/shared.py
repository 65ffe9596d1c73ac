"""Share the SCRAM credentials of tokens among the workers of a node: one derivation a node, not one a worker.

    with node_memory(credentials=MEMORY_BYTES) as memory:     # in the supervisor; every worker gets the descriptor
    shared = SharedCredentials.shared(memory["credentials"])  # in a worker
    shared.keep(SHA_256, token, hmac, credential)
    shared.find(SHA_256, token_id, hmac, salt, iterations)    # in another worker

An entry belongs to a mechanism and a token id, and is found only with the HMAC and the salt that it was derived from:
a token with the same id and another HMAC is another token. The memory needs no lock. An entry ends with a digest of its
content, and an entry that is half written is none.

The memory has no name, is on no disk and in no core dump. A thief of an entry could play the server towards clients,
and, if he has recorded a login, could log in; so a worker overwrites the entries of a token when the token ends. The
memory holds the newest tokens: an entry takes the place of one whose token was issued earlier, never of a later one.

Source: RFC 5802 section 9 (what a stored key and a server key are worth to a thief).
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterator
from struct import Struct
from typing import Final

from kafka_dt.tokens import Token
from kafka_dt_protocol.sasl import ScramCredential, ScramMechanism

SLOTS: Final = 32_768
"""As many credentials: about 12,000 tokens with two mechanisms find a place."""
_PLACES: Final = 8
"""How many slots next to each other may hold the same entry."""
_DIGEST_BYTES: Final = 16
_CONTENT: Final = Struct(f">{_DIGEST_BYTES}s{_DIGEST_BYTES}sQ64s64s")
"""Digests of mechanism and id and of what the keys were derived from; when the token was issued; the keys."""
_SLOT_BYTES: Final = _CONTENT.size + _DIGEST_BYTES
_ROW_BYTES: Final = _PLACES * _SLOT_BYTES
MEMORY_BYTES: Final = SLOTS * _SLOT_BYTES
"""How much memory the workers share, in bytes; Linux provides what is used of it."""
_EMPTY: Final = bytes(_SLOT_BYTES)


class SharedCredentials:
    """The credentials that the workers of a node have derived.

    Args:
        memory: of `MEMORY_BYTES`, zeros at first, the same for all workers.
    """

    __slots__ = ("_memory",)

    def __init__(self, memory: bytearray | mmap.mmap) -> None:
        self._memory = memory

    @classmethod
    def shared(cls, descriptor: int) -> SharedCredentials:
        """Return the credentials in memory that is open as a file, the same for all workers."""
        return cls(mmap.mmap(descriptor, MEMORY_BYTES))

    def find(
        self, mechanism: ScramMechanism, token_id: str, hmac: bytes, salt: bytes, iterations: int
    ) -> ScramCredential | None:
        """Return the credential that was derived from an HMAC with a salt, if it is there."""
        entry = _name(mechanism, token_id) + _source(hmac, salt, iterations)
        for place in self._places(entry):
            slot = bytes(self._memory[place : place + _SLOT_BYTES])
            if slot.startswith(entry) and _is_whole(slot):
                _, _, _, stored_key, server_key = _CONTENT.unpack_from(slot)
                size = mechanism.hash_bytes
                return ScramCredential(salt, stored_key[:size], server_key[:size], iterations)
        return None

    def keep(self, mechanism: ScramMechanism, token: Token, hmac: bytes, credential: ScramCredential) -> None:
        """Enter a credential, unless only tokens that were issued later have its places."""
        name = _name(mechanism, token.token_id)
        source = _source(hmac, credential.salt, credential.iterations)
        issued_ms = max(0, token.issue_timestamp_ms)
        content = _CONTENT.pack(name, source, issued_ms, credential.stored_key, credential.server_key)
        ages = [_age_ms(slot, content) for slot in self._slots(name)]
        oldest_ms = min(ages)
        if oldest_ms <= issued_ms:
            place = _row(name) + ages.index(oldest_ms) * _SLOT_BYTES
            self._memory[place : place + _SLOT_BYTES] = content + _digest(content)

    def forget(self, mechanism: ScramMechanism, token_id: str) -> None:
        """Overwrite the entries of a token."""
        for place in self._places(_name(mechanism, token_id)):
            self._memory[place : place + _SLOT_BYTES] = _EMPTY

    def _places(self, beginning: bytes) -> Iterator[int]:
        """Find the slots that begin with a name, or with a name and a source; one search is faster than eight looks."""
        row = _row(beginning)
        place = self._memory.find(beginning, row, row + _ROW_BYTES)
        while place >= 0:
            if (place - row) % _SLOT_BYTES == 0:
                yield place
            place = self._memory.find(beginning, place + 1, row + _ROW_BYTES)

    def _slots(self, name: bytes) -> Iterator[bytes]:
        """Read a copy of the slots that may hold an entry."""
        row = _row(name)
        slots = bytes(self._memory[row : row + _ROW_BYTES])
        return (slots[start : start + _SLOT_BYTES] for start in range(0, _ROW_BYTES, _SLOT_BYTES))


def _name(mechanism: ScramMechanism, token_id: str) -> bytes:
    return _digest(f"{mechanism}\0{token_id}".encode("utf-8", "surrogatepass"))


def _source(hmac: bytes, salt: bytes, iterations: int) -> bytes:
    """Return a digest of what a credential is derived from; HMAC and salt have a fixed or an unambiguous length."""
    return _digest(iterations.to_bytes(4) + len(hmac).to_bytes(4) + hmac + salt)


def _row(name: bytes) -> int:
    """Return where in the memory the slots of an entry begin."""
    return int.from_bytes(name[:8]) % (SLOTS // _PLACES) * _ROW_BYTES


def _age_ms(slot: bytes, content: bytes) -> int:
    """Return when the token of a slot was issued; -2 for the same entry, -1 for one that is empty or half written."""
    if slot.startswith(content[: 2 * _DIGEST_BYTES]):
        return -2
    if not _is_whole(slot):
        return -1
    return int(_CONTENT.unpack_from(slot)[2])


def _is_whole(slot: bytes) -> bool:
    return slot[_CONTENT.size :] == _digest(slot[: _CONTENT.size])


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()
