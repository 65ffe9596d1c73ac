"""What the commands on Spark share: where it runs, with which settings, and how they start it.

@click.command()
@session_options
def command(*, master: str | None, conf: Mapping[str, str]) -> None:
    with started("ingest", master, conf) as spark:
        ...
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console

from kafka_dt.cli.options import together

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession


def _settings(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
    settings = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals or not key.startswith("spark."):
            raise click.BadParameter(f"{key!r} is not of the form spark.KEY=VALUE")
        settings[key] = value
    return settings


session_options: Final = together(
    click.option(
        "--master",
        metavar="URL",
        help="Where Spark runs: spark://HOST:PORT, yarn, k8s://..., local[N]. "
        "[default: all cores of this machine; under spark-submit, as submitted]",
    ),
    click.option(
        "--conf",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_settings,
        help="A setting of Spark, such as spark.driver.memory=4g; may be given several times.",
    ),
)
"""Adds `--master` and `--conf`: the arguments `master` and `conf`."""


@contextmanager
def started(
    name: str,
    master: str | None,
    conf: Mapping[str, str],
    *,
    delta: bool = False,
    kafka: bool = False,
    once: bool = False,
) -> Iterator[SparkSession]:
    """Give a running Spark.

    Args:
        name: of the application.
        master: of the option.
        conf: of the option.
        delta: whether Delta tables are read or written.
        kafka: whether Spark's Kafka source is needed.
        once: whether each query is run once.

    Raises:
        PipelineError: Spark does not start.
        KeyboardInterrupt: Ctrl-C came, whatever the block has raised for it; see `kafka_dt.pipeline.ctrl_c`.
    """
    from kafka_dt.pipeline.ctrl_c import heeding_ctrl_c  # noqa: PLC0415 - pyspark is an extra
    from kafka_dt.pipeline.session import spark_session  # noqa: PLC0415 - as above

    with ExitStack() as stack:
        ctrl_c = stack.enter_context(heeding_ctrl_c())
        with Console(stderr=True).status("Starting Spark"):
            session = spark_session(name, master=master, conf=conf, delta=delta, kafka=kafka, once=once, ctrl_c=ctrl_c)
            spark = stack.enter_context(session)
        yield spark
