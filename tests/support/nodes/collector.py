"""A collector of traces: what receives a node's spans by OTLP over HTTP.

with collecting() as collector:
    Node(..., environment=collector.environment)
    collector.named("Produce")
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Collector(ThreadingHTTPServer):
    """Keeps the spans that it receives."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receiver)
        self.spans: list[Any] = []
        self.services: set[str] = set()

    @property
    def environment(self) -> dict[str, str]:
        """What tells a node to send its spans here, soon."""
        endpoint = f"http://127.0.0.1:{self.server_port}"
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_BSP_SCHEDULE_DELAY": "100"}

    def named(self, name: str) -> list[Any]:
        """The spans of a name."""
        return [span for span in self.spans if span.name == name]

    def within(self, parent: Any) -> set[str]:
        """The names of the spans within a span."""
        return {span.name for span in self.spans if span.parent_span_id == parent.span_id}


class _Receiver(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: PLC0415 - an extra
            ExportTraceServiceRequest,
        )

        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            raise AssertionError("no compression was asked for")
        request = ExportTraceServiceRequest.FromString(body)
        for of_resource in request.resource_spans:
            self.server.services |= {
                each.value.string_value for each in of_resource.resource.attributes if each.key == "service.name"
            }
            for of_scope in of_resource.scope_spans:
                self.server.spans += of_scope.spans
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as above
        """Say nothing."""


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector."""
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def attributes(span: Any) -> dict[str, str]:
    """The texts that a span has."""
    return {each.key: each.value.string_value for each in span.attributes}
