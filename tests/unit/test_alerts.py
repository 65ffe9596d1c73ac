"""The alerts and the dashboard ask for metrics that exist, and each alert has its page, its test and its words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from kafka_dt.metrics import Counts, Gauges
from kafka_dt.metrics.declaration import Kind, metrics_of
from kafka_dt.metrics.node import NODE_METRICS
from tests.support.docs.documents import ROOT, read

PAGE = "docs/how-to/alerts.md"
ALERTS: list[dict[str, Any]] = yaml.safe_load((ROOT / "ops/prometheus/alerts.yml").read_text())["groups"][0]["rules"]
TESTS = yaml.safe_load((ROOT / "ops/prometheus/alerts.test.yml").read_text())["tests"]
DASHBOARD = json.loads((ROOT / "ops/grafana/kafka-dt.json").read_text())
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] if panel["type"] != "row" for target in panel["targets"]]
LIVE_TESTS = (
    "tests/integration/test_prometheus.py",
    "tests/interop/gateway/test_gateway_alerts.py",
    "tests/interop/kraft/test_kraft_alerts.py",
)
DECLARED = (*metrics_of(Counts).values(), *metrics_of(Gauges).values(), *NODE_METRICS.values())
LABELS_OF_PROMETHEUS = {"job", "instance", "le", "worker", "__name__"}


def names() -> Iterator[str]:
    """The names of all series."""
    for metric in DECLARED:
        if metric.kind is Kind.HISTOGRAM:
            yield from (f"{metric.name}_{part}" for part in ("bucket", "count", "sum"))
        else:
            yield metric.name


KNOWN = set(names())


@pytest.mark.parametrize("expression", [*(alert["expr"] for alert in ALERTS), *QUERIES])
def test_what_is_asked_for_is_declared(expression: str) -> None:
    asked = {name for name in re.findall(r"\bkafka_dt_[a-z_]+(?![a-z_]*\()", expression) if not name.endswith("_")}
    assert asked or "up{" in expression or "__name__" in expression
    assert asked <= KNOWN
    labels = {label for metric in DECLARED for label in metric.labels} | LABELS_OF_PROMETHEUS
    assert set(re.findall(r"(\w+)(?:=~|!=|=)\"", expression)) <= labels


def test_every_metric_is_on_the_dashboard() -> None:
    shown = " ".join(QUERIES)
    facts = {"kafka_dt_build_info", "kafka_dt_start_time_seconds"}
    assert {metric.name for metric in DECLARED if metric.name not in shown} == facts


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_an_alert_leads_to_its_chapter_and_has_a_test(alert: dict[str, Any]) -> None:
    name = alert["alert"]
    assert f"\n## {name}\n" in read(PAGE)
    assert alert["annotations"]["runbook_url"] == f"{PAGE}#{name.lower()}"
    assert alert["labels"]["severity"] in {"critical", "warning"}
    fires = [test for group in TESTS for test in group["alert_rule_test"] if test["alertname"] == name]
    assert any(test["exp_alerts"] for test in fires)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_an_alert_is_caused_at_a_live_node(alert: dict[str, Any]) -> None:
    assert any(f'"{alert["alert"]}"' in read(path) for path in LIVE_TESTS)


def test_every_chapter_is_about_an_alert() -> None:
    assert set(re.findall(r"^## (\w+)$", read(PAGE), re.MULTILINE)) == {alert["alert"] for alert in ALERTS}


def test_one_alert_is_about_metrics_that_are_missing() -> None:
    assert any(alert["expr"].startswith("absent(") for alert in ALERTS)
