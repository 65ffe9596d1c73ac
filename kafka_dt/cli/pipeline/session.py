"""What the commands on Spark share: where it runs, with which settings, and how they start it.

@click.command()
@session_options
def command(*, master: str | None, conf: Mapping[str, str]) -> None:
    with started("ingest", master, conf) as spark:
        ...

pyspark is imported when Spark is started, so that `--help` needs nothing of it.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from kafka_dt.cli.errors import one_line
from kafka_dt.cli.node_options import Output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession


output_option = click.option(
    "--output",
    type=click.Choice([output.value for output in Output]),
    default=Output.TABLE.value,
    show_default=True,
    callback=lambda _context, _parameter, value: Output(value),
    help="How to print the result.",
)


def session_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--master` and `--conf`: the arguments `master` and `conf`."""
    for option in (
        click.option(
            "--conf",
            multiple=True,
            metavar="KEY=VALUE",
            callback=_settings,
            help="A setting of Spark, such as spark.driver.memory=4g; may be given several times.",
        ),
        click.option(
            "--master",
            metavar="URL",
            help="Where Spark runs: spark://HOST:PORT, yarn, k8s://..., local[N]. "
            "[default: all cores of this machine; under spark-submit, as submitted]",
        ),
    ):
        command = option(command)
    return command


@contextmanager
def started(name: str, master: str | None, conf: Mapping[str, str], *, kafka: bool = False) -> Iterator[SparkSession]:
    """Give a running Spark; errors of the pipeline become one line and exit status 1.

    Args:
        name: of the application.
        master: of the option.
        conf: of the option.
        kafka: whether Spark's Kafka source is needed.
    """
    # Imported here: pyspark is an extra.
    from kafka_dt.pipeline.errors import PipelineError  # noqa: PLC0415
    from kafka_dt.pipeline.session import spark_session  # noqa: PLC0415

    with one_line(PipelineError), ExitStack() as stack:
        with Console(stderr=True).status("Starting Spark"):
            spark = stack.enter_context(spark_session(name, master=master, conf=conf, kafka=kafka))
        yield spark


def _settings(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
    settings = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals or not key.startswith("spark."):
            raise click.BadParameter(f"{each.partition('=')[0]!r} is not of the form spark.KEY=VALUE")
        settings[key] = value
    return settings
