"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from kafka_dt_protocol import connection
from tests.support import clients
from tests.support.nodes.server import AS_INSTALLED
from tests.support.processes.forked import forking

SOAK = bool(os.environ.get("KAFKA_DT_TEST_SOAK"))
EXAMPLES = 500 if SOAK else 40
"""How many a property is tried with, unless its test says so itself."""

# How long an example takes says something about the machine, not about the code.
settings.register_profile(
    "any machine", max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

SUMMARY_WIDTH = 240
"""Columns of output that goes to a file or a pipe: room for a test's name and the reason why it failed."""


def pytest_terminal_summary(config: pytest.Config) -> None:
    """Let the short summary, which comes next, say why a test failed; in 80 columns only its name has room."""
    if not sys.stdout.isatty():
        config.get_terminal_writer().fullwidth = SUMMARY_WIDTH


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the collector of garbage away from what is collected here: 12,000 tests live to the end.

    It would go through all of them, for half a second, whenever a test makes many objects or calls `gc.collect`.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests of the form that the protocol is not in, and `soak` unless KAFKA_DT_TEST_SOAK is set."""
    left_out = {"compiled" if str(connection.__file__).endswith(".py") else "interpreted"}
    if not SOAK:
        left_out.add("soak")
    config.hook.pytest_deselected(
        items=[item for item in items if left_out & {mark.name for mark in item.iter_markers()}]
    )
    items[:] = [item for item in items if not left_out & {mark.name for mark in item.iter_markers()}]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note what a test that has passed proves of a client."""
    report = yield
    if call.when == "call" and report.passed:
        clients.record(item)
    return report


@pytest.fixture(scope="session", autouse=True)
def no_hypothesis_in_programs() -> Iterator[None]:
    """Hide hypothesis from the programs that tests start, as it is not there where they are used."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(AS_INSTALLED), prepend=os.pathsep)
        yield


@pytest.fixture(scope="session", autouse=True)
def programs_keep_their_bytecode() -> Iterator[None]:
    """Let the programs that tests start write bytecode, though the environment says that Python shall write none.

    Without it each process compiles kafka-dt again: a third of a second, in each worker of each node.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def programs_are_forked() -> Iterator[None]:
    """Let nodes and commands be forked from one process that has imported kafka-dt, unless a test says otherwise."""
    with forking():
        yield
