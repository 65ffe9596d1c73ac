"""Ingests in a test: from a folder of files into a table, with a clock that stands still.

ingest = Ingests(spark, folder)
ingest.add(events(3))            # a closed file; also lines that are no events
ingest.run()                     # all there is, as `--once`
ingest.stored()                  # {"00c0ffee-0", ...}, each once
ingest.run(crash_at=4)           # the process ends before its fourth change of the table, or is done before that
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

from kafka_dt.audit import AuditEvent
from kafka_dt.audit.encoding import encode
from kafka_dt.pipeline.errors import IngestFailed
from kafka_dt.pipeline.ingest import Counts, FileSource, Ingest, Rules
from kafka_dt.pipeline.table import Table
from kafka_dt.pipeline.table.delta import DeltaFiles
from kafka_dt.pipeline.table.storage import Storage
from tests.support.spark.audit_lines import NOON_MS, stored_ids, write_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHANGES: Final[Mapping[type, tuple[str, ...]]] = {Storage: ("write_document", "sync"), DeltaFiles: ("append",)}
"""What changes a table, or follows a change of it."""


class Crash(Exception):
    """Where the process would have ended."""


@dataclass
class Ingests:
    """One folder of files and one table."""

    spark: SparkSession
    folder: Path
    rules: Rules = field(default_factory=Rules)
    batch_bytes: int = 1
    """By default each file is a batch."""
    now_ms: int = NOON_MS
    cluster: str = "here"

    def __post_init__(self) -> None:
        self.source = self.folder / "nodes"
        self.source.mkdir()
        self.path = self.folder / "table"
        self.table = Table(str(self.path))
        self._files = 0

    def add(self, *made: AuditEvent | Sequence[AuditEvent] | bytes) -> None:
        """Write a closed file, one second younger than the last one: Spark reads the oldest first."""
        lines: list[bytes] = []
        for each in made:
            if isinstance(each, bytes):
                lines.append(each + b"\n")
            else:
                lines += map(encode, [each] if isinstance(each, AuditEvent) else each)
        self._files += 1
        file = write_file(self.source, f"audit-{self._files}", lines)
        os.utime(file, (1_000_000_000 + self._files,) * 2)

    def ingest(self) -> Ingest:
        """Make one that was not run yet."""
        source = FileSource(str(self.source), self.cluster, batch_bytes=self.batch_bytes)
        return Ingest(self.spark, self.table, source, self.rules, now_ms=lambda: self.now_ms)

    def run(self, *, crash_at: int | None = None) -> Counts | None:
        """Ingest all files of the source; None if it was cut off."""
        if crash_at is None:
            return self.ingest().run()
        with crashing_at(crash_at) as changes:
            try:
                counts = self.ingest().run()
            except (Crash, IngestFailed):
                if changes() < crash_at:
                    raise
                return None
        return counts

    def stored(self) -> set[str]:
        """The ids of the events that another tool sees in the table; none is there twice."""
        ids = stored_ids(self.path)
        assert set(ids.values()) <= {1}
        return set(ids)

    def seen(self) -> set[str]:
        """The ids of the events that a reader of the table sees; none is there twice."""
        ids = [row.id for row in self.table.events(self.spark).select("id").collect()]
        assert len(ids) == len(set(ids))
        return set(ids)


@contextmanager
def crashing_at(number: int) -> Iterator[Callable[[], int]]:
    """End everything that changes the table from the given change on, counted from 1; gives how many there were.

    Args:
        number: of the change that does not take place.
    """
    done = 0

    def wrapped(method: Callable[..., Any]) -> Callable[..., Any]:
        def change(*arguments: Any) -> Any:
            nonlocal done
            done += 1
            if done >= number:
                raise Crash(done)
            return method(*arguments)

        return change

    with ExitStack() as patches:
        for kind, names in CHANGES.items():
            changed: dict[str, Any] = {name: wrapped(getattr(kind, name)) for name in names}
            patches.enter_context(mock.patch.multiple(kind, **changed))
        yield lambda: done
