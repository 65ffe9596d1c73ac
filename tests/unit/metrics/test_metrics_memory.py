"""The numbers of a node in memory: they survive a worker, and what it measured does not."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from kafka_dt.metrics import Counts, Gauges, MetricsMemory, WorkerPhase
from kafka_dt.processes.node_memory import node_memory

WORKERS = 2
SUPERVISOR = WORKERS
GAUGES = Gauges(
    sampled_s=1.5,
    unready=("no upstream",),
    tokens=3,
    tokens_ending=1,
    tokens_unreadable=0,
    staleness_s=float("inf"),
    staleness_limit_s=30.0,
    store_connected=True,
    clock_ahead_s=0.0,
    news_silence_s=None,
    loop_lag_s=0.01,
    connections={"SASL": 2},
    derivations_waiting=0,
    upstream_connections=None,
    upstream_brokers={},
    keys={"0011": "current"},
    certificates={},
    resident_bytes=1 << 20,
)


def test_a_successor_counts_on_where_its_predecessor_was_killed() -> None:
    memory = MetricsMemory.alone(WORKERS)
    memory.counts(0).connections.add()
    memory.counts(0).connections.add()
    memory.counts(1).connections.add()
    memory.counts(SUPERVISOR).worker_restarts.add()
    assert [total for total in memory.totals() if total] == [3, 1]


def test_frequent_events_are_taken_over_once() -> None:
    memory = MetricsMemory.alone(1)
    counts = memory.counts(0)
    counts.frequent.connections += 2
    counts.frequent.tokens_found += 3
    counts.frequent.logins["PLAIN"] += 4
    counts.frequent.logins["made up"] += 5
    counts.frequent.to_cluster_bytes += 6
    counts.frequent.to_clients_bytes += 7
    counts.frequent.forwarded[0] += 8
    counts.frequent.forwarded[31_000] += 9
    assert not any(memory.totals())
    counts.take_over()
    counts.take_over()
    assert sorted(total for total in memory.totals() if total) == [2, 3, 4, 5, 6, 7, 8, 9]


def test_processes_see_each_others_numbers() -> None:
    with node_memory(metrics=MetricsMemory.size(WORKERS)) as files:
        worker, reader = (MetricsMemory.shared(files["metrics"], WORKERS) for _ in range(2))
        worker.counts(1).logins.add("PLAIN", "ok")
        worker.publish(1, GAUGES)
        worker.enter(1, WorkerPhase.READY)
        assert sum(reader.totals()) == 1
        assert (reader.gauges(0), reader.gauges(1)) == (None, GAUGES)
        assert (reader.phase(0), reader.phase(1)) == (WorkerPhase.NONE, WorkerPhase.READY)
        assert not reader.draining
        worker.drain()
        assert reader.draining


def test_the_gauges_of_a_worker_go_when_it_ends() -> None:
    memory = MetricsMemory.alone(WORKERS)
    memory.publish(0, GAUGES)
    memory.enter(0, WorkerPhase.NONE)
    memory.enter(0, WorkerPhase.STARTING)
    assert memory.gauges(0) is None


def test_gauges_that_are_being_written_are_not_read() -> None:
    raw = bytearray(MetricsMemory.size(WORKERS))
    memory = MetricsMemory(raw, WORKERS)
    memory.publish(1, GAUGES)
    at = raw.index(b'"tokens"')
    raw[at + 1 : at + 3] = b"XX"
    assert memory.gauges(1) is None


def test_gauges_that_are_too_long_are_left_out_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    memory = MetricsMemory.alone(1)
    with caplog.at_level(logging.ERROR):
        memory.publish(0, replace(GAUGES, connections={f"LISTENER{number}": 1 for number in range(10_000)}))
    assert memory.gauges(0) is None
    assert "The gauges of this worker are not shown" in caplog.text


def test_the_numbers_of_many_workers_stay_small() -> None:
    assert MetricsMemory.size(64) < 64 * 128 * 1024
    assert Counts.cells() < 2_000
