"""Keep a worker's ring of secret keys as its files are: a rotation needs no restart.

    keys = NodeKeys(SecretKeyFiles(settings), keyring, changed)
    await keys.refresh()         # every second
    keys.refresh_soon()          # at once, when a token needs a key that is not in the ring

A thread reads the files and computes the ids of new keys. Then the ring is replaced, and `changed` is called. If a file
cannot be used, the keys stay as they are, and each look tries again. The same reason is logged once.

Source: KIP-48, "Delegation Token Master Key Rotation" (which needs new brokers for it).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from kafka_dt.config import ConfigError, SecretKeyFiles
from kafka_dt.tokens import Keyring, SecretKey
from kafka_dt.tokens.secret_key import SHORT_CHARACTERS
from kafka_dt.tokens.sharing import SharedRun

_LOG = logging.getLogger(__name__)


class NodeKeys:
    """The keys of one worker.

    Args:
        files: where they come from.
        keyring: follows them.
        changed: called after the ring has changed.
    """

    def __init__(self, files: SecretKeyFiles, keyring: Keyring, changed: Callable[[], Awaitable[None]]) -> None:
        self._files = files
        self._keyring = keyring
        self._changed = changed
        self._looks = SharedRun(self._look)
        self._soon: asyncio.Task[None] | None = None
        self._problem = ""

    async def refresh(self) -> None:
        """Take over what the files hold now, or held later than this call; many callers share the work."""
        await self._looks.join()

    def refresh_soon(self) -> None:
        """Refresh without waiting for it; calls that come before it has happened are one."""
        if self._soon is None or self._soon.done():
            self._soon = asyncio.get_running_loop().create_task(self.refresh())

    async def _look(self) -> None:
        try:
            read = await asyncio.to_thread(self._read)
        except ConfigError as error:
            if str(error) != self._problem:
                self._problem = str(error)
                _LOG.error("The secret keys stay as they are, the changed ones cannot be used: %s", error)
            return
        self._problem = ""
        known = self._keyring.keys
        if read is None or not self._keyring.replace(read[0], read[1:]):
            return
        older = ", ".join(key.id for key in self._keyring.keys[1:]) or "none"
        _LOG.info("The secret keys have changed: %s is current; others: %s", self._keyring.current.id, older)
        warn_of_short(key for key in self._keyring.keys if key not in known)
        await self._changed()

    def _read(self) -> Sequence[SecretKey] | None:
        """Read the keys, the current one first; None if there is nothing new."""
        if not self._files.refresh() or self._files.keys is None:
            return None
        keys = [SecretKey(text) for text in (self._files.keys.current, *self._files.keys.previous)]
        for key in keys:
            _ = key.id  # takes milliseconds, and is kept
        return keys


def warn_of_short(keys: Iterable[SecretKey]) -> None:
    """Log how many of these keys are short, if any is."""
    if short := sum(key.is_short for key in keys):
        _LOG.warning("Secret keys with fewer than %d characters, which could be guessed: %d", SHORT_CHARACTERS, short)
