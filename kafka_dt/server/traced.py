"""A span for each request that is served here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_dt.tracing import api_name, request_attributes

if TYPE_CHECKING:
    from kafka_dt.server.handlers import Handler, RequestContext
    from kafka_dt.tracing import Spans


def traced(handler: Handler, spans: Spans) -> Handler:
    """Have a span around each request of a handler, with its API, its client and the error in its answer."""

    async def handle(context: RequestContext, body: Any) -> Any:
        header = context.header
        attributes = request_attributes(header.api_key, header.api_version, context.client_host, context.principal)
        with spans.request(api_name(header.api_key), attributes) as span:
            answer = await handler(context, body)
            error = getattr(answer, "error_code", None)
            if error:
                span.set_attribute("kafka.error_code", error.name)
            return answer

    return handle
