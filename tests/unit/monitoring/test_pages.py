"""The pages of the metrics listener: who may read what."""

from __future__ import annotations

import base64
from http import HTTPStatus

import pytest

from kafka_dt.metrics import MetricsMemory, WorkerPhase
from kafka_dt.monitoring.health import Health
from kafka_dt.monitoring.http import HttpAnswer, HttpRequest
from kafka_dt.monitoring.pages import FRESH_S, Pages
from tests.unit.monitoring.test_health import FIT


class Endpoint:
    """The pages of a node of one worker."""

    def __init__(self, login: str = "") -> None:
        self.now_s = 0.0
        self.rendered = 0
        self.memory = MetricsMemory.alone(1)
        health = Health(self.memory, lambda: self.now_s)
        self.pages = Pages(self._render, health, login=login, monotonic=lambda: self.now_s)

    def get(self, path: str, authorization: bytes | None = None) -> HttpAnswer:
        headers = {} if authorization is None else {b"authorization": authorization}
        return self.pages.answer(HttpRequest(path, headers))

    def _render(self) -> bytes:
        self.rendered += 1
        return b"%d\n" % self.rendered


def basic(text: str) -> bytes:
    return b"Basic " + base64.b64encode(text.encode())


def test_metrics_are_rendered_at_most_once_in_a_while() -> None:
    endpoint = Endpoint()
    assert [endpoint.get("/metrics").body for _ in range(3)] == [b"1\n"] * 3
    endpoint.now_s = FRESH_S
    assert endpoint.get("/metrics").body == b"2\n"


def test_readiness_is_a_status_a_state_and_its_reasons() -> None:
    endpoint = Endpoint()
    assert endpoint.get("/readyz") == HttpAnswer(b"starting\nno worker serves yet\n", HTTPStatus.SERVICE_UNAVAILABLE)
    endpoint.memory.enter(0, WorkerPhase.READY)
    endpoint.memory.publish(0, FIT)
    assert endpoint.get("/readyz") == HttpAnswer(b"ready\n")


def test_a_node_that_answers_is_alive() -> None:
    assert endpoint_status("/livez") == HTTPStatus.OK


def endpoint_status(path: str) -> HTTPStatus:
    return Endpoint().get(path).status


@pytest.mark.parametrize("path", ["/", "/metrics/", "/metrics/..", "*", "/admin"])
def test_there_are_no_other_pages(path: str) -> None:
    assert endpoint_status(path) == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize(
    "authorization",
    [None, b"", basic("prometheus:wrong"), basic("other:secret"), b"Bearer secret", basic("prometheus:secret") + b" "],
)
def test_metrics_may_ask_for_a_password(authorization: bytes | None) -> None:
    answer = Endpoint("prometheus:secret").get("/metrics", authorization)
    assert answer.status == HTTPStatus.UNAUTHORIZED
    assert answer.headers == (("WWW-Authenticate", 'Basic realm="kafka-dt", charset="UTF-8"'),)


def test_the_right_password_opens_metrics() -> None:
    assert Endpoint("prometheus:secret").get("/metrics", basic("prometheus:secret")).status == HTTPStatus.OK


def test_health_asks_for_no_password() -> None:
    endpoint = Endpoint("prometheus:secret")
    assert endpoint.get("/livez").status == HTTPStatus.OK
    assert endpoint.get("/readyz").status == HTTPStatus.SERVICE_UNAVAILABLE
