"""The numbers of a node as Prometheus reads them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafka_dt.metrics import Counts, Gauges, MetricsMemory, WorkerPhase
from kafka_dt.metrics.declaration import metrics_of
from kafka_dt.metrics.node import NODE_METRICS
from kafka_dt.monitoring.exposition import Exposition
from kafka_dt.monitoring.health import Health
from tests.unit.metrics.test_metrics_memory import GAUGES

Samples = dict[tuple[str, ...], float]
"""Values by name and values of labels, in the order of the names of the labels."""


@pytest.fixture
def memory() -> MetricsMemory:
    return MetricsMemory.alone(2)


def text(memory: MetricsMemory) -> str:
    health = Health(memory, lambda: GAUGES.sampled_s)
    return Exposition(memory, health, started_s=7.0, certificate_s=lambda: 9.0).render().decode()


def samples(memory: MetricsMemory) -> Samples:
    families = text_string_to_metric_families(text(memory))
    return {(each.name, *each.labels.values()): each.value for family in families for each in family.samples}


def serve(memory: MetricsMemory, number: int, gauges: Gauges) -> None:
    memory.enter(number, WorkerPhase.READY)
    memory.publish(number, gauges)


def test_counters_are_the_sums_of_all_workers_that_there_were(memory: MetricsMemory) -> None:
    memory.counts(0).connections.add()
    memory.counts(1).connections.add()
    memory.enter(1, WorkerPhase.NONE)
    assert samples(memory)["kafka_dt_connections_total",] == 2


def test_a_counter_is_there_before_its_first_event_unless_its_labels_have_many_values(memory: MetricsMemory) -> None:
    found = samples(memory)
    assert found["kafka_dt_logins_total", "PLAIN", "ok"] == 0
    assert found["kafka_dt_audit_events_lost_total", "ok", "topic", "login"] == 0
    assert not [name for name, *_ in found if name.startswith("kafka_dt_gateway_requests")]
    memory.counts(0).gateway_requests.add(0)
    assert samples(memory)["kafka_dt_gateway_requests_total", "Produce"] == 1


def test_a_histogram_is_cumulated_and_has_its_sum(memory: MetricsMemory) -> None:
    for seconds in (0.0005, 0.05, 60.0):
        memory.counts(0).request_seconds.observe(seconds, 3)
    found = samples(memory)
    name = "kafka_dt_request_duration_seconds"
    bounds = ("0.001", "0.005", "0.025", "0.1", "0.5", "2.5", "+Inf")
    assert [found[f"{name}_bucket", "Metadata", bound] for bound in bounds] == [1, 1, 1, 2, 2, 2, 3]
    assert found[f"{name}_count", "Metadata"] == 3
    assert math.isclose(found[f"{name}_sum", "Metadata"], 60.0505)


def test_gauges_are_joined_as_they_are_declared(memory: MetricsMemory) -> None:
    serve(memory, 0, GAUGES)
    serve(memory, 1, replace(GAUGES, tokens=4, staleness_s=2.0, connections={"SASL": 5, "TLS": 1}, unready=()))
    found = samples(memory)
    assert found["kafka_dt_tokens",] == 4
    assert found["kafka_dt_connections", "SASL"] == 7
    assert found["kafka_dt_connections", "TLS"] == 1
    assert found["kafka_dt_staleness_seconds", "0"] == math.inf
    assert found["kafka_dt_staleness_seconds", "1"] == 2.0
    assert found["kafka_dt_secret_key_info", "0011", "current"] == 1


def test_the_gauges_of_a_dead_worker_vanish(memory: MetricsMemory) -> None:
    serve(memory, 0, GAUGES)
    memory.enter(0, WorkerPhase.NONE)
    assert not [name for name, *_ in samples(memory) if name == "kafka_dt_tokens"]
    assert samples(memory)["kafka_dt_workers", "ready"] == 0


def test_what_does_not_apply_has_no_series(memory: MetricsMemory) -> None:
    serve(memory, 0, replace(GAUGES, staleness_s=None, upstream_connections=None, certificates={}))
    names = {name for name, *_ in samples(memory)}
    assert not names & {
        "kafka_dt_staleness_seconds",
        "kafka_dt_gateway_upstream_connections_open",
        "kafka_dt_certificate_expiry_timestamp_seconds",
    }


def test_a_node_tells_its_state_and_its_facts(memory: MetricsMemory) -> None:
    serve(memory, 0, replace(GAUGES, staleness_s=1.0, unready=()))
    found = samples(memory)
    assert found["kafka_dt_state", "ready"] == 1
    assert found["kafka_dt_state", "draining"] == 0
    assert found["kafka_dt_workers", "configured"] == 2
    assert found["kafka_dt_start_time_seconds",] == 7
    assert found["kafka_dt_metrics_certificate_expiry_timestamp_seconds",] == 9


def test_every_declared_metric_is_shown_with_its_words(memory: MetricsMemory) -> None:
    everything = replace(
        GAUGES,
        upstream_connections=1,
        upstream_brokers={"yes": 1},
        certificates={"TLS": 1.0},
        store_connected=False,
        clock_ahead_s=0.0,
        news_silence_s=1.0,
    )
    serve(memory, 0, everything)
    shown = text(memory)
    for metric in (*metrics_of(Counts).values(), *metrics_of(Gauges).values(), *NODE_METRICS.values()):
        words = metric.doc.partition("[")[0]
        assert f"# HELP {metric.name} {words}" in shown
    assert "](" not in shown
