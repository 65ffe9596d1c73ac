"""Two nodes on an ensemble of three ZooKeepers whose members, links and clocks fail: no answer contradicts another.

`make test` breaks things for a quarter of a minute, `make soak` for ten.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.chaos.ensemble_faults import clock_jumps, ensemble_faults
from tests.chaos.fault_run import FaultRun, node_faults
from tests.support.nodes.node import Node, node_properties
from tests.support.processes.ports import free_ports
from tests.support.processes.wall_clock import NoCompiler, WallClock
from tests.support.zookeeper.ensemble import Ensemble

_LOG = logging.getLogger(__name__)
"""The faults and the counts, shown with `--log-cli-level=INFO`."""

SOAK = bool(os.environ.get("KAFKA_DT_TEST_SOAK"))
SECONDS = 600 if SOAK else 15
NAMES = ("one", "two")
LISTENERS = 3
LONGEST_FAULT_S = 25.0 if SOAK else 9.0
SESSION_TIMEOUT_MS = 3_000
MAX_STALENESS_MS = 4_000
TOKEN_LIFETIME_MS = 1_800_000
"""Longer than any run, and shorter than a clock jumps: a node that trusts its own clock deletes tokens for all."""


@pytest.fixture
def ensemble(tmp_path: Path) -> Iterator[Ensemble]:
    with Ensemble(tmp_path / "ensemble") as made:
        yield made


@pytest.fixture
def clocks(tmp_path: Path) -> dict[str, WallClock]:
    """The clocks of the nodes by their names; none where there is no compiler, and then no clock jumps."""
    try:
        return {name: WallClock(tmp_path / f"clock-{name}") for name in NAMES}
    except NoCompiler as reason:
        if os.environ.get("CI"):
            raise
        _LOG.warning("No clock jumps: %s", reason)
        return {}


@contextlib.contextmanager
def two_nodes(folder: Path, connect: str, clocks: Mapping[str, WallClock]) -> Iterator[list[Node]]:
    properties = node_properties(
        connect,
        kafka_dt_workers=2 if SOAK else 1,
        zookeeper_session_timeout_ms=SESSION_TIMEOUT_MS,
        kafka_dt_zookeeper_max_staleness_ms=MAX_STALENESS_MS,
        delegation_token_max_lifetime_ms=TOKEN_LIFETIME_MS,
        connection_failed_authentication_delay_ms=0,  # else logins by deleted tokens would soon be rare
    )
    with contextlib.ExitStack() as stack:
        nodes = []
        for name in NAMES:
            environment = clocks[name].environment if clocks else None
            # Clients find it there when it has started again.
            listeners = str(properties["listeners"])
            for port in range(first := free_ports(LISTENERS), first + LISTENERS):
                listeners = listeners.replace(":0", f":{port}", 1)
            own = properties | {"listeners": listeners}
            nodes.append(stack.enter_context(Node(folder / name, own, name, environment)))
        yield nodes
        for node in nodes:
            node.check_log()


@pytest.mark.timeout(SECONDS + 300)
async def test_no_answer_contradicts_another_while_zookeepers_and_nodes_fail(
    ensemble: Ensemble, clocks: dict[str, WallClock], tmp_path: Path
) -> None:
    with two_nodes(tmp_path, ensemble.connect, clocks) as nodes:
        run = FaultRun(
            nodes=nodes,
            seconds=SECONDS,
            longest_fault_s=LONGEST_FAULT_S,
            staleness_ms=MAX_STALENESS_MS,
            heal=ensemble.heal,
            cut_off="connection to ZooKeeper suspended",
        )
        await run.go(
            lambda shared, stopped: [
                *clock_jumps(clocks, shared, stopped),
                *ensemble_faults(ensemble, stopped),
                *node_faults(nodes, stopped),
            ]
        )
