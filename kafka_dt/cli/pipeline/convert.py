"""`kafka-dt pipeline convert`: a table of kafka-dt 0.1 becomes one of Delta Lake.

The JSON is stable: `events`, `quarantined`, `sources` (whose next ingest continues where the last ended), `seconds`.

Source: kafka_dt/pipeline/conversion.py
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict

import click

from kafka_dt.cli.options import example
from kafka_dt.cli.output import Output, counted, output_option, write_json
from kafka_dt.cli.pipeline.session import session_options, started
from kafka_dt.cli.progress import Steps


@example("kafka-dt pipeline convert --table /data/audit-0.1 --to /data/audit")
@click.command()
@click.option("--table", required=True, metavar="DIR", help="The old table: a path or a URI. It is not changed.")
@click.option("--to", required=True, metavar="DIR", help="The directory of the new table, which must not exist.")
@click.option(
    "--cluster-id",
    metavar="ID",
    default="default",
    show_default=True,
    help="Name the cluster of all events. If they come from a topic, give the id of its Kafka cluster.",
)
@output_option()
@session_options
def convert(
    *, table: str, to: str, cluster_id: str, output: Output, master: str | None, conf: Mapping[str, str]
) -> None:
    """Make a Delta table from a table of kafka-dt 0.1.

    Stop the ingest into the old table first. The next ingest into the new one continues where it ended.
    """
    begun_s = time.monotonic()
    with started("convert", master, conf, delta=True) as spark, Steps().step("Converting"):
        # Imported here: pyspark is an extra.
        from kafka_dt.pipeline.conversion import convert as make_table  # noqa: PLC0415
        from kafka_dt.pipeline.table import Table  # noqa: PLC0415

        made = make_table(spark, Table(table), Table(to), cluster_id)
    seconds = time.monotonic() - begun_s
    if output is Output.JSON:
        write_json({**asdict(made), "seconds": round(seconds, 3)})
        return
    click.echo(
        f"{counted(made.events, 'event')} and {counted(made.quarantined, 'line')} in quarantine, in {seconds:.1f} s"
    )
    click.echo(f"{counted(made.sources, 'source')} to continue: kafka-dt pipeline ingest --table {to} ...")
