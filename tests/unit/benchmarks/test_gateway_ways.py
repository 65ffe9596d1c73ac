"""Test the figures of a gateway: what the perf tools print, which ways are compared, and which figures are missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.gateways import KAFKA_PROXY, PLUGIN, PROGRAM_VARIABLE, kafka_proxy, kafka_proxy_version
from benchmarks.metrics import THROUGHPUT
from benchmarks.page import filled
from benchmarks.perf_tools import CONSUMED, PRODUCED
from benchmarks.results import Measurement, Results, ScenarioResults
from benchmarks.scenarios import gateway
from benchmarks.scenarios.gateway import PRODUCED as CASES
from benchmarks.servers import BROKER
from benchmarks.targets import TARGETS, Target
from benchmarks.tls import write_key_store, write_trust_store
from tests.unit.benchmarks.test_tables import RUN

CASE = CASES[0].case
OF_PRODUCER = """\
104858 records sent, 20967.4 records/sec (20.48 MB/sec), 310.1 ms avg latency, 801.0 ms max latency.
In steady state.
393216 records sent, 61516.896120 records/sec (60.08 MB/sec), 290.52 ms avg latency, 801.00 ms max latency, \
250 ms 50th, 700 ms 95th, 780 ms 99th, 799 ms 99.9th.
262144 steady state records sent, 92336.386053 records/sec (90.17 MB/sec), 240.31 ms avg latency, \
401.00 ms max latency, 230 ms 50th, 390 ms 95th, 399 ms 99th, 401 ms 99.9th.
"""
OF_CONSUMER = """\
start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, \
fetch.MB.sec, fetch.nMsg.sec
2026-01-02 03:04:05:678, 2026-01-02 03:04:09:798, 1024.0000, 248.5437, 1048576, 254508.7379, 520, 3600, 284.4444, \
291271.1111
"""


def results(**rates: float) -> Results:
    measured = [Measurement(CASE, name.replace("_", "-"), 1, {THROUGHPUT: rate}) for name, rate in rates.items()]
    return Results({"gateway": ScenarioResults(RUN | {"kafka_proxy": "v9.8.7"}, measured)})


def of_the_case(target: Target) -> bool:
    return target.scenario == "gateway" and target.case == CASE


def test_reading_and_writing_have_targets_with_tls_and_without() -> None:
    for scenario in ("gateway", "gateway-tls"):
        targets = [each for each in TARGETS if each.scenario == scenario]
        assert {each.other for each in targets if each.case == gateway.CONSUMED} == {BROKER.name, KAFKA_PROXY.name}
        assert any(each.case == CASE for each in targets)


def test_clients_trust_the_certificate_and_get_no_key(tmp_path: Path) -> None:
    trusted = write_trust_store(write_key_store(tmp_path / "server.pem")).read_text()
    assert trusted.startswith("-----BEGIN CERTIFICATE-----")
    assert "PRIVATE KEY" not in trusted


def test_a_producer_counts_from_when_it_is_warm() -> None:
    assert [float(each["mib_s"]) for each in PRODUCED.finditer(OF_PRODUCER)] == [60.08, 90.17]


def test_a_consumer_counts_from_when_it_has_its_partitions() -> None:
    assert [float(each["mib_s"]) for each in CONSUMED.finditer(OF_CONSUMER)] == [284.4444]


def test_the_gateway_is_compared_with_the_direct_way_and_with_another_proxy() -> None:
    measured = results(broker=100, kafka_dt=90, kafka_proxy=60)
    reached = [each.reached(measured) for each in TARGETS if of_the_case(each)]
    assert [ratio and ratio.median for ratio in reached] == [0.9, 1.5]


def test_what_was_not_measured_is_not_compared() -> None:
    measured = results(broker=100, kafka_dt=90)
    reached = [each.reached(measured) for each in TARGETS if of_the_case(each)]
    assert [ratio and ratio.median for ratio in reached] == [0.9, None]


@pytest.mark.parametrize(("others", "named"), [({"kafka_proxy": 60.0}, True), ({}, False)])
def test_the_page_names_the_version_of_another_program_where_it_was_measured(
    others: dict[str, float], named: bool
) -> None:
    page = filled("<!-- begin gateway -->\n<!-- end gateway -->\n", results(broker=100, kafka_dt=90, **others))
    assert ("Java 17, kafka-proxy v9.8.7;" in page) is named


def test_another_proxy_is_at_hand_with_its_plugin_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / KAFKA_PROXY.name
    program.write_text("#!/bin/sh\necho v1.2.3\n")
    program.chmod(0o755)
    monkeypatch.setenv(PROGRAM_VARIABLE, str(program))
    assert kafka_proxy() is None
    assert kafka_proxy_version() == ""
    (tmp_path / PLUGIN).touch()
    assert kafka_proxy() == program
    assert kafka_proxy_version() == "v1.2.3"
    monkeypatch.setenv(PROGRAM_VARIABLE, str(tmp_path / "elsewhere"))
    assert kafka_proxy() is None
