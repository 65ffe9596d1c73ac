"""Sail for a test, and what a test does on a system that does not let Sail have a network of its own.

Where the system's own `unshare` gets such a network, and Sail does not, Sail is wrong, and the test fails. Without
privileges some systems let one program have it and another not, so that it says nothing there.
"""

from __future__ import annotations

import subprocess
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

from kafka_dt.pipeline.engines import Engine, SailEngine, SparkEngine, sail_session
from kafka_dt.pipeline.errors import SailNotStarted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

_A_DAY_S = 86_400.0
"""Other tests run between two that share a Sail, which stands still meanwhile."""


@contextmanager
def sail_or_spark(spark: Callable[[], SparkSession]) -> Iterator[Engine]:
    """Give Sail where the system lets it run, or Spark."""
    with ExitStack() as stack:
        yield _entered(stack) or SparkEngine(spark())


@contextmanager
def sail_or_skip(still_s: float = _A_DAY_S) -> Iterator[SailEngine]:
    """Give Sail where the system lets it run, until it stands still; skip the test elsewhere."""
    with ExitStack() as stack:
        engine = _entered(stack, still_s)
        if engine is None:
            pytest.skip("this system does not let Sail have a network of its own")
        yield engine


def _entered(stack: ExitStack, still_s: float = _A_DAY_S) -> SailEngine | None:
    try:
        return SailEngine(stack.enter_context(sail_session(still_s=still_s)))
    except SailNotStarted:
        if succeeds("unshare", "--net", "true"):
            raise
        return None


def succeeds(*command: str) -> bool:
    """Say whether a command is there and ends well, such as `unshare --net true`."""
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False
