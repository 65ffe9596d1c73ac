"""A file of whole lines that one process writes and that readers get when it is complete.

While it is written its name ends in `.open`, and it is locked (flock): by that one can tell what a crash has left from
what is being written. All of it raises OSError.

Source: rename(2), flock(2), fdatasync(2).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kafka_dt.files import sync_directory

OPEN: Final = ".open"
"""What the name of a file ends in that is being written."""
_MODE: Final = 0o640
_CHUNK_BYTES: Final = 64 * 1024


class LineFile:
    """A file that is being written.

    Args:
        descriptor: of the file, which is locked.
        path: where it will be when it is complete.
        begun: when it was created, by a clock in seconds.
    """

    size = 0
    """How many bytes of whole batches there are."""
    unsynced_since: float | None = None
    """Since when something was written that may be in the system's memory alone."""

    def __init__(self, descriptor: int, path: Path, begun: float) -> None:
        self._descriptor = descriptor
        self._path = path
        self.begun = begun

    @classmethod
    def create(cls, paths: Iterator[Path], begun: float) -> LineFile:
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
        """Remove the part that was written of an incomplete batch."""
        os.ftruncate(self._descriptor, self.size)

    def sync(self) -> None:
        """Sync the file, so that its lines survive a crash of the machine."""
        os.fdatasync(self._descriptor)
        self.unsynced_since = None

    def complete(self) -> None:
        """Let readers have it; nothing can be written any more."""
        try:
            os.fsync(self._descriptor)
            self._path.with_name(self._path.name + OPEN).rename(self._path)
            sync_directory(self._path.parent)
        finally:
            self.close()

    def close(self) -> None:
        """Leave it as it is, for `finish` to complete."""
        os.close(self._descriptor)


def finish(path: Path) -> None:
    """Complete a file that a crash has left: without the piece of a line at its end; an empty one goes.

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


def _lock(descriptor: int, path: Path) -> bool:
    """Lock an open file; False if another process holds it, or the path has come to mean another file."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except (BlockingIOError, FileNotFoundError):
        return False


def _whole_lines_bytes(descriptor: int) -> int:
    """Say where the last whole line of a file ends."""
    end = os.fstat(descriptor).st_size
    while end > 0:
        begin = max(0, end - _CHUNK_BYTES)
        feed = os.pread(descriptor, end - begin, begin).rfind(b"\n")
        if feed >= 0:
            return begin + feed + 1
        end = begin
    return 0
