"""`kafka-dt pipeline ingest`: audit events of files or of a topic into a table, once or for as long as it runs.

Progress goes to stderr, the result to stdout. The JSON is stable: `batches`, `lines`, `events` (new in the table),
`quarantined`, `late` (of those), `duplicates`, `compactedFiles`, `interrupted`, `seconds`.

The first Ctrl-C (or SIGTERM) ends it after the batch under way, the next one at once; the status is 130 then. The table
keeps the batches that are done, and the next run continues after them. With `--strict` the status is 3 if lines went to
quarantine.

Source: Spark, "Structured Streaming Programming Guide".
"""

from __future__ import annotations

import signal
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import click

from kafka_dt.cli import INTERRUPTED
from kafka_dt.cli.options import example
from kafka_dt.cli.output import Output, counted, output_option, rate, write_json
from kafka_dt.cli.pipeline.session import session_options, started
from kafka_dt.cli.pipeline.source import DURATION, Source, source_options
from kafka_dt.cli.progress import Steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kafka_dt.pipeline.ingest import Counts, Ingest

QUARANTINED: Final = 3
"""The exit status of `--strict` when lines went to quarantine."""
_HOUR_MS: Final = 3_600_000
_ROWS: Final = {
    "lines": "read",
    "events": "new events",
    "duplicates": "known events",
    "quarantined": "to quarantine",
    "compacted_files": "files merged",
}
"""Field of Counts -> its row of the table."""
_NAMES: Final = {"compacted_files": "compactedFiles"}


def _at_least_an_hour(_context: click.Context, _parameter: click.Parameter, duration_ms: int) -> int:
    """Refuse what would delete files that a batch under way has written."""
    if duration_ms < _HOUR_MS:
        raise click.BadParameter("a batch that is being written may be as old as an hour: 1h is the least.")
    return duration_ms


@example("kafka-dt pipeline ingest --table /data/events --from /var/log/kafka-dt/audit --once")
@click.command()
@click.option("--table", required=True, metavar="DIR", help="The table: a directory, or a URI such as hdfs:///audit.")
@source_options
@click.option("--once", is_flag=True, help="End when everything that is there now has been read.")
@click.option(
    "--interval",
    type=DURATION,
    default="10s",
    show_default=True,
    help="How long to wait between two batches, without --once.",
)
@click.option(
    "--late-after",
    default="7d",
    show_default=True,
    metavar="DURATION|off",
    callback=lambda context, parameter, value: None if value == "off" else DURATION.convert(value, parameter, context),
    help="Put events into quarantine that are further behind the newest event of their cluster in the table.",
)
@click.option(
    "--future-after",
    type=DURATION,
    default="1h",
    show_default=True,
    help="Put events into quarantine that are further ahead of this machine's clock.",
)
@click.option(
    "--compact-at",
    type=click.IntRange(0),
    default=64,
    show_default=True,
    metavar="FILES",
    help="Merge the small files of the table when there are this many; 0 means never.",
)
@click.option(
    "--keep-replaced",
    type=DURATION,
    default="7d",
    show_default=True,
    callback=_at_least_an_hour,
    help="How long to keep files that were merged, for jobs that are reading them; at least 1h.",
)
@click.option("--strict", is_flag=True, help="Exit with status 3 if lines went to quarantine.")
@output_option()
@session_options
def ingest(
    *,
    table: str,
    source: Source,
    once: bool,
    interval: int,
    late_after: int | None,
    future_after: int,
    compact_at: int,
    keep_replaced: int,
    strict: bool,
    output: Output,
    master: str | None,
    conf: Mapping[str, str],
) -> None:
    """Read audit events into a Delta table, each exactly once.

    The table's quarantine keeps the lines that are not events, and the events that are too late or from the future.
    """
    source.check(conf)
    with started("ingest", master, conf, delta=True, kafka=source.is_topic, small=True) as spark:
        # Imported here: pyspark is an extra.
        from kafka_dt.pipeline.ingest import Ingest, Rules  # noqa: PLC0415
        from kafka_dt.pipeline.table import Table  # noqa: PLC0415

        rules = Rules(
            late_after_ms=late_after,
            future_after_ms=future_after,
            compact_at=compact_at,
            keep_replaced_ms=keep_replaced,
        )
        run = _IngestRun()
        work = Ingest(
            spark, Table(table), source.lines(), rules, now_ms=lambda: time.time_ns() // 1_000_000, heard=run.tell
        )
        with run.of(work):
            counts = work.run(interval_ms=None if once else interval)
    run.write(counts, output)
    sys.exit(INTERRUPTED if run.interrupted else QUARANTINED if strict and counts.quarantined else 0)


class _IngestRun:
    """One run of the command."""

    def __init__(self) -> None:
        self._steps = Steps()
        self._begun_s = time.monotonic()
        self._seconds = 0.0
        self.interrupted = False

    @contextmanager
    def of(self, work: Ingest) -> Iterator[None]:
        """Show how far it is, and have Ctrl-C and SIGTERM end it in order."""

        def handle(_number: int, _frame: object) -> None:
            work.stop(at_once=self.interrupted)
            if not self.interrupted:
                self.interrupted = True
                self._steps.note("Ending after the batch under way; once more to end at once")

        self._begun_s = time.monotonic()
        # Spark's own handler of Ctrl-C would cancel the batch.
        before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            with self._steps.step("Ingesting") as self._step:
                yield
        finally:
            self._seconds = time.monotonic() - self._begun_s
            for number, handler in before.items():
                signal.signal(number, handler)

    def tell(self, counts: Counts) -> None:
        """Say what was done so far."""
        if not counts.lines:
            return
        line = f"Ingesting: {counts.events:,} events{rate(counts.lines, time.monotonic() - self._begun_s)}"
        self._step.now(f"{line}, {counts.quarantined:,} to quarantine" if counts.quarantined else line)

    def write(self, counts: Counts, output: Output) -> None:
        """Print what was done."""
        if output is Output.JSON:
            document: dict[str, object] = {_NAMES.get(name, name): count for name, count in asdict(counts).items()}
            write_json({**document, "interrupted": self.interrupted, "seconds": round(self._seconds, 3)})
            return
        for name, row in _ROWS.items():
            click.echo(f"{row:13} {getattr(counts, name)}")
        if counts.late:
            click.echo(
                f"{counted(counts.late, 'event')} in quarantine came more than --late-after behind the newest event of "
                "the table. To ingest an older directory on purpose, add --late-after off."
            )
        click.echo(f"{counted(counts.lines, 'line')} in {self._seconds:.1f} s{rate(counts.lines, self._seconds)}")
