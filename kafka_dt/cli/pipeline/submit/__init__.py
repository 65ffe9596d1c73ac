"""The program for `spark-submit`, alone in its folder: Python looks for modules beside a program before all others.

`kafka-dt pipeline script` prints where it is.

Source: Spark 4.0, "Submitting Applications": it takes a file of Python and that program's arguments.
"""

from __future__ import annotations

from pathlib import Path

import click

from kafka_dt.cli.options import example


@example("spark-submit $(kafka-dt pipeline script) report --help")
@click.command()
def script() -> None:
    """Print the path of the program for spark-submit.

    Its arguments are those of kafka-dt pipeline.
    """
    click.echo(Path(__file__).resolve().with_name("kafka_dt_pipeline.py"))
