"""Sync a file beside the event loop, without a thread that needs the interpreter.

    syncing = Syncing()                 # on the event loop
    await syncing.sync(descriptor)      # fdatasync(2)
    syncing.close()

Linux has the work done by threads of its own (io_submit(2) with IOCB_CMD_FDSYNC, from 4.18 on). Where it refuses to,
because fs.aio-max-nr is reached, a filter of system calls forbids it or the file system has no such call, a thread of
this process syncs.

Source: https://github.com/mosquito/caio; fdatasync(2), io_setup(2).
"""

from __future__ import annotations

import logging
import os
from functools import partial
from typing import TYPE_CHECKING, Final

from kafka_dt.audit.blocking import in_own_thread
from kafka_dt.audit.delivery import SinkFailed

if TYPE_CHECKING:
    from caio.linux_aio_asyncio import AsyncioContext

_LOG = logging.getLogger(__name__)

_AT_A_TIME: Final = 1


class Syncing:
    """Syncs files for one event loop, one at a time.

    Args:
        by_system: whether to ask the system to do it beside all threads of this process.
    """

    def __init__(self, *, by_system: bool = True) -> None:
        self._context = _context() if by_system else None

    async def sync(self, descriptor: int) -> None:
        """Wait until what was written to a file is durable.

        Raises:
            SinkFailed: it is not.
        """
        if not await self._synced_by_system(descriptor):
            try:
                await in_own_thread(partial(os.fdatasync, descriptor))
            except OSError as error:
                raise SinkFailed(error.strerror or type(error).__name__) from error

    async def _synced_by_system(self, descriptor: int) -> bool:
        """Let the system do it; return whether it takes the task."""
        if self._context is None:
            return False
        try:
            await self._context.fdsync(descriptor)
        except (ValueError, OverflowError):  # of caio: io_submit has refused it
            return False
        except SystemError as error:  # of caio, with the text of errno
            raise SinkFailed(str(error)) from error
        return True

    def close(self) -> None:
        """End it."""
        if self._context is not None:
            self._context.close()  # type: ignore[no-untyped-call]


def _context() -> AsyncioContext | None:
    """Ask the system for a place where it tells of syncs; None if it gives none."""
    from caio import linux_aio_asyncio  # noqa: PLC0415 - only strict nodes need it

    if linux_aio_asyncio is None:
        return None
    try:
        return linux_aio_asyncio.AsyncioContext(_AT_A_TIME)  # type: ignore[no-untyped-call]
    except SystemError as error:
        _LOG.info("Strict audit files are synced by threads, because the system refuses to do it: %s", error)
        return None
