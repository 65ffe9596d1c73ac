"""The sink of JSON-lines files: written, rolled by size and age, renamed when they are complete.

    audit-<node>-<worker>-20261121T174416Z-0.jsonl.open      being written
    audit-<node>-<worker>-20261121T174416Z-0.jsonl           complete; never written to again

A reader takes what ends in `.jsonl` and never sees half a file or half a line. The next start of a node finishes the
files that a crash of this node has left open: it cuts them after the last whole line and renames them. The writer locks
its file (flock), so several nodes can share a folder. A file that could not be completed, because its folder was away
for a moment, is finished as soon as it can be.

A line survives a crash of the process at once, and one of the machine after `SYNC_SECONDS`. A line is written whole or
not at all: the part of it that a full disk let through is removed.

Limit: over NFS the lock is only as good as its server's.

Source: Kafka's log segments (`log.segment.bytes`, `log.roll.ms`, `log.retention.ms`) for the settings; rename(2),
flock(2), fdatasync(2).
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kafka_dt.audit.delivery import SinkFailed
from kafka_dt.files import sync_directory

OPEN: Final = ".open"
"""The end of the name of a file that is being written."""
SYNC_SECONDS: Final = 1.0
"""How long a line may stay in the system's memory alone."""
_SUFFIX: Final = ".jsonl"
_MODE: Final = 0o640
_CHUNK_BYTES: Final = 64 * 1024


