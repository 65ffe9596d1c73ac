"""What the endpoint answers: `/metrics`, `/livez` and `/readyz`.

To render the metrics takes some milliseconds, so they are shown again for `FRESH_S`, however often they are asked for.
Health is open to all who reach the port, and says no more than a state and its reasons. Metrics may ask for a password.

Source: Kubernetes, "Kubernetes API health endpoints" (the names of the paths); RFC 7617 (basic authentication).
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from kafka_dt.monitoring.http import HttpAnswer, HttpRequest

if TYPE_CHECKING:
    from kafka_dt.monitoring.health import Health

FRESH_S: Final = 0.5
"""How old the metrics that are shown may be, in seconds."""
TEXT_FORMAT: Final = "text/plain; version=0.0.4; charset=utf-8"
"""Prometheus' text format, which every scraper reads."""
_LOGIN_NEEDED: Final = HttpAnswer(
    b"A user and a password are needed\n",
    HTTPStatus.UNAUTHORIZED,
    headers=(("WWW-Authenticate", 'Basic realm="kafka-dt", charset="UTF-8"'),),
)


class Pages:
    """Answers requests.

    Args:
        render: gives the metrics as text.
        health: of the node.
        login: user and password of `/metrics`, `user:password`; empty where it asks for none.
        monotonic: a clock in seconds.
    """

    def __init__(
        self, render: Callable[[], bytes], health: Health, *, login: str, monotonic: Callable[[], float]
    ) -> None:
        self._render = render
        self._health = health
        self._authorization = b"Basic " + base64.b64encode(login.encode()) if login else b""
        self._monotonic = monotonic
        self._rendered = HttpAnswer(b"")
        self._fresh_until_s = float("-inf")
        self._pages: Mapping[str, Callable[[HttpRequest], HttpAnswer]] = {
            "/metrics": self._metrics,
            "/livez": lambda _: HttpAnswer(b"alive\n"),
            "/readyz": self._ready,
        }

    def answer(self, request: HttpRequest) -> HttpAnswer:
        """Answer a request."""
        page = self._pages.get(request.path)
        if page is None:
            return HttpAnswer(f"There are {' '.join(self._pages)}\n".encode(), HTTPStatus.NOT_FOUND)
        return page(request)

    def _metrics(self, request: HttpRequest) -> HttpAnswer:
        given = request.headers.get(b"authorization", b"")
        if self._authorization and not hmac.compare_digest(given, self._authorization):
            return _LOGIN_NEEDED
        if self._monotonic() >= self._fresh_until_s:
            self._rendered = HttpAnswer(self._render(), content_type=TEXT_FORMAT)
            self._fresh_until_s = self._monotonic() + FRESH_S
        return self._rendered

    def _ready(self, _: HttpRequest) -> HttpAnswer:
        report = self._health.report()
        status = HTTPStatus.OK if report.is_ready else HTTPStatus.SERVICE_UNAVAILABLE
        return HttpAnswer("".join(f"{line}\n" for line in (report.state, *report.reasons)).encode(), status)
