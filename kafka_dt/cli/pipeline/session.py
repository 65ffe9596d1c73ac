"""What the commands of the pipeline share: where Spark runs, with which settings, and how they start it, or Sail.

@click.command()
@session_options
def command(*, master: str | None, conf: Mapping[str, str]) -> None:
    with started("ingest", master, conf) as spark:
        ...
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from rich.console import Console

from kafka_dt.cli.options import together
from kafka_dt.pipeline.errors import SailFailed, SailNotStarted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from kafka_dt.pipeline.engines import Engine

_T = TypeVar("_T")


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


class EngineChoice(StrEnum):
    """What is to compute a report."""

    AUTO = "auto"
    """Sail, if nothing asks for Spark; Spark otherwise, and where Sail cannot run or fails."""
    SAIL = "sail"
    SPARK = "spark"


engine_option: Final = click.option(
    "--engine",
    type=click.Choice([each.value for each in EngineChoice]),
    default=EngineChoice.AUTO.value,
    show_default=True,
    callback=lambda _context, _parameter, value: EngineChoice(value),
    help="What computes the report. Sail is several times as quick as Spark on one machine and needs no Java, but it "
    "reads and writes directories of this machine alone. auto takes Spark with --master or --conf, under spark-submit, "
    "for other directories, and where Sail cannot run or fails; otherwise Sail.",
)
"""Adds `--engine`: the argument `engine`."""


def on_engine(
    work: Callable[[Engine], _T],
    *,
    name: str,
    choice: EngineChoice,
    master: str | None,
    conf: Mapping[str, str],
    places: Sequence[str],
) -> _T:
    """Start an engine, have it do some work, and return what comes of it.

    Args:
        work: may be done twice: if Sail was not asked for and fails, Spark does it.
        name: of the application.
        choice: of the option.
        master: of the option.
        conf: of the option.
        places: paths and URIs that are read or written.

    Raises:
        PipelineError: the engine does not start, or what `work` raises.
        KeyboardInterrupt: Ctrl-C came.
    """
    from kafka_dt.pipeline.engines import SailEngine, SparkEngine, is_in_reach, sail_session  # noqa: PLC0415 - an extra
    from kafka_dt.pipeline.session import is_submitted  # noqa: PLC0415 - as above

    for_spark = master is not None or bool(conf) or is_submitted() or not all(map(is_in_reach, places))
    if choice is EngineChoice.SAIL and for_spark:
        raise click.UsageError(
            "--engine sail takes directories of this machine, without spaces and the like in their paths, and neither "
            "--master nor --conf."
        )
    if not for_spark and choice is not EngineChoice.SPARK:
        try:
            with sail_session() as sail:
                return work(SailEngine(sail))
        except (SailNotStarted, SailFailed) as error:
            if choice is EngineChoice.SAIL:
                raise
            click.echo(f"Spark computes the report instead of Sail: {error.reason}", err=True)
    with started(name, master, conf, delta=True, once=True) as spark:
        return work(SparkEngine(spark))


@contextmanager
def started(
    name: str,
    master: str | None,
    conf: Mapping[str, str],
    *,
    delta: bool = False,
    kafka: bool = False,
    once: bool = False,
    small: bool = False,
) -> Iterator[SparkSession]:
    """Give a running Spark.

    Args:
        name: of the application.
        master: of the option.
        conf: of the option.
        delta: whether Delta tables are read or written.
        kafka: whether Spark's Kafka source is needed.
        once: whether each query is run once.
        small: whether memory matters more than pauses.

    Raises:
        PipelineError: Spark does not start.
        KeyboardInterrupt: Ctrl-C came, whatever the block has raised for it; see `kafka_dt.pipeline.ctrl_c`.
    """
    from kafka_dt.pipeline.ctrl_c import heeding_ctrl_c  # noqa: PLC0415 - pyspark is an extra
    from kafka_dt.pipeline.session import spark_session  # noqa: PLC0415 - as above

    with ExitStack() as stack:
        ctrl_c = stack.enter_context(heeding_ctrl_c())
        with Console(stderr=True).status("Starting Spark"):
            session = spark_session(
                name, master=master, conf=conf, delta=delta, kafka=kafka, once=once, small=small, ctrl_c=ctrl_c
            )
            spark = stack.enter_context(session)
        yield spark
