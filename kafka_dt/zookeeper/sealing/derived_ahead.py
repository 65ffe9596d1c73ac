"""Make salts, and the bytes derived from them, while the node is idle: sealing takes them from stock.

    ahead = DerivedAhead(4096, derive, secrets.token_bytes)
    ahead.fill(key)
    ready = ahead.take(key)         # salt and derived bytes, or None: derive now

The derived bytes depend on the key and the salt, not on the token. So they can be made before the token, and a create
seals without waiting for half a millisecond of PBKDF2. A burst of creates has the processor for itself: the stock is
filled up again when nothing has been taken for a moment.

The stock belongs to one key. When the key changes, the stock of the old key cannot be used any more.

Limit: a longer run of creates empties the stock, and goes on as fast as PBKDF2 does.

Source: RFC 8018 section 4.1 (the salt is random and need not be secret).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from kafka_dt.zookeeper.sealing.sealed import SALT_BYTES

if TYPE_CHECKING:
    from kafka_dt.tokens.keyring import SecretKey

QUIET_S: Final = 0.1
"""How long nothing must have been taken before more is derived."""
AT_ONCE: Final = 8
"""How many are derived before the next look whether that disturbs other work."""


class DerivedAhead:
    """A stock of salts, each of which is given out once.

    Args:
        size: how many are kept ready; 0 = none are.
        derive: from a key and a salt to the keys of one znode, off the event loop.
        random_bytes: cryptographically strong.
    """

    __slots__ = ("_derive", "_filling", "_key", "_random_bytes", "_ready", "_size", "_taken_s")

    def __init__(
        self, size: int, derive: Callable[[SecretKey, bytes], Awaitable[bytes]], random_bytes: Callable[[int], bytes]
    ) -> None:
        self._size = size
        self._derive = derive
        self._random_bytes = random_bytes
        self._key: SecretKey | None = None
        self._ready: deque[tuple[bytes, bytes]] = deque()
        self._taken_s = 0.0
        self._filling: asyncio.Task[None] | None = None

    def take(self, key: SecretKey) -> tuple[bytes, bytes] | None:
        """Return a salt and the bytes derived from it, if there is one for this key, and begin to make more."""
        self._taken_s = asyncio.get_running_loop().time()
        self.fill(key)
        return self._ready.popleft() if self._ready else None

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
        while len(self._ready) < self._size:
            busy_s = self._taken_s + QUIET_S - loop.time()
            if busy_s > 0:
                await asyncio.sleep(busy_s)
                continue
            salts = [self._random_bytes(SALT_BYTES) for _ in range(AT_ONCE)]
            derived = await asyncio.gather(*(self._derive(key, salt) for salt in salts))
            self._ready.extend(zip(salts, derived, strict=True))
