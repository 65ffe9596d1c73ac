"""The sink of JSON-lines files: written, rolled by size and age, renamed when they are complete.

    audit-<node>-<worker>-20261121T174416Z-0.jsonl.open      being written
    audit-<node>-<worker>-20261121T174416Z-0.jsonl           complete; never written to again

A reader takes what ends in `.jsonl` and never sees half a file or half a line. The next start of a node finishes the
files that a crash of this node has left open: it cuts them after the last whole line and renames them. The writer locks
its file, so several nodes can share a folder. A file that could not be completed, because its folder was away for a
moment, is finished as soon as it can be.

A line survives a crash of the process at once, and one of the machine after `SYNC_SECONDS`. With a chain
(`kafka_dt.audit.chain`) it survives both when `write` returns, and each complete file has a digest.

Source: Kafka's log segments (`log.segment.bytes`, `log.roll.ms`, `log.retention.ms`) for the settings.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

from kafka_dt.audit.chain import START, Chain, last_link
from kafka_dt.audit.delivery import SinkFailed
from kafka_dt.audit.file_names import FileName, digest_path, files_in, second
from kafka_dt.audit.line_file import LineFile, finish

SYNC_SECONDS: Final = 1.0
"""How long a line may stay in the system's memory alone."""
PATIENCE_SECONDS: Final = 2.0
"""How long a chain waits until another worker has finished the file that it continues."""


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
        chain: links the batches and signs the files; None writes the lines as they are.
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
        chain: Chain | None = None,
    ) -> None:
        self._directory = directory
        self._node = node
        self._worker = worker
        self._file_bytes = file_bytes
        self._roll_ms = roll_ms
        self._retention_ms = retention_ms
        self._now_ms = now_ms
        self._monotonic = monotonic
        self._chain = chain
        self._seal = None if chain is None else chain.seal
        self._patience: float | None = None
        self._file: LineFile | None = None
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
        with _named_failures():
            if self._chain is None:
                self._write(b"".join(lines))
                return
            self._continue(self._chain)
            batch = self._chain.batch(lines)
            self._write(batch)
            self._chain.grow(batch)

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

    def _write(self, data: bytes) -> None:
        if self._file is not None and self._file.size + len(data) > self._file_bytes:
            self._complete()
        try:
            self._append(data)
        except OSError:
            with suppress(OSError):
                self._remove_old()  # if the disk is full, there is no other time for it
            raise

    def _append(self, data: bytes) -> None:
        if self._file is None:
            self._file = LineFile.create(self._paths(), self._monotonic(), durable=self._chain is not None)
        try:
            self._file.append(data, self._monotonic())
        except OSError:
            self._take_back(self._file)
            raise

    def _continue(self, chain: Chain) -> None:
        """Find the end of the chain that an earlier process of this worker has left."""
        if chain.link is not None:
            return
        self._finish_left()
        if self._series(complete=False) and not self._out_of_patience():
            raise SinkFailed("another worker finishes the last file")
        earlier = self._series()
        chain.link = last_link(self._path(earlier[-1]).read_bytes()) if earlier else START

    def _out_of_patience(self) -> bool:
        """Whether the last file has been written for so long that another node of our name must do it."""
        now = self._monotonic()
        if self._patience is None:
            self._patience = now + PATIENCE_SECONDS
        return now >= self._patience

    def _complete(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.complete(START if self._chain is None else self._chain.link or START, self._seal)
            except OSError:
                self._left_open = True
                raise
            self._remove_old()

    def _take_back(self, file: LineFile) -> None:
        """Cut off an incomplete batch; if that fails too, `finish` does it later."""
        try:
            file.cut()
        except OSError:
            self._file = None
            self._left_open = True
            file.close()
            if self._chain is not None:
                self._chain.link = None  # which lines stay is known when the file is finished

    def _finish_left(self) -> None:
        """Finish the files that a crash of this node, or a failure, has left open."""
        if self._left_open:
            for name in self._own(complete=False):
                finish(self._path(name), self._seal)
            self._left_open = False

    def _paths(self) -> Iterator[Path]:
        """Name files in the order in which they are written, whatever the clock does."""
        started = second(self._now_ms())
        if earlier := self._series():
            started = max(started, earlier[-1].started)
        for number in count():
            yield self._path(FileName(self._node, self._worker, started, number))

    def _series(self, *, complete: bool = True) -> list[FileName]:
        """Return the files of this worker and its predecessors, in the order in which they were written."""
        return [name for name in self._own(complete=complete) if name.worker == self._worker]

    def _own(self, *, complete: bool = True) -> list[FileName]:
        """Return the files of all workers of this node, also of workers that it does not have any more."""
        return [name for name in files_in(self._directory) if name.node == self._node and name.complete is complete]

    def _path(self, name: FileName) -> Path:
        return self._directory / str(name)

    def _remove_old(self) -> None:
        if self._retention_ms < 0:
            return
        oldest_s = (self._now_ms() - self._retention_ms) / 1000
        for path in map(self._path, self._own()):
            with suppress(FileNotFoundError):  # another worker looks after them, too
                if path.stat().st_mtime < oldest_s:
                    path.unlink()
                    digest_path(path).unlink(missing_ok=True)


@contextmanager
def _named_failures() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SinkFailed(error.strerror or type(error).__name__) from error
