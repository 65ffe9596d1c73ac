"""A span for each request that is served here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_dt_protocol import ApiKey

if TYPE_CHECKING:
    from kafka_dt.server.handlers import Handler, RequestContext
    from kafka_dt.tracing import Spans


def traced(handler: Handler, spans: Spans) -> Handler:
    """Have a span around each request of a handler, with its API, its client and the error in its answer."""

    async def handle(context: RequestContext, body: Any) -> Any:
        header = context.header
        attributes: dict[str, str | int] = {
            "rpc.system": "kafka",
            "rpc.method": (name := _camel_case(ApiKey(header.api_key).name)),
            "kafka.api_version": header.api_version,
            "client.address": context.client_host,
            "enduser.id": str(context.principal),
        }
        with spans.request(name, attributes) as span:
            answer = await handler(context, body)
            error = getattr(answer, "error_code", None)
            if error:
                span.set_attribute("kafka.error_code", error.name)
            return answer

    return handle


def _camel_case(name: str) -> str:
    """Write the name of an API as Kafka does: CREATE_DELEGATION_TOKEN is CreateDelegationToken."""
    return "".join(part.title() for part in name.split("_"))
