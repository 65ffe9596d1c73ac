"""The sink of JSON-lines files: written, rolled by size and age, renamed when they are complete.

    audit-<node>-<worker>-20261121T174416Z-0.jsonl.open      being written
    audit-<node>-<worker>-20261121T174416Z-0.jsonl           complete; never written to again

A reader takes what ends in `.jsonl` and never sees half a file or half a line. A file that a crash has left open is
finished by the next start of its node: cut after its last whole line and renamed. The writer holds a lock on the file
(flock), so that one of several nodes in a folder does not finish the files of another that lives. A file that could
not be completed, because its folder was away for a moment, is finished as soon as it can be.

What was written survives a crash of the process at once, and one of the machine after `SYNC_SECONDS`. A line is written
whole or not at all: what a full disk cuts off is taken back.

Limit: over NFS the lock is only as good as its server's.

Source: Kafka's log segments (`log.segment.bytes`, `log.roll.ms`, `log.retention.ms`) for the settings.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kafka_dt.audit.delivery import SinkFailed
from kafka_dt.audit.line_file import OPEN, LineFile, finish

SYNC_SECONDS: Final = 1.0
"""How long what was written may stay in the system's memory alone."""
_SUFFIX: Final = ".jsonl"


@dataclass(frozen=True, slots=True)
class FileLimits:
    """When a file is complete, and how long it stays."""

    file_bytes: int = 64 * 1024 * 1024
    """A file that would grow beyond it is complete; only a batch that is larger by itself goes over it."""
    roll_ms: int = 300_000
    """A file that is older is complete."""
    retention_ms: int = -1
    """Complete files of this node that are older are removed; negative keeps them."""


class EventFiles:
    """A `Sink` that writes files.

    Args:
        directory: where to; it is there.
        node: the name of the node, of letters, digits, `.`, `_` and `-`.
        worker: which worker of the node writes.
        limits: when a file is complete.
        now_ms: the wall clock, milliseconds since the epoch.
        monotonic: a clock in seconds.
    """

    def __init__(
        self,
        directory: Path,
        node: str,
        worker: int,
        limits: FileLimits,
        *,
        now_ms: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory
        self._node = node
        self._worker = worker
        self._limits = limits
        self._now_ms = now_ms
        self._monotonic = monotonic
        self._file: LineFile | None = None
        self._left_open = False

    @property
    def name(self) -> str:
        """What the log calls it."""
        return str(self._directory)

    def open(self) -> None:
        """Finish what a crash of this node has left open."""
        self._left_open = True
        with _named_failures():
            self._finish_left()
            self._remove_old()

    def write(self, lines: Sequence[bytes]) -> None:
        """Write lines; all of them or, with SinkFailed, none."""
        data = b"".join(lines)
        with _named_failures():
            if self._file is not None and self._file.size + len(data) > self._limits.file_bytes:
                self._complete()
            try:
                self._append(data)
            except OSError:
                with suppress(OSError):
                    self._remove_old()  # if the disk is full, there is no other time for it
                raise

    def tend(self) -> float | None:
        """Sync and roll what is due; gives the seconds until that is so again."""
        with _named_failures():
            self._finish_left()
            if self._file is None:
                return None
            now = self._monotonic()
            roll_due = self._file.begun + self._limits.roll_ms / 1000
            if now >= roll_due:
                self._complete()
                return None
            if self._file.unsynced_since is not None and now - self._file.unsynced_since >= SYNC_SECONDS:
                self._file.sync()
            if self._file.unsynced_since is not None:
                return min(roll_due, self._file.unsynced_since + SYNC_SECONDS) - now
            return roll_due - now

    def close(self) -> None:
        """Complete the file that is being written."""
        with _named_failures():
            if self._file is not None:
                self._complete()
            self._finish_left()

    def _append(self, data: bytes) -> None:
        if self._file is None:
            self._file = LineFile.create(self._paths(), self._monotonic())
        try:
            self._file.append(data, self._monotonic())
        except OSError:
            self._take_back(self._file)
            raise

    def _complete(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.complete()
            except OSError:
                self._left_open = True
                raise
            self._remove_old()

    def _take_back(self, file: LineFile) -> None:
        """Cut off what was written of a batch; where that fails too, it is done when the file is finished."""
        try:
            file.cut()
        except OSError:
            self._file = None
            self._left_open = True
            file.close()

    def _finish_left(self) -> None:
        """Finish what a crash of this node, or a failure, has left open."""
        if self._left_open:
            for path in self._own(OPEN):
                finish(path)
            self._left_open = False

    def _paths(self) -> Iterator[Path]:
        started = datetime.fromtimestamp(self._now_ms() / 1000, UTC)
        number = 0
        while True:
            yield self._directory / f"audit-{self._node}-{self._worker}-{started:%Y%m%dT%H%M%SZ}-{number}{_SUFFIX}"
            number += 1

    def _own(self, ending: str = "") -> list[Path]:
        """Give the files of this node, of any of its workers: there may be fewer of them now."""
        names = re.compile(rf"audit-{re.escape(self._node)}-\d+-\d{{8}}T\d{{6}}Z-\d+{re.escape(_SUFFIX + ending)}")
        return sorted(path for path in self._directory.iterdir() if names.fullmatch(path.name))

    def _remove_old(self) -> None:
        if self._limits.retention_ms < 0:
            return
        oldest_s = (self._now_ms() - self._limits.retention_ms) / 1000
        for path in self._own():
            with suppress(FileNotFoundError):  # another worker looks after them, too
                if path.stat().st_mtime < oldest_s:
                    path.unlink()


@contextmanager
def _named_failures() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SinkFailed(error.strerror or type(error).__name__) from error
