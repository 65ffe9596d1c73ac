"""The parts of a gateway that trace: requests that it forwards, and connections that it makes for clients."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from kafka_dt.gateway.connecting import Connector
from kafka_dt.gateway.forwarding import Forwarding, KeptRequest, Side
from kafka_dt.tracing import Attributes, Spans, api_name, request_attributes

if TYPE_CHECKING:
    from kafka_dt.client import Address, ClientConfig
    from kafka_dt.gateway.identities import Identities
    from kafka_dt.gateway.own_tokens import OwnTokens
    from kafka_dt.gateway.services import GatewayServices
    from kafka_dt.gateway.upstream import Upstream, UpstreamListener
    from kafka_dt.metrics import Counts
    from kafka_dt.server.connections.connection import ClientConnection
    from kafka_dt.server.connections.services import ConnectionServices
    from kafka_dt.tokens import Principal
    from kafka_dt_protocol.rewriting import RequestStart


class TracedConnector(Connector):
    """The same, with a span for each connection from the search for a login until a broker has taken it."""

    def __init__(
        self,
        config: ClientConfig,
        identities: Identities,
        *,
        own_tokens: OwnTokens | None,
        counts: Counts,
        spans: Spans,
    ) -> None:
        super().__init__(config, identities, own_tokens=own_tokens, counts=counts)
        self._spans = spans

    async def connect(
        self,
        principal: Principal,
        addresses: Callable[[], Sequence[Address]],
        listener: UpstreamListener,
        token_id: str | None = None,
    ) -> Upstream:
        """Return a connection that is logged in as a principal; see `Connector.connect`."""
        return await self._spanned(
            super().connect(principal, addresses, listener, token_id), {"enduser.id": str(principal)}
        )

    async def connect_for_login(
        self, addresses: Callable[[], Sequence[Address]], listener: UpstreamListener
    ) -> Upstream:
        """Return a connection that is not logged in; see `Connector.connect_for_login`."""
        return await self._spanned(super().connect_for_login(addresses, listener), {})

    async def _spanned(self, opening: Coroutine[Any, Any, Upstream], attributes: Attributes) -> Upstream:
        with self._spans.connection("Kafka connection", {"rpc.system": "kafka", **attributes}) as span:
            upstream = await opening
            span.set_attribute("server.address", upstream.server)
            return upstream


class TracedForwarding(Forwarding):
    """The same, with a span for each request until its answer is whole."""

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

    def _answered(self) -> None:
        """End the spans of the answers that are whole, and go on."""
        while len(self._under_way) > self._answers.outstanding:
            self._under_way.popleft()(None)
        super()._answered()

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

    async def _ask_cluster(self, kept: KeptRequest) -> bytes:
        api, link = api_name(kept.start.api_key), self.upstream.link
        attributes = {"rpc.system": "kafka", "rpc.method": api}
        if link is not None:
            attributes["server.address"] = link.server
        with self._spans.round_trip(f"Kafka {api}", attributes):
            return await super()._ask_cluster(kept)

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
