"""The engine that a report takes by itself: Sail where it can run, Spark elsewhere."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from kafka_dt.pipeline.engines import Engine, SailEngine, SparkEngine, sail_session
from kafka_dt.pipeline.errors import SailNotStarted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession


@contextmanager
def sail_or_spark(spark: Callable[[], SparkSession]) -> Iterator[Engine]:
    """Give Sail, or Spark where the system does not let Sail have a network of its own."""
    with ExitStack() as stack:
        try:
            engine: Engine = SailEngine(stack.enter_context(sail_session()))
        except SailNotStarted:
            engine = SparkEngine(spark())
        yield engine
