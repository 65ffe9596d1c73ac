"""The parts of a gateway, joined: what all its connections share, and what begins and ends with a worker.

    gateway = Gateway(settings, listeners, cache.get, counts)
    await gateway.start()                            # waits for the cluster
    gateway.new_connection(services)                 # what serves a socket, on the port of a listener
    gateway.open_ports([PortListener(listener, opened, new_connection)], node="4711")
    gateway.close_ports()
    await gateway.close()                            # when no connection is left

Source: docs/design.md#the-gateway.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from kafka_dt.client import Address, ClientConfig, TokenClient
from kafka_dt.clock import now_ms
from kafka_dt.config import ConfigError, GatewaySettings, Listener, UpstreamIdentity
from kafka_dt.config.gateway import IDENTITY_FILE
from kafka_dt.gateway.addresses import BrokerAddresses, BrokerPorts, PortListener
from kafka_dt.gateway.brokers import UpstreamBrokers
from kafka_dt.gateway.connecting import Connector
from kafka_dt.gateway.forwarding import Forwarding
from kafka_dt.gateway.identities import Identities, MappedIdentities, OneForAll
from kafka_dt.gateway.own_tokens import OwnTokens
from kafka_dt.gateway.owner_tokens import MARKS, OwnerTokens
from kafka_dt.gateway.relay import LoginsUnderWay
from kafka_dt.gateway.services import GatewayServices
from kafka_dt.gateway.token_requests import TokenRequests
from kafka_dt.gateway.traced import TracedConnector, TracedForwarding
from kafka_dt.metrics import Counts
from kafka_dt.server.connections.connection import ClientConnection
from kafka_dt.server.connections.services import ConnectionServices
from kafka_dt.tokens import ANONYMOUS, CachedToken
from kafka_dt.tokens.principal import USER_TYPE
from kafka_dt.tracing import Spans
from kafka_dt.upstream import UpstreamClient
from kafka_dt_protocol import APIS
from kafka_dt_protocol.api.offered_versions import OfferedByUpstream
from kafka_dt_protocol.sasl import ScramMechanism


class Gateway:
    """The gateway of one worker.

    Args:
        settings: the cluster behind it, and who clients are there.
        listeners: of the node, with the ports that they are bound to.
        held: gives a token as the worker knows it, None if it does not.
        counts: where connections upstream are counted.
        audits: whether the worker writes audit events.
        spans: of requests; None where they are not traced.

    Raises:
        ConfigError: a setting cannot be used.
    """

    brokers: UpstreamBrokers
    """Those of the cluster."""

    def __init__(
        self,
        settings: GatewaySettings,
        listeners: Sequence[Listener],
        held: Callable[[str], CachedToken | None],
        counts: Counts,
        *,
        audits: bool = False,
        spans: Spans | None = None,
    ) -> None:
        self._intake: Final = Forwarding if spans is None else partial(TracedForwarding, spans=spans)
        make_connector = Connector if spans is None else partial(TracedConnector, spans=spans)
        audited = APIS.audited_at_gateway if audits else ()
        self._client = UpstreamClient(settings.client, names_clients=settings.names_clients)
        config = self._client.config
        self.brokers = UpstreamBrokers(
            config,
            self._client.servers,
            monotonic=time.monotonic,
            random_bytes=secrets.token_bytes,
            jitter=random.random,
        )
        self._identities = identities_for(settings, config, self.brokers.servers)
        self._addresses = BrokerAddresses(listeners)
        self._ports: BrokerPorts | None = None
        self._services: Final = GatewayServices(
            connector=make_connector(config, self._identities, own_tokens=_own_tokens(settings, held), counts=counts),
            brokers=self.brokers,
            addresses=self._addresses,
            offered=OfferedByUpstream(APIS.served_by_gateway, audited),
            relayed=LoginsUnderWay(settings.logins_per_ip) if settings.identity is UpstreamIdentity.RELAY else None,
            makes_its_tokens=settings.makes_its_tokens,
            audited=frozenset(int(api.key) for api in audited),
        )

    @property
    def open_connections(self) -> int:
        """How many connections upstream are open for clients."""
        return self._services.connector.open_connections

    async def start(self) -> None:
        """Get to know the cluster; waits for it as long as it takes.

        Raises:
            TokenClientError: it is there and cannot be used, such as LoginFailed.
        """
        await self.brokers.start()

    def new_connection(self, services: ConnectionServices, broker_id: int | None = None) -> ClientConnection:
        """Make what serves a client.

        Args:
            services: of the listener by which it comes.
            broker_id: the upstream broker that the port stands for; None for the listener's own port.
        """
        return ClientConnection(
            services, lambda connection: self._intake(connection, services, self._services, broker_id)
        )

    def open_ports(self, listeners: Sequence[PortListener], *, node: str) -> None:
        """Open a port for each broker on the listeners that have a port base, and follow the brokers from now on.

        Args:
            listeners: those listeners, open already.
            node: what the workers of this node call it, and no other node of the machine is called.
        """
        self._ports = BrokerPorts(self._addresses, listeners, node=node)
        self.brokers.on_change(self._ports.brokers_changed)

    def prepare(self, settings: GatewaySettings) -> Callable[[], None]:
        """Check a new login upstream and new bootstrap servers, and return what takes them over.

        Raises:
            ConfigError: a setting cannot be used.
        """
        return self._client.prepare(settings.client)

    @property
    def certificate_end_s(self) -> float | None:
        """When the certificate ends that the cluster is shown, in seconds since 1970; None if it is shown none."""
        return self._client.certificate_end_s

    async def refresh_certificates(self) -> None:
        """Take new certificates for upstream if their files have changed; for connections that are made from now on."""
        await self._client.refresh_certificates()

    def close_ports(self) -> None:
        """Open no more ports; open ones and their connections are their listeners' to close."""
        if self._ports is not None:
            self._ports.close()

    async def close(self) -> None:
        """Follow the cluster no more, once the connections are closed: they look for brokers and logins to the end."""
        await self.brokers.close()
        await self._identities.close()


