"""The metrics and the health of a node in tests, as a scraper sees them.

with Node(folder, {**properties, **metrics_properties(port := free_ports(1))}) as node:
    endpoint = MetricsEndpoint(port)
    endpoint.value("kafka_dt_logins_total", mechanism="PLAIN", result="ok")
    endpoint.readiness()             # (200, ["ready"])
"""

from __future__ import annotations

import base64
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

TIMEOUT_S = 20.0


def metrics_properties(port: int) -> dict[str, object]:
    """The setting of a listener on this machine."""
    return {"kafka.dt.metrics.listener": f"http://127.0.0.1:{port}"}


@dataclass
class MetricsEndpoint:
    """The metrics listener of a node.

    `login` is user and password, `user:password`.
    """

    port: int
    login: str = ""
    context: ssl.SSLContext | None = None
    host: str = "127.0.0.1"
    """Without TLS."""
    _headers: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        if self.login:
            self._headers["Authorization"] = "Basic " + base64.b64encode(self.login.encode()).decode()

    @property
    def url(self) -> str:
        """Where it is, without a path."""
        return f"http://{self.host}:{self.port}" if self.context is None else f"https://localhost:{self.port}"

    def get(self, path: str) -> tuple[int, str]:
        """The status and the text of a page."""
        request = urllib.request.Request(self.url + path, headers=self._headers)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=self.context) as answer:  # noqa: S310
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()

    def readiness(self) -> tuple[int, list[str]]:
        """The status of `/readyz`, and its lines: the state and the reasons."""
        status, text = self.get("/readyz")
        return status, text.splitlines()

    def scrape(self) -> str:
        """The text of `/metrics`."""
        status, text = self.get("/metrics")
        assert status == 200, text
        return text

    def series(self, name: str) -> dict[tuple[tuple[str, str], ...], float]:
        """The values of a metric by their labels."""
        families = text_string_to_metric_families(self.scrape())
        return {
            tuple(sorted(each.labels.items())): each.value
            for family in families
            for each in family.samples
            if each.name == name
        }

    def value(self, name: str, **labels: str) -> float | None:
        """The value of one series; None if there is none."""
        return self.series(name).get(tuple(sorted(labels.items())))
