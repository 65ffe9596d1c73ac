"""Files of JSON lines: written, rolled by size and age, renamed when they are complete.

    audit-<node>-<worker>-20261121T174416Z-0.jsonl.open      being written
    audit-<node>-<worker>-20261121T174416Z-0.jsonl           complete; never written to again

A reader takes what ends in `.jsonl` and never sees half a file or half a line. The next start of a node finishes the
files that a crash of this node has left open: it cuts them after the last whole line and renames them. The writer locks
its file, so several nodes can share a folder. A file that could not be completed, because its folder was away for a
moment, is finished as soon as it can be.

A line of `EventFiles` survives a crash of the process at once, and one of the machine after `SYNC_SECONDS`. The files
of strict mode are in `chained_files.py`. What both do is in `FileSeries`.

Source: Kafka's log segments (`log.segment.bytes`, `log.roll.ms`, `log.retention.ms`) for the settings.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count, groupby
from operator import attrgetter
from pathlib import Path
from typing import Final

from kafka_dt.audit.chain import START
from kafka_dt.audit.delivery import SinkFailed
from kafka_dt.audit.file_names import FileName, digest_path, files_in, second
from kafka_dt.audit.line_file import LineFile, Seal, finish

SYNC_SECONDS: Final = 1.0
"""How long a line may stay in the system's memory alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRules:
    """Which files a worker writes, and for how long."""

    directory: Path
    """The folder, which exists."""
    node: str
    """The name of the node, of letters, digits, `.`, `_` and `-`."""
    worker: int
    """The number of the worker that writes."""
    file_bytes: int
    """A file that would grow beyond it is complete; only a batch that is larger by itself exceeds it."""
    roll_ms: int
    """A file that is older is complete."""
    retention_ms: int
    """Complete files of this node that are older are removed; negative keeps them."""
    now_ms: Callable[[], int]
    """The wall clock, milliseconds since the epoch."""
    monotonic: Callable[[], float] = time.monotonic
    """A clock in seconds."""


class FileSeries:
    """The files of one worker, one after the other.

    Args:
        rules: which files, and for how long.
        seal: makes the digest of a complete file; None for files without one.
    """

    def __init__(self, rules: FileRules, seal: Seal | None = None) -> None:
        self._directory = rules.directory
        self._node = rules.node
        self._worker = rules.worker
        self._file_bytes = rules.file_bytes
        self._roll_ms = rules.roll_ms
        self._retention_ms = rules.retention_ms
        self._now_ms = rules.now_ms
        self._monotonic = rules.monotonic
        self._seal = seal
        self._link = START  # the hash of the last batch, where files are chained
        self._file: LineFile | None = None
        self._left_open = False

    @property
    def name(self) -> str:
        """The sink's name in the log."""
        return str(self._directory)

    def open(self) -> None:
        """Finish the files that a crash of this node has left open."""
        self._left_open = True
        with named_failures():
            self._finish_left()
            self._remove_old()

    def tend(self) -> float | None:
        """Sync and roll the file if that is due; return the seconds until it is due again."""
        with named_failures():
            self._finish_left()
            if self._file is None:
                return None
            now = self._monotonic()
            roll_due = self._file.begun + self._roll_ms / 1000
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
        with named_failures():
            if self._file is not None:
                self._complete()
            self._finish_left()

    def _file_for(self, size: int) -> LineFile:
        """Return the file that a batch is for: the one that is being written, or the next one."""
        if self._file is not None and self._file.size and self._file.size + size > self._file_bytes:
            self._complete()
        if self._file is None:
            self._file = LineFile.create(self._paths(), self._monotonic())
        return self._file

    def _complete(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.complete(self._link, self._seal)
            except OSError:
                self._left_open = True
                raise
            self._remove_old()

    def _leave(self, file: LineFile) -> None:
        """Write no more to a file from which a part of a batch could not be removed; `finish` does it later."""
        self._file = None
        self._left_open = True
        file.close()

    def _finish_left(self) -> None:
        """Finish the files that a crash of this node, or a failure, has left open."""
        if self._left_open:
            for name in self._own(complete=False):
                finish(self._path(name), self._seal)
            self._left_open = False

    def _paths(self) -> Iterator[Path]:
        """Name files in the order in which they are written, whatever the clock does."""
        # The numbers go on where the clock does not: retention may have removed the files with the small ones.
        earlier = ((name.started, name.number + 1) for name in self._series(complete=None))
        started, first = max([(second(self._now_ms()), 0), *earlier])
        for number in count(first):
            yield self._path(FileName(self._node, self._worker, started, number))

    def _series(self, *, complete: bool | None = True) -> list[FileName]:
        """Return the files of this worker and its predecessors, in the order in which they were written."""
        return [name for name in self._own(complete=complete) if name.worker == self._worker]

    def _own(self, *, complete: bool | None = True) -> list[FileName]:
        """Return the files of all workers of this node, also of workers that it does not have any more.

        Args:
            complete: whether they are complete; None for both.
        """
        own = (name for name in files_in(self._directory) if name.node == self._node)
        return [name for name in own if complete in {None, name.complete}]

    def _path(self, name: FileName) -> Path:
        return self._directory / str(name)

    def _remove_old(self) -> None:
        if self._retention_ms < 0:
            return
        for _, names in groupby(self._own(), key=attrgetter("worker")):
            for path in self._old(map(self._path, names)):
                with suppress(FileNotFoundError):  # another worker looks after them, too
                    path.unlink()
                    digest_path(path).unlink(missing_ok=True)

    def _old(self, paths: Iterable[Path]) -> Iterator[Path]:
        """Choose the old ones of a worker's files: the first ones alone, since a gap would break their chain.

        Files of the future are from a clock that was ahead. They are as old as the file after them.
        """
        now_s, retention_s = self._now_ms() / 1000, self._retention_ms / 1000
        ahead: list[Path] = []
        for path in paths:
            try:
                modified_s = path.stat().st_mtime
            except FileNotFoundError:
                continue
            if modified_s > now_s:
                ahead.append(path)
            elif modified_s < now_s - retention_s:
                yield from (*ahead, path)
                ahead.clear()
            else:
                return


class EventFiles(FileSeries):
    """A `Sink` that writes files."""

    def write(self, lines: Sequence[bytes]) -> None:
        """Write lines; all of them or, with SinkFailed, none."""
        with named_failures():
            data = b"".join(lines)
            try:
                self._append(self._file_for(len(data)), data)
            except OSError:
                with suppress(OSError):
                    self._remove_old()  # if the disk is full, there is no other time for it
                raise

    def _append(self, file: LineFile, data: bytes) -> None:
        try:
            file.append(data)
        except OSError:
            try:
                file.cut()
            except OSError:
                self._leave(file)
            raise
        if file.unsynced_since is None:
            file.unsynced_since = self._monotonic()


@contextmanager
def named_failures() -> Iterator[None]:
    """Let errors of the system be failures of the sink."""
    try:
        yield
    except OSError as error:
        raise SinkFailed(error.strerror or type(error).__name__) from error
