"""`kafka-dt pipeline script`: where the program is that `spark-submit` runs.

Source: Spark 4.0, "Submitting Applications": it takes a file of Python and that program's arguments.
"""

from __future__ import annotations

from pathlib import Path

import click

from kafka_dt.cli.pipeline import submit


@click.command()
def script() -> None:
    """Print the path of the program for spark-submit; its arguments are those of kafka-dt pipeline."""
    click.echo(Path(submit.__file__).resolve().with_name("kafka_dt_pipeline.py"))
