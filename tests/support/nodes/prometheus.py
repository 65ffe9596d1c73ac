"""A real Prometheus that scrapes a node every second, with the alerts of `ops/prometheus/alerts.yml`.

    prometheus = Prometheus(programs(), folder, port)
    with prometheus.process.starting():
        prometheus.wait_for_alerts("KafkaDtDown")
        prometheus.query("up")

An alert waits for 1 s here instead of some minutes, and looks back for `WINDOW` instead of 5 to 15 minutes.

Prometheus is built of its Go module, once, into build/prometheus. KAFKA_DT_TEST_PROMETHEUS names a folder that has
`prometheus` and `promtool` already.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

import pytest
import yaml  # type: ignore[import-untyped]

from tests.support.docs.documents import ROOT
from tests.support.processes.ports import free_ports
from tests.support.processes.process import ChildProcess
from tests.support.processes.waiting import eventually

JOB: Final = "kafka-dt"
ALERTS: Final = ROOT / "ops/prometheus/alerts.yml"
DASHBOARD: Final = ROOT / "ops/grafana/kafka-dt.json"
WINDOW: Final = "1m"
WITHIN_S: Final = 60.0

_BUILT: Final = ROOT / "build/prometheus"
_MODULE: Final = "github.com/prometheus/prometheus"
_VERSION: Final = "v0.307.3"
_COMMANDS: Final = ("prometheus", "promtool")
_RATE_INTERVAL: Final = "20s"


@functools.cache
def programs() -> Path:
    """Give the folder of prometheus and promtool; skip where they cannot be built."""
    if given := os.environ.get("KAFKA_DT_TEST_PROMETHEUS"):
        return Path(given)
    if not all((_BUILT / command).exists() for command in _COMMANDS):
        _build()
    return _BUILT


def _build() -> None:
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        _cannot("Prometheus is built with Go, which is missing")
        return
    _BUILT.mkdir(parents=True, exist_ok=True)
    (_BUILT / "go.mod").write_text("module tools\n")
    packages = [f"{_MODULE}/cmd/{command}" for command in _COMMANDS]
    for arguments in (["get", *(f"{each}@{_VERSION}" for each in packages)], ["build", "-o", f"{_BUILT}/", *packages]):
        done = subprocess.run([go, *arguments], cwd=_BUILT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            _cannot(f"go {arguments[0]} cannot build Prometheus: {done.stderr.strip()[-1000:]}")


def _cannot(reason: str) -> None:
    if os.environ.get("CI"):
        raise AssertionError(reason)
    pytest.skip(reason)


def shortened_alerts() -> str:
    """Give the alerts with short times."""
    document = yaml.safe_load(ALERTS.read_text())
    for rule in document["groups"][0]["rules"]:
        rule["expr"] = re.sub(r"\[\d+m\]", f"[{WINDOW}]", rule["expr"])
        rule["for"] = "1s"
    return str(yaml.safe_dump(document))


def dashboard_queries() -> list[str]:
    """Give the queries of the dashboard, for the job that is scraped here."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    texts = [target["expr"] for panel in panels if panel["type"] != "row" for target in panel["targets"]]
    values = {"$job": JOB, "$instance": ".*", "$__rate_interval": _RATE_INTERVAL}
    return [functools.reduce(lambda text, name: text.replace(name, values[name]), values, text) for text in texts]


class Prometheus:
    """A server that scrapes one node.

    Args:
        programs: the folder of its programs.
        folder: where it keeps its data.
        target: the port of the node's metrics.
        scheme: `http` or `https`.
    """

    def __init__(self, programs: Path, folder: Path, target: int, scheme: str = "http") -> None:
        self._port = free_ports(1)
        configuration = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(folder / "alerts.yml")],
            "scrape_configs": [
                {
                    "job_name": JOB,
                    "scheme": scheme,
                    "tls_config": {"insecure_skip_verify": True},
                    "static_configs": [{"targets": [f"127.0.0.1:{target}"]}],
                },
            ],
        }
        (folder / "alerts.yml").write_text(shortened_alerts())
        (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
        command = [
            str(programs / "prometheus"),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self._port}",
        ]
        self.process = ChildProcess("prometheus", command, folder / "prometheus.log")

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Run it while a block runs, which begins when the node has answered."""
        with self.process.starting():
            self.wait_until_scraping()
            yield self
            self.process.stop()

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer of its API."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/api/v1/{path}?{query}", timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[float]:
        """The values that an expression has now, without those that are no number."""
        values = [float(series["value"][1]) for series in self.ask("query", query=expression)["result"]]
        return [value for value in values if value == value]  # noqa: PLR0124 - NaN is not equal to itself

    def wait_until_scraping(self) -> None:
        """Wait until the node has answered."""
        eventually(lambda: bool(self._up() and self.query(f'up{{job="{JOB}"}} == 1')), WITHIN_S)

    def firing(self) -> set[str]:
        """The names of the alerts that fire now."""
        if not self._up():
            return set()
        return {each["labels"]["alertname"] for each in self.ask("alerts")["alerts"] if each["state"] == "firing"}

    def wait_for_alerts(self, *names: str, doing: Callable[[], object] = lambda: None) -> None:
        """Wait until all of some alerts have fired, in any order; `doing` is done again and again."""
        fired: set[str] = set()

        def all_fired() -> bool:
            doing()
            fired.update(self.firing())
            return fired >= set(names)

        try:
            eventually(all_fired, WITHIN_S)
        except AssertionError as error:
            error.add_note(f"{set(names) - fired} did not fire; {fired} did")
            raise

    def wait_for_data(self, queries: list[str], doing: Callable[[], object]) -> None:
        """Wait until all of some queries give something; `doing` is done again and again."""
        empty = queries

        def all_give_something() -> bool:
            nonlocal empty
            doing()
            empty = [each for each in queries if not self.query(each)]
            return not empty

        try:
            eventually(all_give_something, WITHIN_S)
        except AssertionError as error:
            error.add_note(f"without data: {empty}")
            raise

    def _up(self) -> bool:
        try:
            self.ask("status/buildinfo")
        except OSError:
            return False
        return True
