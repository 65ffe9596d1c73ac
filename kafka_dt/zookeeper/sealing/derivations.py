"""Bytes derived from secret keys, which open and seal znodes: shared by the workers of a node, and made ahead.

    with node_memory(derivations=MEMORY_BYTES) as memory:     # in the supervisor; every worker gets the descriptor
    derivations = Derivations.shared(memory["derivations"])   # in a worker
    derived = derivations.derive(key, salt)

Every worker opens every sealed znode, and PBKDF2 takes four fifths of that time. So a worker that has sealed or opened
a znode leaves the derived bytes in shared memory, where the other workers find them. It needs no lock: a slot ends with
a digest of its content, and a worker that finds a slot half written derives by itself. The memory has no name and is on
no disk. Its content opens single znodes, and tells nothing about the secret keys. It holds as much as 100,000 tokens
need; then each new entry takes the place of another one, old or new.

The slots are in tables that are filled one after the other. An entry has a row in each of them, and goes into the first
row with a free slot. So few tokens take little memory; in one large table they would be all over it, and Linux provides
whole pages.

`DerivedAhead` makes salts, and the bytes derived from them, while the node is idle. They do not depend on the token, so
a create seals without waiting for half a millisecond of PBKDF2. A longer run of creates empties the stock, and goes on
as fast as PBKDF2 does.

Source: RFC 8018 section 5.2 (the salt is new for each znode) and section 4.1 (it need not be secret).
"""

from __future__ import annotations

import asyncio
import hashlib
import mmap
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from struct import Struct
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
_TABLES: Final = 8
_PLACES: Final = 8
"""How many slots a row has."""
_ROW_BYTES: Final = _PLACES * _SLOT_BYTES
_ROWS: Final = SLOTS // _TABLES // _PLACES
"""How many rows a table has; two bytes of a salt tell which one."""
_ROW_NUMBERS: Final = Struct(f">{_TABLES}H")
_EMPTY: Final = bytes(_SLOT_BYTES)
_READY_BYTES: Final = SALT_BYTES + DERIVED_BYTES
QUIET_S: Final = 0.1
"""How long nothing must have been taken before more is derived."""
AT_ONCE: Final = 8
"""How many are derived before the next look whether that disturbs other work."""


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
        """Return the stored bytes derived from a key with a salt; LookupError if they are not there."""
        name = _name(key, salt)
        for row in _rows(salt):
            slots = bytes(self._memory[row : row + _ROW_BYTES])
            place = slots.find(name)
            while place >= 0:
                slot = slots[place : place + _SLOT_BYTES]
                if place % _SLOT_BYTES == 0 and slot[_DERIVED.stop :] == _digest(slot[: _DERIVED.stop]):
                    return slot[_DERIVED]
                place = slots.find(name, place + 1)
            if slots.endswith(_EMPTY):
                break  # the tables behind are for entries that found this row full
        raise LookupError

    def derive(self, key: SecretKey, salt: bytes) -> bytes:
        """Return the bytes derived from a key with a salt, found or made."""
        try:
            return self.find(key, salt)
        except LookupError:
            derived = derive(key, salt)
        self.keep(key, salt, derived)
        return derived

    def keep(self, key: SecretKey, salt: bytes, derived: bytes) -> None:
        """Let the other workers find what was derived from a key with a salt."""
        content = _name(key, salt) + derived
        # Where no slot is free, one of all of them that is as random as the content makes room.
        places = (row + place for row in _rows(salt) for place in range(0, _ROW_BYTES, _SLOT_BYTES))
        free = (place for place in places if self._memory[place : place + _SLOT_BYTES] == _EMPTY)
        start = next(free, _rows(salt)[content[-1] % _TABLES] + content[-2] % _PLACES * _SLOT_BYTES)
        self._memory[start : start + _SLOT_BYTES] = content + _digest(content)


def _name(key: SecretKey, salt: bytes) -> bytes:
    return salt + bytes.fromhex(key.id)


def _rows(salt: bytes) -> Sequence[int]:
    """Return where the rows begin that may hold the bytes of a salt, one in each table."""
    numbers = _ROW_NUMBERS.unpack(salt)
    return [(table * _ROWS + number % _ROWS) * _ROW_BYTES for table, number in enumerate(numbers)]


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()


class DerivedAhead:
    """A stock of salts, each of which is given out once.

    Args:
        size: how many are kept ready; 0 = none are.
        derive: from a key and a salt to the keys of one znode, off the event loop.
        random_bytes: cryptographically strong.
        turn: a context in which a worker may do what can wait.
    """

    __slots__ = ("_derive", "_filling", "_key", "_random_bytes", "_ready", "_size", "_taken_s", "_turn")

    def __init__(
        self,
        size: int,
        derive: Callable[[SecretKey, bytes], Awaitable[bytes]],
        random_bytes: Callable[[int], bytes],
        turn: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        self._turn = turn
        self._size = size
        self._derive = derive
        self._random_bytes = random_bytes
        self._key: SecretKey | None = None
        self._ready = bytearray()
        """Salts, each with the bytes derived from it: as objects of Python they would take nearly twice the memory."""
        self._taken_s = 0.0
        self._filling: asyncio.Task[None] | None = None

    def take(self, key: SecretKey) -> tuple[bytes, bytes] | None:
        """Return a salt and the bytes derived from it, if there is one for this key, and begin to make more."""
        self._taken_s = asyncio.get_running_loop().time()
        self.fill(key)
        if not self._ready:
            return None
        ready = bytes(self._ready[-_READY_BYTES:])
        del self._ready[-_READY_BYTES:]
        return ready[:SALT_BYTES], ready[SALT_BYTES:]

    def fill(self, key: SecretKey) -> None:
        """Begin to fill the stock, as soon as that disturbs no other work."""
        if key is not self._key:
            self.close()
            self._key, self._filling = key, None
            self._ready.clear()
        if self._size and (self._filling is None or self._filling.done()):
            self._filling = asyncio.get_running_loop().create_task(self._fill(key))

    def close(self) -> None:
        """Make no more."""
        if self._filling is not None:
            self._filling.cancel()

    async def _fill(self, key: SecretKey) -> None:
        loop = asyncio.get_running_loop()
        while len(self._ready) < self._size * _READY_BYTES:
            busy_s = self._taken_s + QUIET_S - loop.time()
            if busy_s > 0:
                await asyncio.sleep(busy_s)
                continue
            salts = [self._random_bytes(SALT_BYTES) for _ in range(AT_ONCE)]
            async with self._turn():
                derived = await asyncio.gather(*(self._derive(key, salt) for salt in salts))
            self._ready += b"".join(map(bytes.__add__, salts, derived))