def _own_tokens(settings: GatewaySettings, held: Callable[[str], CachedToken | None]) -> OwnTokens | None:
    """Make what finds the logins of clients with a token; None where the cluster does not know their tokens."""
    if not settings.serves_its_tokens:
        return None
    return OwnTokens(held, ScramMechanism(settings.identity_mechanism), now_ms=now_ms)


def identities_for(
    settings: GatewaySettings, client: ClientConfig, servers: Callable[[], Sequence[Address]]
) -> Identities:
    """Make what finds the identities of clients, of the kind that is set.

    Args:
        settings: says which kind.
        client: how the cluster is reached, and the gateway's own login there.
        servers: where the cluster can be asked now.

    Raises:
        ConfigError: the file of identities cannot be used.
    """
    mechanism = ScramMechanism(settings.identity_mechanism)
    match settings.identity:
        case UpstreamIdentity.OWNER_TOKEN | UpstreamIdentity.RELAY:
            user = client.login.username if client.login else ANONYMOUS.name
            requests = TokenRequests(lambda address: TokenClient(client, servers=lambda: (address,)), servers)
            marks = MARKS if settings.serves_its_tokens else 1
            return OwnerTokens(requests, f"{USER_TYPE}:{user}", mechanism, marks=marks)
        case UpstreamIdentity.MAPPED:
            if settings.identity_file is None:
                raise ConfigError(IDENTITY_FILE, f"is needed for {settings.identity}")
            return MappedIdentities(settings.identity_file, mechanism)
        case UpstreamIdentity.SERVICE:
            return OneForAll(lambda: client.login)
        case UpstreamIdentity.NONE:
            return OneForAll(lambda: None)
