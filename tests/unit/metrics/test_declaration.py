"""The tables of metrics: what they declare, and that no client can make a series."""

from __future__ import annotations

import re

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.audit import RefusalReason
from kafka_dt.identity.mechanisms import MECHANISMS
from kafka_dt.metrics import Counts, Gauges
from kafka_dt.metrics.counts import TOKEN_ERRORS
from kafka_dt.metrics.declaration import OTHER, Counter, Histogram, Kind, Metric, metrics_of
from kafka_dt.metrics.node import NODE_METRICS
from kafka_dt.server.errors import CODES
from kafka_dt.tokens import TokenError
from kafka_dt_protocol import ApiKey

ALL = (*metrics_of(Counts).values(), *metrics_of(Gauges).values(), *NODE_METRICS.values())
OF_THE_NODE = {"key_id", "listener", "phase", "reachable", "role", "state", "version"}
"""Labels of gauges: their values come from the configuration and the code, never from a client."""


def values(counts: Counts) -> list[float]:
    """The numbers that are not zero."""
    return [value for value in counts.logins._cells if value]


def test_names_are_unique_and_those_of_prometheus() -> None:
    names = [metric.name for metric in ALL]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"kafka_dt_[a-z_]+[a-z]", name) for name in names)
    assert all(metric.name.endswith("_total") == (metric.kind is Kind.COUNTER) for metric in ALL)


@pytest.mark.parametrize("metric", metrics_of(Counts).values(), ids=lambda metric: metric.name)
def test_each_label_of_a_counter_has_named_values_and_one_for_the_rest(metric: Metric) -> None:
    for named in metric.labels.values():
        assert OTHER in named.values()
        assert len(named) < 120


def test_the_labels_of_gauges_are_of_the_node_never_of_clients() -> None:
    labels = {label for metric in (*metrics_of(Gauges).values(), *NODE_METRICS.values()) for label in metric.labels}
    assert labels == OF_THE_NODE


def test_what_a_client_makes_up_counts_as_other() -> None:
    counts = Counts.alone()
    for name in ("User:alice", "x" * 1000, None, "PLAIN\n"):
        counts.logins.add(name, "ok")
    counts.logins.add(OTHER, "ok")
    assert values(counts) == [5]
    counts.request_seconds.observe(0.1, 31_000)
    assert len(values(counts)) == 3


def test_counters_count_each_combination_of_labels() -> None:
    counts = Counts.alone()
    counts.logins.add("PLAIN", "ok")
    counts.logins.add("PLAIN", "ok")
    counts.logins.add("PLAIN", RefusalReason.WRONG_CREDENTIALS)
    counts.gateway_bytes.increase(7, "to_cluster")
    assert sorted(values(counts)) == [1, 2, 7]


def test_a_histogram_counts_an_event_in_the_bucket_whose_bound_it_does_not_exceed() -> None:
    cells = [0.0] * 5
    histogram = Histogram(Metric("kafka_dt_x", Kind.HISTOGRAM, "", buckets=(1.0, 2.0, 3.0)), cells, 0)
    for seconds in (0.5, 1.0, 2.5, 100.0):
        histogram.observe(seconds)
    assert cells == [104.0, 2, 0, 1, 1]


def test_metrics_do_not_share_a_number() -> None:
    counts = Counts.alone()
    for name, metric in metrics_of(Counts).items():
        for keys, _ in metric.series():
            counter = getattr(counts, name)
            counter.add(*keys) if isinstance(counter, Counter) else counter.observe(0, *keys)
    observed = sum(
        len(list(metric.series())) for metric in metrics_of(Counts).values() if metric.kind is Kind.HISTOGRAM
    )
    counted = sum(metric.cells for metric in metrics_of(Counts).values() if metric.kind is Kind.COUNTER)
    assert values(counts) == [1] * (observed + counted)


def test_every_mechanism_and_every_answered_api_has_its_series() -> None:
    assert metrics_of(Counts)["logins"].labels["mechanism"].keys() >= set(MECHANISMS)
    apis = metrics_of(Counts)["request_seconds"].labels["api"]
    assert {apis[ApiKey.CREATE_DELEGATION_TOKEN], apis[ApiKey.SASL_AUTHENTICATE]} == {
        "CreateDelegationToken",
        "SaslAuthenticate",
    }


def test_every_error_about_tokens_has_its_series() -> None:
    answered = {code for error, code in CODES.items() if issubclass(error, TokenError)}
    assert answered | {ErrorCode.unknown_server_error} == set(TOKEN_ERRORS)
