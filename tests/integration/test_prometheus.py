"""A real Prometheus scrapes a real node: the alerts fire by what they are about, and the dashboard's queries have data.

Prometheus is built of its Go module, once, into build/prometheus; KAFKA_DT_TEST_PROMETHEUS names a folder that has
`prometheus` and `promtool` already.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests.support.nodes.audit import AuditFolder
from tests.support.nodes.metrics import metrics_properties
from tests.support.nodes.node import Node, node_properties
from tests.support.processes.ports import free_ports
from tests.support.processes.process import ChildProcess
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import DESCRIBE

pytestmark = pytest.mark.soak

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "build" / "prometheus"
MODULE = "github.com/prometheus/prometheus"
VERSION = "v0.307.3"
COMMANDS = ("prometheus", "promtool")
WITHIN_S = 60.0
ELSEWHERE = ("gateway_", "certificate_expiry", "quantile", "> 0")
"""What a node without a gateway, TLS and waiting logins has no data for."""


@pytest.fixture(scope="module")
def programs() -> Path:
    """The folder of prometheus and promtool."""
    if given := os.environ.get("KAFKA_DT_TEST_PROMETHEUS"):
        return Path(given)
    if all((BUILT / command).exists() for command in COMMANDS):
        return BUILT
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        pytest.skip("Prometheus is built with Go, which is missing")
    BUILT.mkdir(parents=True, exist_ok=True)
    imports = "\n".join(f'import _ "{MODULE}/cmd/{command}"' for command in COMMANDS)
    (BUILT / "tools.go").write_text(f"//go:build tools\n\npackage tools\n\n{imports}\n")
    (BUILT / "go.mod").write_text(f"module tools\n\nrequire {MODULE} {VERSION}\n")
    packages = [f"{MODULE}/cmd/{command}" for command in COMMANDS]
    for arguments in (["mod", "tidy"], ["build", "-o", f"{BUILT}/", *packages]):
        subprocess.run([go, *arguments], cwd=BUILT, check=True, capture_output=True)
    return BUILT


def test_each_alert_fires_by_what_it_is_about(programs: Path) -> None:
    for arguments in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]):
        done = subprocess.run(
            [programs / "promtool", *arguments],
            cwd=ROOT / "ops/prometheus",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_takes_the_configuration_of_the_containers(programs: Path, tmp_path: Path) -> None:
    text = (ROOT / "docker/monitoring/prometheus.yml").read_text().replace("/etc/alerts", str(ROOT / "ops/prometheus"))
    (tmp_path / "prometheus.yml").write_text(text)
    command = [str(programs / "promtool"), "check", "config", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 rule files found" in done.stdout


class Prometheus:
    """A server that scrapes one node every second."""

    def __init__(self, programs: Path, folder: Path, target: int) -> None:
        self.port = free_ports(1)
        configuration = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(ROOT / "ops/prometheus/alerts.yml")],
            "scrape_configs": [
                {"job_name": "kafka-dt", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]},
            ],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
        command = [
            str(programs / "prometheus"),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]
        self.process = ChildProcess("prometheus", command, folder / "prometheus.log", {})

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer of its API."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}", timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[Any]:
        """The series that an expression gives now."""
        found: list[Any] = self.ask("query", query=expression)["result"]
        return found

    def is_scraping(self) -> bool:
        try:
            return bool(self.query('up{job="kafka-dt"} == 1'))
        except OSError:
            return False


def test_the_rules_load_and_the_queries_of_the_dashboard_have_data(
    programs: Path, zookeeper_connect: str, tmp_path: Path
) -> None:
    port = free_ports(1)
    audit = AuditFolder(tmp_path / "audit").properties()
    properties = node_properties(zookeeper_connect) | metrics_properties(port) | audit
    with Node(tmp_path, properties) as node:
        prometheus = Prometheus(programs, tmp_path, port)
        with prometheus.process.starting():
            eventually(prometheus.is_scraping, WITHIN_S)
            with node.connect(user="alice") as client:
                client.ask(DESCRIBE, 3, owners=None)
            rules = prometheus.ask("rules")["groups"][0]["rules"]
            written = yaml.safe_load((ROOT / "ops/prometheus/alerts.yml").read_text())["groups"][0]["rules"]
            assert [rule["name"] for rule in rules] == [rule["alert"] for rule in written]
            eventually(lambda: bool(prometheus.query("rate(kafka_dt_connections_total[20s]) > 0")), WITHIN_S)
            eventually(lambda: bool(prometheus.query("rate(kafka_dt_request_duration_seconds_count[20s])")), WITHIN_S)
            without = [each for each in queries() if not prometheus.query(each)]
            assert [each for each in without if not any(part in each for part in ELSEWHERE)] == []
            firing = {alert["labels"]["alertname"] for alert in prometheus.ask("alerts")["alerts"]}
            assert not firing
            prometheus.process.stop()


def queries() -> list[str]:
    """The queries of the dashboard, for this node."""
    dashboard = json.loads((ROOT / "ops/grafana/kafka-dt.json").read_text())
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    texts = [target["expr"] for panel in panels for target in panel["targets"]]
    values = {"$job": "kafka-dt", "$instance": ".*", "$__rate_interval": "20s"}
    for name, value in values.items():
        texts = [text.replace(name, value) for text in texts]
    return texts
