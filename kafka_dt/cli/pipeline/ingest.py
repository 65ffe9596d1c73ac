"""`kafka-dt pipeline ingest`: audit events of files or of a topic into a table, once or for as long as it runs.

Source: Spark, "Structured Streaming Programming Guide".
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kafka_dt.cli.pipeline.ingest_run import IngestRun, Output
from kafka_dt.cli.pipeline.session import session_options, started

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_dt.pipeline.ingest.sources import LineSource

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class _Duration(click.ParamType[int]):
    """A duration such as 90s, 15m or 7d; milliseconds in the code."""

    name = "duration"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"(\d{1,9})(ms|s|m|h|d)", str(value))
        if match is None:
            self.fail(f"{value!r} is not of the form 90s, 15m, 12h or 7d.", param, ctx)
        return int(match[1]) * _UNITS_MS[match[2]]


_DURATION: Final = _Duration()


@click.command()
@click.option("--table", required=True, metavar="DIR", help="The table: a directory, or a URI such as hdfs:///audit.")
@click.option("--from", "directory", metavar="DIR", help="A directory with the closed files (*.jsonl) of nodes.")
@click.option("--from-topic", "topic", metavar="TOPIC", help="The topic that nodes write to.")
@click.option("--bootstrap-server", metavar="HOST:PORT[,...]", help="Brokers of the topic.")
@click.option(
    "--command-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Kafka client properties of the login there, such as those of a delegation token; read again when it changes.",
)
@click.option("--skip-lost", is_flag=True, help="Pass over records that the topic deleted before they were read.")
@click.option("--once", is_flag=True, help="End when everything that is there now has been read.")
@click.option(
    "--interval", type=_DURATION, default="10s", show_default=True, help="Between two batches, without --once."
)
@click.option(
    "--late-after",
    default="7d",
    show_default=True,
    metavar="DURATION|off",
    callback=lambda context, parameter, value: None if value == "off" else _DURATION.convert(value, parameter, context),
    help="Events that are further behind the newest one of the table go to quarantine.",
)
@click.option(
    "--future-after",
    type=_DURATION,
    default="1h",
    show_default=True,
    help="Events that are further ahead of this machine's clock go to quarantine.",
)
@click.option(
    "--compact-at",
    type=click.IntRange(0),
    default=16,
    show_default=True,
    metavar="FILES",
    help="Merge the small files of a day when there are so many; 0 is never.",
)
@click.option(
    "--keep-replaced",
    type=_DURATION,
    default="0s",
    show_default=True,
    help="Keep merged files for jobs that are reading them. Reports leave them out, other readers have to.",
)
@click.option(
    "--output",
    type=click.Choice([output.value for output in Output]),
    default=Output.TABLE.value,
    show_default=True,
    callback=lambda _context, _parameter, value: Output(value),
    help="How to print the result.",
)
@session_options
def ingest(
    *,
    table: str,
    directory: str | None,
    topic: str | None,
    bootstrap_server: str | None,
    command_config: Path | None,
    skip_lost: bool,
    once: bool,
    interval: int,
    late_after: int | None,
    future_after: int,
    compact_at: int,
    keep_replaced: int,
    output: Output,
    master: str | None,
    conf: Mapping[str, str],
) -> None:
    """Read audit events into a table of Parquet files, each exactly once.

    Lines that are no events, and events that are too late or from the future, are kept in the table's quarantine.
    """
    if (directory is None) is (topic is None):
        raise click.UsageError("Give one of '--from' and '--from-topic'.")
    run = IngestRun()
    with started("ingest", master, conf, kafka=topic is not None) as spark:
        # Imported here: pyspark is an extra.
        from kafka_dt.pipeline.ingest.ingest import Ingest  # noqa: PLC0415
        from kafka_dt.pipeline.ingest.rules import Rules  # noqa: PLC0415
        from kafka_dt.pipeline.ingest.sources import FileSource, TopicSource  # noqa: PLC0415
        from kafka_dt.pipeline.table.table import Table  # noqa: PLC0415

        source: LineSource
        if topic is None:
            assert directory is not None  # noqa: S101 - one of the two was given
            source = FileSource(directory)
        else:
            source = TopicSource(topic, bootstrap_server, command_config, skips_lost=skip_lost)
        rules = Rules(
            late_after_ms=late_after,
            future_after_ms=future_after,
            compact_at=compact_at,
            keep_replaced_ms=keep_replaced,
        )
        work = Ingest(spark, Table(table), source, rules, now_ms=lambda: time.time_ns() // 1_000_000, heard=run.tell)
        with run.of(work):
            counts = work.run(interval_ms=None if once else interval)
    run.write(counts, output)
    run.exit()
