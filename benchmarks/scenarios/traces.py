"""Changes on 16 connections at a node without traces, which is the default, and at one that sends them.

Without OpenTelemetry's variables a node does not import OpenTelemetry and serves each request by the same handlers, so
every other table of this page is that of a node without traces. With them each request is a span, and each round trip
to ZooKeeper another within it. The collector takes the spans and drops them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from benchmarks.bench import Bench
from benchmarks.metrics import SERVER_CPU
from benchmarks.scenarios import changes
from benchmarks.servers import KAFKA_DT

TITLE: Final = "Changes with traces"
COMPARED: Final = SERVER_CPU
AXIS: Final = ""
CONNECTIONS: Final = 16


def run(bench: Bench) -> None:
    """Measure both nodes in turns."""
    with _collector() as endpoint:
        traced = replace(KAFKA_DT, name="kafka-dt, traces", environment=(("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),))
        servers = bench.stage(bench.plan.few, (KAFKA_DT, traced))
        for round_number, server in bench.rounds("changes with traces", servers):
            changes.measure(bench, server, round_number, CONNECTIONS)
        bench.clear_stage()  # the collector ends


@contextmanager
def _collector() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Dropper)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Dropper(BaseHTTPRequestHandler):
    """Takes what exporters send."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        """Say nothing."""