class EventFiles:
    """A `Sink` that writes files.

    Args:
        directory: the folder, which exists.
        node: the name of the node, of letters, digits, `.`, `_` and `-`.
        worker: the number of the worker that writes.
        file_bytes: a file that would grow beyond it is complete; only a batch that is larger by itself exceeds it.
        roll_ms: a file that is older is complete.
        retention_ms: complete files of this node that are older are removed; negative keeps them.
        now_ms: the wall clock, milliseconds since the epoch.
        monotonic: a clock in seconds.
    """

    def __init__(
        self,
        directory: Path,
        node: str,
        worker: int,
        *,
        file_bytes: int,
        roll_ms: int,
        retention_ms: int,
        now_ms: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory
        self._node = node
        self._worker = worker
        self._file_bytes = file_bytes
        self._roll_ms = roll_ms
        self._retention_ms = retention_ms
        self._now_ms = now_ms
        self._monotonic = monotonic
        self._file: _LineFile | None = None
        self._left_open = False

    @property
    def name(self) -> str:
        """The sink's name in the log."""
        return str(self._directory)

    def open(self) -> None:
        """Finish the files that a crash of this node has left open."""
        self._left_open = True
        with _named_failures():
            self._finish_left()
            self._remove_old()

    def write(self, lines: Sequence[bytes]) -> None:
        """Write lines; all of them or, with SinkFailed, none."""
        data = b"".join(lines)
        with _named_failures():
            if self._file is not None and self._file.size + len(data) > self._file_bytes:
                self._complete()
            try:
                self._append(data)
            except OSError:
                with suppress(OSError):
                    self._remove_old()  # if the disk is full, there is no other time for it
                raise

    def tend(self) -> float | None:
        """Sync and roll the file if that is due; return the seconds until it is due again."""
        with _named_failures():
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
        with _named_failures():
            if self._file is not None:
                self._complete()
            self._finish_left()

    def _append(self, data: bytes) -> None:
        if self._file is None:
            self._file = _LineFile.create(self._paths(), self._monotonic())
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

    def _take_back(self, file: _LineFile) -> None:
        """Cut off an incomplete batch; if that fails too, `finish` does it later."""
        try:
            file.cut()
        except OSError:
            self._file = None
            self._left_open = True
            file.close()

    def _finish_left(self) -> None:
        """Finish the files that a crash of this node, or a failure, has left open."""
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
        """Return the files of all workers of this node, also of workers that it does not have any more."""
        names = re.compile(rf"audit-{re.escape(self._node)}-\d+-\d{{8}}T\d{{6}}Z-\d+{re.escape(_SUFFIX + ending)}")
        return sorted(path for path in self._directory.iterdir() if names.fullmatch(path.name))

    def _remove_old(self) -> None:
        if self._retention_ms < 0:
            return
        oldest_s = (self._now_ms() - self._retention_ms) / 1000
        for path in self._own():
            with suppress(FileNotFoundError):  # another worker looks after them, too
                if path.stat().st_mtime < oldest_s:
                    path.unlink()


def finish(path: Path) -> None:
    """Complete a file that a crash has left: remove the piece of a line at its end, and delete an empty file.

    Args:
        path: of the file as it was being written; if another process still writes it, it stays as it is.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # another worker has finished it
    try:
        if not _lock(descriptor, path):
            return
        size = _whole_lines_bytes(descriptor)
        if size == 0:
            path.unlink()
            return
        os.ftruncate(descriptor, size)
        os.fsync(descriptor)
        path.rename(path.with_name(path.name.removesuffix(OPEN)))
        sync_directory(path.parent)
    finally:
        os.close(descriptor)


class _LineFile:
    """A file of whole lines that is being written; all of it raises OSError.

    Args:
        descriptor: of the file, which is locked.
        path: where it will be when it is complete.
        begun: when it was created, by a clock in seconds.
    """

    size = 0
    """The bytes of whole batches in the file."""
    unsynced_since: float | None = None
    """When a line was written that may be in the system's memory alone; None if there is none."""

    def __init__(self, descriptor: int, path: Path, begun: float) -> None:
        self._descriptor = descriptor
        self._path = path
        self.begun = begun

    @classmethod
    def create(cls, paths: Iterator[Path], begun: float) -> _LineFile:
        """Create the first of some files that is not there yet; `paths` are those of complete files."""
        for path in paths:
            if path.exists():
                continue
            partial = path.with_name(path.name + OPEN)
            try:
                descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, _MODE)
            except FileExistsError:
                continue
            if _lock(descriptor, partial):
                if not path.exists():
                    return cls(descriptor, path, begun)
                partial.unlink()  # another node of our name has just completed one that was called the same
            os.close(descriptor)  # or another worker that starts took ours for one that was left
        raise AssertionError("paths end")

    def append(self, data: bytes, now: float) -> None:
        """Write a batch; should that fail, a part of it may be there until `cut`."""
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]
        self.size += len(data)
        if self.unsynced_since is None:
            self.unsynced_since = now

    def cut(self) -> None:
        """Remove the written part of an incomplete batch."""
        os.ftruncate(self._descriptor, self.size)

    def sync(self) -> None:
        """Sync the file, so that its lines survive a crash of the machine."""
        os.fdatasync(self._descriptor)
        self.unsynced_since = None

    def complete(self) -> None:
        """Give the file to readers; nothing can be written any more."""
        try:
            os.fsync(self._descriptor)
            self._path.with_name(self._path.name + OPEN).rename(self._path)
            sync_directory(self._path.parent)
        finally:
            self.close()

    def close(self) -> None:
        """Leave it as it is, for `finish` to complete."""
        os.close(self._descriptor)


def _lock(descriptor: int, path: Path) -> bool:
    """Lock an open file; False if another process holds it, or the path has come to mean another file."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except (BlockingIOError, FileNotFoundError):
        return False


def _whole_lines_bytes(descriptor: int) -> int:
    """Return where the last whole line of a file ends."""
    end = os.fstat(descriptor).st_size
    while end > 0:
        begin = max(0, end - _CHUNK_BYTES)
        feed = os.pread(descriptor, end - begin, begin).rfind(b"\n")
        if feed >= 0:
            return begin + feed + 1
        end = begin
    return 0


@contextmanager
def _named_failures() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SinkFailed(error.strerror or type(error).__name__) from error
