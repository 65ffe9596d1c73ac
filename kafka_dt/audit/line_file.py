r"""A file of whole lines: written by one process, which locks it, and renamed when it is complete.

    file = LineFile.create(paths, begun)    # <path>.open
    file.append(b"...\n", now)
    file.complete()                         # <path>
    finish(path)                            # what a crash has left

A batch is written whole or not at all: the part of it that a full disk let through is removed (`cut`).

A file that is synced often has zeros behind its lines until it is complete (`make_room`). A batch is then written over
them: the file keeps its length and its blocks, so that a sync need not write them down as well
(docs/decisions/0033-strict-audit.md). A line has no zeros, so the lines end at the first one.

Limit: over NFS the lock is only as good as its server's.

Source: rename(2), flock(2), fdatasync(2).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from kafka_dt.audit.chain import FileDigest
from kafka_dt.audit.file_names import OPEN, digest_path
from kafka_dt.files import sync_directory

ZEROS: Final = bytes(1024 * 1024)
"""What a file that is synced often is extended with."""
_MODE: Final = 0o640

Seal = Callable[[FileDigest], bytes]
"""Writes a digest, and signs it if there is a key."""


def finish(path: Path, seal: Seal | None = None) -> None:
    """Complete a file that a crash has left: remove the piece of a line at its end, and delete an empty file.

    Args:
        path: of the file as it was being written; if another process still writes it, it stays as it is.
        seal: makes the digest of the complete file; None for a file without one.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # another worker has finished it
    try:
        if not _lock(descriptor, path):
            return
        lines = whole_lines(path.read_bytes())
        if not lines:
            path.unlink()
            return
        os.ftruncate(descriptor, len(lines))
        os.fsync(descriptor)
        complete = path.with_name(path.name.removesuffix(OPEN))
        if seal is not None:
            _write_digest(complete, seal(FileDigest.of(complete.name, lines)))
        path.rename(complete)
        sync_directory(path.parent)
    finally:
        os.close(descriptor)


def whole_lines(content: bytes) -> bytes:
    """Return the lines of a file that is not complete, without what may follow them: a piece of a line, and zeros."""
    written, *_ = content.partition(b"\0")
    return written[: written.rfind(b"\n") + 1]


class LineFile:
    """A file of whole lines that is being written; all of it raises OSError.

    Args:
        descriptor: of the file, which is locked.
        path: where it will be when it is complete.
        begun: when it was created, by a clock in seconds.
    """

    size = 0
    """The bytes of whole batches in the file."""
    lines = 0
    """Their lines."""
    unsynced_since: float | None = None
    """When a line was written that may be in the system's memory alone; None if there is none, or others sync."""

    def __init__(self, descriptor: int, path: Path, begun: float) -> None:
        self.descriptor = descriptor
        self._path = path
        self._length = 0  # bytes of the file, with its zeros
        self.begun = begun

    @classmethod
    def create(cls, paths: Iterator[Path], begun: float) -> LineFile:
        """Create the first of some files that is not there yet; `paths` are those of complete files."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        for path in paths:
            if path.exists():
                continue
            partial = path.with_name(path.name + OPEN)
            try:
                descriptor = os.open(partial, flags, _MODE)
            except FileExistsError:
                continue
            try:
                if _lock(descriptor, partial):
                    if not path.exists():
                        return cls(descriptor, path, begun)
                    partial.unlink()  # another node of our name has just completed one that was called the same
            except OSError:  # such as that of a file system without locks
                os.close(descriptor)
                with suppress(OSError):
                    partial.unlink()
                raise
            os.close(descriptor)  # or another worker that starts took ours for one that was left
        raise AssertionError("paths end")

    def room(self) -> int:
        """Return how many bytes can be written over zeros."""
        return self._length - self.size

    def make_room(self, size: int) -> None:
        """Write and sync zeros behind the lines, at least so many."""
        while self.room() < size:
            self._length += os.pwrite(self.descriptor, ZEROS, self._length)
        os.fdatasync(self.descriptor)

    def append(self, data: bytes) -> None:
        """Write a batch; should that fail, a part of it may be there until `cut`."""
        _write_all(self.descriptor, data, self.size)
        self.size += len(data)
        self.lines += data.count(b"\n")

    def take_back(self, data: bytes) -> None:
        """Remove the last batch."""
        self.size -= len(data)
        self.lines -= data.count(b"\n")
        self.cut()

    def cut(self) -> None:
        """Remove what was written of a batch that could not be written whole, and zeros."""
        os.ftruncate(self.descriptor, self.size)
        self._length = self.size

    def sync(self) -> None:
        """Sync the file, so that its lines survive a crash of the machine."""
        os.fdatasync(self.descriptor)
        self.unsynced_since = None

    def complete(self, link: str = "", seal: Seal | None = None) -> None:
        """Give the file to readers, or delete it if it has no line; nothing can be written any more.

        Args:
            link: the hash of the last batch, for the digest.
            seal: makes the digest; None for a file without one.
        """
        partial = self._path.with_name(self._path.name + OPEN)
        try:
            if not self.lines:
                partial.unlink()
                return
            self.cut()
            os.fsync(self.descriptor)
            if seal is not None:
                _write_digest(self._path, seal(FileDigest(self._path.name, self.lines, self.size, link)))
            partial.rename(self._path)
            sync_directory(self._path.parent)
        finally:
            self.close()

    def close(self) -> None:
        """Leave it as it is, for `finish` to complete."""
        os.close(self.descriptor)


def _write_digest(path: Path, data: bytes) -> None:
    """Write the digest of a file that is not complete yet: a crash in between leaves it to `finish`."""
    descriptor = os.open(digest_path(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _MODE)
    try:
        _write_all(descriptor, data, 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes, begin: int) -> None:
    """Write all of some bytes, from a place on: a disk that is nearly full takes only a part at a time."""
    left, end = memoryview(data), begin + len(data)
    while left:
        left = left[os.pwrite(descriptor, left, end - len(left)) :]


def _lock(descriptor: int, path: Path) -> bool:
    """Lock an open file; False if another process holds it, or the path has come to mean another file."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except (BlockingIOError, FileNotFoundError):
        return False
