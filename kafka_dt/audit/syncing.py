"""Sync a file beside the event loop, without a thread that needs the interpreter.

    syncing = Syncing(synced)           # on the event loop
    syncing.begin(descriptor)           # fdatasync(2); then `synced` is called
    syncing.close()

Linux has the work done by threads of its own (io_submit(2) with IOCB_CMD_FDSYNC, from 4.18 on). Where it refuses to,
because fs.aio-max-nr is reached, a filter of system calls forbids it or the file system has no such call, a thread of
this process syncs.

Source: https://github.com/mosquito/caio; fdatasync(2), io_setup(2).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from kafka_dt.audit.delivery import SinkFailed
from kafka_dt.blocking import in_own_thread

if TYPE_CHECKING:
    from caio.abstract import AbstractOperation as Operation
    from caio.linux_aio import Context

_LOG = logging.getLogger(__name__)

_AT_A_TIME: Final = 1


class Syncing:
    """Syncs files for one event loop, one at a time.

    Args:
        synced: called on the loop, later, with None when what was written to the file is durable, else with the error.
        by_system: whether to ask the system to do it beside all threads of this process.
    """

    def __init__(self, synced: Callable[[SinkFailed | None], None], *, by_system: bool = True) -> None:
        self._synced = synced
        self._loop = asyncio.get_running_loop()
        self._system = _System.ask() if by_system else None
        self._operation: Operation | None = None  # of the system, for the last file
        self._in_thread: asyncio.Task[None] | None = None
        if self._system is not None:
            self._loop.add_reader(self._system.context.fileno, self._system_has_news)

    def begin(self, descriptor: int) -> None:
        """Begin to sync a file; the one before must be synced.

        Raises:
            SinkFailed: it cannot be.
        """
        if not self._begun_by_system(descriptor):
            self._in_thread = self._loop.create_task(self._sync_in_thread(descriptor))

    def close(self) -> None:
        """End it; `synced` is not called any more."""
        if self._system is not None:
            self._loop.remove_reader(self._system.context.fileno)
        if self._in_thread is not None:
            self._in_thread.cancel()

    def _begun_by_system(self, descriptor: int) -> bool:
        """Let the system do it; return whether it takes the task."""
        if self._system is None:
            return False
        self._operation = self._system.sync_of(descriptor)
        try:
            return self._system.context.submit(self._operation) == 1
        except (ValueError, OverflowError):  # of caio: io_submit has refused it
            return False
        except SystemError as error:  # of caio, with the text of errno
            raise SinkFailed(str(error)) from error

    def _system_has_news(self) -> None:
        if self._system is None or self._operation is None:
            return
        with suppress(BlockingIOError):  # the system may tell again of what has been read
            self._system.context.poll()
        if not self._system.context.process_events(_AT_A_TIME):
            return
        try:
            self._operation.get_value()
        except SystemError as error:
            self._synced(SinkFailed(str(error)))
        else:
            self._synced(None)

    async def _sync_in_thread(self, descriptor: int) -> None:
        try:
            await in_own_thread(partial(os.fdatasync, descriptor), "audit files")
        except Exception as error:  # noqa: BLE001 - whatever it is: nothing is written while a batch is under way
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self._synced(SinkFailed(reason or type(error).__name__))
        else:
            self._synced(None)


@dataclass(frozen=True, slots=True)
class _System:
    """What the system gives to sync files."""

    context: Context
    """Where it tells of syncs."""
    sync_of: Callable[[int], Operation]
    """Makes the task to sync a file."""

    @classmethod
    def ask(cls) -> Self | None:
        """Ask for it; None if the system gives nothing."""
        from caio import linux_aio  # noqa: PLC0415 - only strict nodes need it

        if linux_aio is None:
            return None
        try:
            return cls(linux_aio.Context(_AT_A_TIME), linux_aio.Operation.fdsync)
        except SystemError as error:
            _LOG.info("Strict audit files are synced by threads, because the system refuses to do it: %s", error)
            return None
