"""The numbers of a node, in memory that its processes share.

    memory = MetricsMemory.shared(descriptor, workers)
    counts = memory.counts(number)                      # in a worker; supervisor: number = workers
    memory.publish(number, gauges)
    memory.enter(number, WorkerPhase.READY)             # in the supervisor
    memory.totals(), memory.phase(number), memory.gauges(number)

Each process counts in a row of its own, so there is no lock, and sums never go back when a worker is killed: its
successor counts on in the same row. Gauges are what one process is now: they stand in a slot beside the row, with a
checksum, and the supervisor empties the slot when the process has ended.

Limit: 64 KiB of gauges for a worker: hundreds of listeners.

Source: docs/decisions/0029-numbers-of-the-workers.md.
"""

from __future__ import annotations

import logging
import mmap
import struct
import zlib
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, Self

from kafka_dt.metrics.counts import Counts
from kafka_dt.metrics.gauges import Gauges

_LOG = logging.getLogger(__name__)

METRICS_MEMORY: Final = "metrics"
"""What the processes of a node call it."""
_WORD_BYTES: Final = 8
_DRAINING: Final = 0
"""The first number of all: whether the node is about to stop."""
_PHASE: Final = 0
"""The first number of a row."""
_SLOT: Final = struct.Struct("=II")
"""The length and the checksum of the gauges in a slot."""
_SLOT_BYTES: Final = 64 * 1024
_LOOKS: Final = 3
"""How often a slot is read whose worker is writing to it."""


class WorkerPhase(IntEnum):
    """What a worker is doing, as the supervisor sees it."""

    NONE = 0
    """There is no process."""
    STARTING = 1
    READY = 2


class MetricsMemory:
    """The numbers of a node with so many workers."""

    def __init__(self, memory: bytearray | mmap.mmap, workers: int) -> None:
        self.workers: Final = workers
        self._memory = memory
        self._words = memoryview(memory)[: _WORD_BYTES * _words(workers)].cast("d")

    @staticmethod
    def size(workers: int) -> int:
        """Say how many bytes it takes."""
        return _WORD_BYTES * _words(workers) + workers * _SLOT_BYTES

    @classmethod
    def shared(cls, descriptor: int, workers: int) -> Self:
        """Open the memory that an open file holds, the same file for all processes."""
        return cls(mmap.mmap(descriptor, 0), workers)

    @classmethod
    def alone(cls, workers: int) -> Self:
        """Make a memory of this process alone."""
        return cls(bytearray(cls.size(workers)), workers)

    def counts(self, number: int) -> Counts:
        """Give the counters of a worker, or with the number of workers those of the supervisor."""
        first = _row(number) + 1
        return Counts.over(self._words[first : first + Counts.cells()])

    def totals(self) -> Sequence[float]:
        """Return the sums of all rows: the numbers of the node, in the order of the table."""
        rows = (self._words[_row(number) + 1 : _row(number + 1)].tolist() for number in range(self.workers + 1))
        return [sum(column) for column in zip(*rows, strict=True)]

    @property
    def draining(self) -> bool:
        """Whether the node is about to stop."""
        return bool(self._words[_DRAINING])

    def drain(self) -> None:
        """Say that the node is about to stop."""
        self._words[_DRAINING] = 1

    def phase(self, number: int) -> WorkerPhase:
        """Return what a worker is doing."""
        return WorkerPhase(int(self._words[_row(number) + _PHASE]))

    def enter(self, number: int, phase: WorkerPhase) -> None:
        """Say what a worker is doing; the gauges of one that has ended are forgotten."""
        if phase is WorkerPhase.NONE:
            _SLOT.pack_into(self._memory, self._slot(number), 0, 0)
        self._words[_row(number) + _PHASE] = phase

    def publish(self, number: int, gauges: Gauges) -> None:
        """Replace the gauges of a worker."""
        text, slot = gauges.encode(), self._slot(number)
        if len(text) > _SLOT_BYTES - _SLOT.size:
            _LOG.error("The gauges of this worker are not shown: they take %d bytes", len(text))
            return
        _SLOT.pack_into(self._memory, slot, len(text), zlib.crc32(text))
        self._memory[slot + _SLOT.size : slot + _SLOT.size + len(text)] = text

    def gauges(self, number: int) -> Gauges | None:
        """Return the gauges of a worker; None before the first ones, and while they are being written."""
        slot = self._slot(number)
        for _ in range(_LOOKS):
            length, checksum = _SLOT.unpack_from(self._memory, slot)
            text = bytes(self._memory[slot + _SLOT.size : slot + _SLOT.size + min(length, _SLOT_BYTES - _SLOT.size)])
            if text and zlib.crc32(text) == checksum:
                return Gauges.decode(text)
        return None

    def _slot(self, number: int) -> int:
        return _WORD_BYTES * _words(self.workers) + number * _SLOT_BYTES


def _words(workers: int) -> int:
    """Count the numbers: the first one, and the rows of the workers and of the supervisor."""
    return _row(workers + 1)


def _row(number: int) -> int:
    return 1 + number * (1 + Counts.cells())
