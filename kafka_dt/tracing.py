"""Traces by OpenTelemetry: a span for each request, and in it one for each round trip that it waits for.

    spans = spans_wanted(os.environ, "worker 0")      # None: nothing is traced
    with spans.request("CreateDelegationToken", attributes) as span: ...
    ended = spans.call("ZooKeeper multi", attributes)  # None outside of a request
    with spans.round_trip("Kafka CreateDelegationToken", attributes): ...
    ended = spans.forwarded("Produce", attributes)     # a request that another server answers
    with spans.connection("Kafka connection", attributes) as span: ...
    await spans.close()

What is traced, and where to, is said by OpenTelemetry's own variables. A worker that traces nothing imports nothing of
it, and its requests pass through no code of this module.

Source: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib.metadata import version
from typing import Any, Final

from kafka_dt.blocking import in_own_thread
from kafka_dt.config import ConfigError
from kafka_dt.extras import installed_by
from kafka_dt.metrics.counts import API_NAMES

CLOSE_S: Final = 3.0
"""How long the last spans may take to be sent when a worker stops."""
EXPORTER: Final = "OTEL_TRACES_EXPORTER"
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_NAME: Final = "kafka-dt"

Attributes = Mapping[str, str | int]


def spans_wanted(environment: Mapping[str, str], process: str) -> Spans | None:
    """Open what makes spans; None if the environment asks for none.

    Args:
        environment: the variables of this process.
        process: what this process is in the node.

    Raises:
        ConfigError: a variable cannot be used, or the extra is missing.
    """
    exporter = environment.get(EXPORTER, "")
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or exporter == "none":
        return None
    if not exporter and not any(environment.get(name) for name in _ENDPOINTS):
        return None
    if exporter not in {"", "otlp", "console"}:
        raise ConfigError(EXPORTER, f"{exporter!r} is not one of otlp, console, none")
    try:
        return Spans(exporter or "otlp", process)
    except ModuleNotFoundError as error:
        raise ConfigError(EXPORTER, f"traces need the extra otel ({installed_by('otel')}): {error}") from None


class Spans:
    """Makes spans, and sends them in a thread.

    Args:
        exporter: `otlp` (by HTTP) or `console`.
        process: what this process is in the node.

    Raises:
        ModuleNotFoundError: the extra is not installed.
    """

    def __init__(self, exporter: str, process: str) -> None:
        from opentelemetry import trace  # noqa: PLC0415 - an extra, imported by workers that trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter  # noqa: PLC0415

        own = {"service.name": _NAME, "service.version": version(_NAME), "service.instance.id": process}
        resource = Resource.create(own).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource)
        sent_by = ConsoleSpanExporter() if exporter == "console" else OTLPSpanExporter()
        self._provider.add_span_processor(BatchSpanProcessor(sent_by))
        self._tracer = self._provider.get_tracer(_NAME, version(_NAME))
        self._trace = trace

    def request(self, name: str, attributes: Attributes) -> AbstractContextManager[Any]:
        """Have a span of a request during a block; an error that leaves the block is its status."""
        span: AbstractContextManager[Any] = self._tracer.start_as_current_span(
            name, kind=self._trace.SpanKind.SERVER, attributes=attributes, record_exception=False
        )
        return span

    def call(self, name: str, attributes: Attributes) -> Callable[[asyncio.Future[Any]], None] | None:
        """Begin the span of a call to another server, within a request; returns what ends it with the call's future."""
        if not self._trace.get_current_span().is_recording():
            return None
        span = self._tracer.start_span(name, kind=self._trace.SpanKind.CLIENT, attributes=attributes)

        def end(outcome: asyncio.Future[Any]) -> None:
            error = None if outcome.cancelled() else outcome.exception()
            if error is not None:
                span.set_status(self._trace.StatusCode.ERROR, type(error).__name__)
            span.end()

        return end

    def round_trip(self, name: str, attributes: Attributes) -> AbstractContextManager[object]:
        """Have the span of a call to another server during a block, within a request; outside of one there is none."""
        return self.connection(name, attributes) if self._trace.get_current_span().is_recording() else nullcontext()

    def forwarded(self, name: str, attributes: Attributes) -> Callable[[str | None], None]:
        """Begin the span of a request that another server answers; returns what ends it, with an error or None."""
        span = self._tracer.start_span(name, kind=self._trace.SpanKind.SERVER, attributes=attributes)

        def end(error: str | None) -> None:
            if error is not None:
                span.set_status(self._trace.StatusCode.ERROR, error)
            span.end()

        return end

    def connection(self, name: str, attributes: Attributes) -> AbstractContextManager[Any]:
        """Have the span of a block that makes a connection to another server."""
        span: AbstractContextManager[Any] = self._tracer.start_as_current_span(
            name, kind=self._trace.SpanKind.CLIENT, attributes=attributes, record_exception=False
        )
        return span

    async def close(self) -> None:
        """Send the last spans, for some seconds at most."""
        with suppress(TimeoutError):
            await asyncio.wait_for(in_own_thread(self._provider.shutdown, "last spans"), CLOSE_S)


def api_name(api_key: int) -> str:
    """Return Kafka's name of an API, such as CreateDelegationToken; its number if it is newer than those known here."""
    return API_NAMES.get(api_key, f"API {api_key}")


def request_attributes(api_key: int, api_version: int, client_address: str, principal: object) -> dict[str, str | int]:
    """Say what every span of a client's request says."""
    return {
        "rpc.system": "kafka",
        "rpc.method": api_name(api_key),
        "kafka.api_version": api_version,
        "client.address": client_address,
        "enduser.id": str(principal),
    }
