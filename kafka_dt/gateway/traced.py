"""The intake of a gateway that traces: each request that it forwards has a span until its answer is whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafka_dt.gateway.forwarding import Forwarding, GatewayServices, Side
from kafka_dt.tracing import Spans, api_name, request_attributes

if TYPE_CHECKING:
    from kafka_dt.server.connections.connection import ClientConnection
    from kafka_dt.server.connections.services import ConnectionServices
    from kafka_dt_protocol.rewriting import RequestStart


class TracedForwarding(Forwarding):
    """The same, with spans."""

    def __init__(
        self,
        connection: ClientConnection,
        services: ConnectionServices,
        gateway: GatewayServices,
        broker_id: int | None = None,
        *,
        spans: Spans,
    ) -> None:
        super().__init__(connection, services, gateway, broker_id)
        self._spans = spans
        self._under_way: deque[Callable[[str | None], None]] = deque()
        """What ends the spans of the requests whose answers are due, in their order."""

    def upstream_data(self, data: bytes) -> None:
        """Take answers, and end the spans of those that are whole."""
        super().upstream_data(data)
        while len(self._under_way) > self._answers.outstanding:
            self._under_way.popleft()(None)

    def lost(self) -> None:
        """End the other side as well, and the spans of the requests whose answers are lost."""
        super().lost()
        while self._under_way:
            self._under_way.popleft()("the connection has ended before the answer")

    def _side_of(self, request: RequestStart) -> Side | None:
        side = super()._side_of(request)
        if side is Side.UPSTREAM:
            self._begin_span(request)
        return side

    def _begin_span(self, request: RequestStart) -> None:
        connection, link = self._connection, self.upstream.link
        attributes = request_attributes(
            request.api_key, request.api_version, connection.client_host, connection.authenticator.principal
        )
        if link is not None:
            attributes["server.address"] = link.server
        end = self._spans.forwarded(api_name(request.api_key), attributes)
        if request.answered:
            self._under_way.append(end)
        else:
            end(None)
