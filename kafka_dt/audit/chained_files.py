"""The sink of strict mode: files whose batches are chained, and synced by others before a client hears of them.

    files = ChainedFiles(FileRules(...), Chain(key))
    files.make_room(lines)                  # in a thread; not if `has_room`
    os.fdatasync(files.write(lines))        # or beside the event loop
    files.confirm()                         # or take_back()

A line survives a crash of the machine when `confirm` is called. Each complete file has a digest
(`kafka_dt.audit.chain`).

Source: docs/audit.md, "Evidence".
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from kafka_dt.audit.chain import LINK_BYTES, START, Chain, last_link
from kafka_dt.audit.delivery import SinkFailed
from kafka_dt.audit.files import FileRules, FileSeries, named_failures

PATIENCE_SECONDS: Final = 2.0
"""How long a chain waits until another worker has finished the file that it continues."""


class ChainedFiles(FileSeries):
    """A `SyncedSink` that writes files.

    Args:
        rules: which files, and for how long.
        chain: links the batches and signs the files.
    """

    def __init__(self, rules: FileRules, chain: Chain) -> None:
        super().__init__(rules, chain.seal)
        self._chain = chain
        self._patience: float | None = None
        self._batch = b""  # what is written and not confirmed

    def has_room(self, lines: Sequence[bytes]) -> bool:
        """Whether `write` can take lines."""
        if self._file is None or self._chain.link is None:
            return False
        size = _size(lines)
        # As `_file_for` chooses a file: the first batch of one may be longer than a file may be.
        fits = not self._file.size or self._file.size + size <= self._file_bytes
        return fits and size <= self._file.room()

    def make_room(self, lines: Sequence[bytes]) -> None:
        """See that `write` can take lines: continue the chain, and write zeros."""
        with named_failures():
            self._continue()
            size = _size(lines)
            try:
                self._file_for(size).make_room(size)
            except OSError:
                with suppress(OSError):
                    self._remove_old()  # if the disk is full, there is no other time for it
                raise

    def write(self, lines: Sequence[bytes]) -> int:
        """Write a batch over zeros, which waits for no disk; return the descriptor of its file."""
        if self._file is None:
            raise SinkFailed("no file has room")
        with named_failures():
            batch = self._chain.batch(lines)
            self._file.append(batch)
            self._batch = batch
            return self._file.descriptor

    def confirm(self) -> None:
        """Take note that the last batch is durable."""
        self._chain.grow(self._batch)
        self._link = self._chain.link or START
        self._batch = b""

    def take_back(self) -> None:
        """Remove what was written of the last batch."""
        batch, self._batch = self._batch, b""
        if self._file is None:
            return
        try:
            self._file.take_back(batch)
        except OSError:
            self._leave(self._file)
            self._chain.link = None  # which lines stay is known when the file is finished

    def _continue(self) -> None:
        """Find the end of the chain that an earlier process of this worker has left."""
        if self._chain.link is not None:
            return
        self._finish_left()
        if self._series(complete=False) and not self._out_of_patience():
            raise SinkFailed("another worker finishes the last file")
        earlier = self._series()
        self._link = self._chain.link = last_link(self._path(earlier[-1]).read_bytes()) if earlier else START

    def _out_of_patience(self) -> bool:
        """Whether the last file has been written for so long that another node of our name must do it."""
        now = self._monotonic()
        if self._patience is None:
            self._patience = now + PATIENCE_SECONDS
        return now >= self._patience


def _size(lines: Sequence[bytes]) -> int:
    """Return how many bytes a batch of lines takes."""
    return sum(map(len, lines)) + LINK_BYTES
