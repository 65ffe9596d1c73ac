"""The state of a node, by what its workers and its supervisor say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_dt.metrics import MetricsMemory, WorkerPhase
from kafka_dt.monitoring.health import Health, Report, State
from tests.unit.metrics.test_metrics_memory import GAUGES

FIT = replace(GAUGES, unready=(), staleness_s=1.0, sampled_s=0.0)


class Node:
    """A node of two workers."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.memory = MetricsMemory.alone(2)
        self.health = Health(self.memory, lambda: self.now_s)

    def serves(self, number: int, gauges: object = FIT) -> None:
        self.memory.enter(number, WorkerPhase.READY)
        self.memory.publish(number, gauges)  # type: ignore[arg-type]

    @property
    def state(self) -> State:
        return self.health.report().state


@pytest.fixture
def node() -> Node:
    return Node()


def test_a_node_starts_until_a_worker_serves(node: Node) -> None:
    assert node.health.report() == Report(State.STARTING, ("no worker serves yet",))
    node.memory.enter(0, WorkerPhase.STARTING)
    assert node.state is State.STARTING
    node.serves(0)
    assert node.health.report() == Report(State.READY)
    assert node.health.report().is_ready


def test_a_worker_that_is_being_replaced_takes_no_readiness_from_the_others(node: Node) -> None:
    node.serves(0)
    node.serves(1)
    node.memory.enter(1, WorkerPhase.NONE)
    assert node.state is State.READY


def test_a_stale_worker_is_named_with_its_staleness(node: Node) -> None:
    node.serves(0)
    node.serves(1, replace(FIT, staleness_s=31.0))
    reason = "worker 1: changes of tokens have not been heard of for 31 s, the limit is 30 s"
    assert node.health.report() == Report(State.STALE, (reason,))


def test_a_worker_that_has_proved_nothing_is_stale(node: Node) -> None:
    node.serves(0, replace(FIT, staleness_s=float("inf")))
    assert node.health.report().reasons == ("worker 0: it is not known which tokens were revoked",)


def test_the_staleness_of_a_worker_that_hangs_grows(node: Node) -> None:
    node.serves(0)
    states = []
    for node.now_s in (29.0, 30.0):
        states.append(node.state)
    assert states == [State.READY, State.STALE]
    ((_, gauges),) = node.health.living()
    assert (gauges.staleness_s, gauges.loop_lag_s) == (31.0, 29.0)


def test_a_worker_that_samples_on_time_has_the_lag_that_it_measured(node: Node) -> None:
    node.serves(0)
    node.now_s = 1.5
    ((_, gauges),) = node.health.living()
    assert gauges.loop_lag_s == FIT.loop_lag_s


def test_a_node_without_tokens_is_never_stale(node: Node) -> None:
    node.serves(0, replace(FIT, staleness_s=None, staleness_limit_s=None))
    node.now_s = 1000.0
    assert node.state is State.READY


def test_an_upstream_that_does_not_answer_is_a_state_with_its_reason(node: Node) -> None:
    node.serves(0)
    node.serves(1, replace(FIT, unready=("the upstream cluster cannot be reached",)))
    reason = "worker 1: the upstream cluster cannot be reached"
    assert node.health.report() == Report(State.UNREACHABLE, (reason,))


def test_a_node_that_drains_says_so_whatever_its_workers_do(node: Node) -> None:
    node.serves(0, replace(FIT, staleness_s=31.0))
    node.memory.drain()
    assert node.health.report() == Report(State.DRAINING, ("the node was told to stop",))
