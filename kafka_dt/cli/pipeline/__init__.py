"""`kafka-dt pipeline`: audit events to a table, reports from it, and work on every token with Spark.

Read `ingest.py` first. The commands need an extra. They import pyspark when they run: `--help` works without it.
"""

from __future__ import annotations

import click

from kafka_dt.cli import LazyGroup


@click.group(
    cls=LazyGroup,
    lazy_commands={
        "convert": "kafka_dt.cli.pipeline.convert:convert",
        "demo": "kafka_dt.cli.pipeline.demo:demo",
        "expire": "kafka_dt.cli.pipeline.bulk:expire",
        "generate": "kafka_dt.cli.pipeline.demo:generate",
        "ingest": "kafka_dt.cli.pipeline.ingest:ingest",
        "report": "kafka_dt.cli.pipeline.report:report",
        "rotate": "kafka_dt.cli.pipeline.bulk:rotate",
        "script": "kafka_dt.cli.pipeline.submit:script",
        "seal": "kafka_dt.cli.pipeline.bulk:seal",
        "unseal": "kafka_dt.cli.pipeline.bulk:unseal",
        "verify": "kafka_dt.cli.pipeline.bulk:verify",
        "watch": "kafka_dt.cli.pipeline.watch:watch",
    },
)
def pipeline() -> None:
    """Ingest, report and watch audit events; work on all tokens."""
