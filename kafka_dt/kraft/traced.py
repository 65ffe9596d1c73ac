"""A channel to the cluster that has a span for each round trip of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka_dt.tracing import api_name

if TYPE_CHECKING:
    from kafka_dt.client.login import Channel
    from kafka_dt.tracing import Spans
    from kafka_dt_protocol import ApiKey


class TracedChannel:
    """The same `Channel`, with spans; what a node asks outside of requests has none."""

    def __init__(self, channel: Channel, spans: Spans) -> None:
        self.server: Final = channel.server
        self._channel = channel
        self._spans = spans

    def version(self, api: ApiKey) -> int:
        """Return the version of an API that both sides know."""
        return self._channel.version(api)

    async def request(self, api: ApiKey, **values: Any) -> Any:
        """Send a request and return the answer's entity."""
        attributes = {"rpc.system": "kafka", "rpc.method": api_name(api), "server.address": self.server}
        with self._spans.round_trip(f"Kafka {api_name(api)}", attributes):
            return await self._channel.request(api, **values)
