"""An ingest as people and programs see it: progress on stderr, the result on stdout, Ctrl-C ends it in order.

    run = IngestRun()
    work = Ingest(..., heard=run.tell)
    with run.of(work):
        counts = work.run()
    run.write(counts, output)
    run.exit()

- table: for people; a count a line.
- json: for programs, stable: `batches`, `lines`, `events` (new in the table), `quarantined`, `duplicates`,
  `compactedFiles`, `interrupted`, `seconds`.

The first Ctrl-C (or SIGTERM) ends it after the batch under way, the next one at once; the status is 130 then. What was
done stays, and the next run goes on there.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_dt.pipeline.ingest.ingest import Ingest
    from kafka_dt.pipeline.ingest.rules import Counts

INTERRUPTED: Final = 130
PLAIN_INTERVAL_S: Final = 5.0
"""How often progress is told where there is no terminal."""
_ROWS: Final = {
    "lines": "read",
    "events": "new events",
    "duplicates": "known events",
    "quarantined": "to quarantine",
    "compacted_files": "files merged",
}
"""Field of Counts -> its row of the table."""
_NAMES: Final = {"compacted_files": "compactedFiles"}


class Output(StrEnum):
    """The forms of `--output`."""

    TABLE = "table"
    JSON = "json"


class IngestRun:
    """One run of the command."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._status = self._console.status("Ingesting")
        self._begun_s = self._told_s = time.monotonic()
        self._seconds = 0.0
        self._interrupted = False

    @contextmanager
    def of(self, work: Ingest) -> Iterator[None]:
        """Show how far it is, and have Ctrl-C and SIGTERM end it in order."""

        def handle(_number: int, _frame: object) -> None:
            work.stop(at_once=self._interrupted)
            if not self._interrupted:
                self._interrupted = True
                self._tell("Ending after the batch under way; once more to end at once")

        self._begun_s = self._told_s = time.monotonic()
        # Spark's own handler of Ctrl-C would cancel the batch.
        before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            with self._status:
                yield
        finally:
            self._seconds = time.monotonic() - self._begun_s
            for number, handler in before.items():
                signal.signal(number, handler)

    def tell(self, counts: Counts) -> None:
        """Say what was done so far."""
        now_s = time.monotonic()
        line = f"Ingesting: {counts.events:,} events{_rate(counts.lines, now_s - self._begun_s)}"
        if counts.quarantined:
            line += f", {counts.quarantined:,} to quarantine"
        if self._console.is_terminal:
            self._status.update(line)
        elif counts.lines and now_s - self._told_s >= PLAIN_INTERVAL_S:
            self._told_s = now_s
            self._tell(line)

    def write(self, counts: Counts, output: Output) -> None:
        """Print what was done."""
        if output is Output.JSON:
            document: dict[str, object] = {_NAMES.get(name, name): count for name, count in asdict(counts).items()}
            click.echo(json.dumps({**document, "interrupted": self._interrupted, "seconds": round(self._seconds, 3)}))
            return
        for name, row in _ROWS.items():
            click.echo(f"{row:13} {getattr(counts, name)}")
        lines = f"{counts.lines:,} line{'' if counts.lines == 1 else 's'}"
        click.echo(f"{lines} in {self._seconds:.1f} s{_rate(counts.lines, self._seconds)}")

    def exit(self) -> None:
        """End the process as the work has ended."""
        sys.exit(INTERRUPTED if self._interrupted else 0)

    def _tell(self, line: str) -> None:
        self._console.print(line, soft_wrap=True, markup=False)


def _rate(count: int, seconds: float) -> str:
    return f", {count / seconds:,.0f}/s" if count and seconds > 0 else ""
