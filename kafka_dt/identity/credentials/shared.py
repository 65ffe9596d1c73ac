"""Share the SCRAM credentials of tokens among the workers of a node: one derivation a node, not one a worker.

    with node_memory(credentials=MEMORY_BYTES) as memory:     # in the supervisor; every worker gets the descriptor
    shared = SharedCredentials.shared(memory["credentials"])  # in a worker
    shared.keep(SHA_256, token, hmac, credential)
    shared.find(SHA_256, token_id, hmac, salt, iterations)    # in another worker
    shared.forget(token_id)                                   # in each

An entry belongs to a token id, and is found only with the mechanism, the HMAC and the salt that it was derived with: a
token with the same id and another HMAC is another token. The memory needs no lock. An entry ends with a digest of its
content, and an entry that is half written is none.

The memory has no name, is on no disk and in no core dump. A thief of an entry could play the server towards clients,
and, if he has recorded a login, could log in; so a worker overwrites the entries of a token when the token ends. The
memory holds the newest tokens: an entry takes the place of one whose token was issued earlier, never of a later one.
Limit: the entries of a token that ends while no worker of the node lives stay until newer ones take their places or the
node stops.

The slots are in tables. An entry has a row in each of them; a further table is used only when the rows of an entry in
the others are full. So few tokens take little memory. Also a look takes memory, a page, so unused tables are not looked
at.

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
_TABLES: Final = 8
_PLACES: Final = 8
"""How many slots a row has."""
_ROWS: Final = SLOTS // _TABLES // _PLACES
"""How many rows a table has; two bytes of a name tell which one."""
_ROW_NUMBERS: Final = Struct(f">{_TABLES}H")
_DIGEST_BYTES: Final = 16
_CONTENT: Final = Struct(f">{_DIGEST_BYTES}s{_DIGEST_BYTES}sQ64s64s")
"""Digests of the id and of what the keys were derived from; when the token was issued; the keys."""
_SLOT_BYTES: Final = _CONTENT.size + _DIGEST_BYTES
_ROW_BYTES: Final = _PLACES * _SLOT_BYTES
_IN_USE: Final = SLOTS * _SLOT_BYTES
"""Where a byte for each table begins, which says whether the table is in use; the first one always is."""
MEMORY_BYTES: Final = _IN_USE + _TABLES
"""How much memory the workers share, in bytes; Linux provides what is used of it."""
_EMPTY: Final = bytes(_SLOT_BYTES)
_SAME_MS: Final = -2
_FREE_MS: Final = -1


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
        entry = _name(token_id) + _source(mechanism, hmac, salt, iterations)
        for place in self._places(entry):
            slot = bytes(self._memory[place : place + _SLOT_BYTES])
            if slot.startswith(entry) and _is_whole(slot):
                _, _, _, stored_key, server_key = _CONTENT.unpack_from(slot)
                size = mechanism.hash_bytes
                return ScramCredential(salt, stored_key[:size], server_key[:size], iterations)
        return None

    def keep(self, mechanism: ScramMechanism, token: Token, hmac: bytes, credential: ScramCredential) -> None:
        """Enter a credential, unless only tokens that were issued later have its places."""
        name = _name(token.token_id)
        source = _source(mechanism, hmac, credential.salt, credential.iterations)
        issued_ms = max(0, token.issue_timestamp_ms)
        content = _CONTENT.pack(name, source, issued_ms, credential.stored_key, credential.server_key)
        rows = self._rows(name)
        oldest_ms, place = min(age for row in rows for age in self._ages(row, content))
        if oldest_ms >= 0 and len(rows) < _TABLES:
            self._memory[_IN_USE + len(rows)] = 1
            oldest_ms, place = _FREE_MS, self._rows(name)[-1]
        if oldest_ms <= issued_ms:
            self._memory[place : place + _SLOT_BYTES] = content + _digest(content)

    def forget(self, token_id: str) -> None:
        """Overwrite the entries of a token, of all mechanisms."""
        for place in self._places(_name(token_id)):
            self._memory[place : place + _SLOT_BYTES] = _EMPTY

    def _places(self, beginning: bytes) -> Iterator[int]:
        """Find the slots that begin with a name, or with a name and a source; one search is faster than eight looks."""
        for row in self._rows(beginning):
            place = self._memory.find(beginning, row, row + _ROW_BYTES)
            while place >= 0:
                if (place - row) % _SLOT_BYTES == 0:
                    yield place
                place = self._memory.find(beginning, place + 1, row + _ROW_BYTES)

    def _rows(self, beginning: bytes) -> list[int]:
        """Find where the rows begin that may hold an entry, one in each table that is in use."""
        numbers = _ROW_NUMBERS.unpack_from(beginning)
        in_use = 1 + sum(self._memory[_IN_USE + 1 :])
        return [(table * _ROWS + numbers[table] % _ROWS) * _ROW_BYTES for table in range(in_use)]

    def _ages(self, row: int, content: bytes) -> Iterator[tuple[int, int]]:
        """Tell of each slot of a row when its token was issued, as `_age_ms` does, and where it is."""
        slots = bytes(self._memory[row : row + _ROW_BYTES])
        for start in range(0, _ROW_BYTES, _SLOT_BYTES):
            yield _age_ms(slots[start : start + _SLOT_BYTES], content), row + start


def _name(token_id: str) -> bytes:
    return _digest(token_id.encode("utf-8", "surrogatepass"))


def _source(mechanism: ScramMechanism, hmac: bytes, salt: bytes, iterations: int) -> bytes:
    """Return a digest of what a credential is derived from; each part has a fixed or an unambiguous length."""
    return _digest(b"%s\0%d %d %s%s" % (mechanism.encode(), iterations, len(hmac), hmac, salt))


def _age_ms(slot: bytes, content: bytes) -> int:
    """Return when the token of a slot was issued; a negative number if the slot holds the same entry or no entry."""
    if slot.startswith(content[: 2 * _DIGEST_BYTES]):
        return _SAME_MS
    if slot == _EMPTY or not _is_whole(slot):
        return _FREE_MS
    return int(_CONTENT.unpack_from(slot)[2])


def _is_whole(slot: bytes) -> bool:
    return slot[_CONTENT.size :] == _digest(slot[: _CONTENT.size])


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()
