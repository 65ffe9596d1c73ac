"""The parts of a gateway, joined: what all its connections share, and what begins and ends with a worker.

    gateway = Gateway(settings, listeners)
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
from collections.abc import Sequence
from typing import Final

from kafka_dt.config import GatewaySettings, Listener
from kafka_dt.gateway.addresses import BrokerAddresses
from kafka_dt.gateway.brokers import UpstreamBrokers
from kafka_dt.gateway.connecting import Connector, identities_for
from kafka_dt.gateway.forwarding import Forwarding, GatewayServices
from kafka_dt.gateway.ports import BrokerPorts, PortListener
from kafka_dt.gateway.upstream_settings import UpstreamSettings
from kafka_dt.server.connections.connection import ClientConnection
from kafka_dt.server.connections.services import ConnectionServices
from kafka_dt_protocol import APIS
from kafka_dt_protocol.api.offered_versions import OfferedByUpstream


class Gateway:
    """The gateway of one worker.

    Args:
        settings: the cluster behind it, and who clients are there.
        listeners: of the node, with the ports that they are bound to.

    Raises:
        ConfigError: a setting cannot be used.
    """

    def __init__(self, settings: GatewaySettings, listeners: Sequence[Listener]) -> None:
        self._settings: Final = UpstreamSettings.of(settings)
        upstream = self._settings
        self._brokers = UpstreamBrokers(
            upstream.client, monotonic=time.monotonic, random_bytes=secrets.token_bytes, jitter=random.random
        )
        self._identities = identities_for(upstream, self._brokers.servers)
        self._addresses = BrokerAddresses(listeners)
        self._ports: BrokerPorts | None = None
        self._services: Final = GatewayServices(
            connector=Connector(upstream, self._identities),
            brokers=self._brokers,
            addresses=self._addresses,
            offered=OfferedByUpstream(APIS.served_by_gateway),
        )

    async def start(self) -> None:
        """Get to know the cluster; waits for it as long as it takes.

        Raises:
            TokenClientError: it is there and cannot be used, such as LoginFailed.
        """
        await self._brokers.start()

    def new_connection(self, services: ConnectionServices, broker_id: int | None = None) -> ClientConnection:
        """Make what serves a client.

        Args:
            services: of the listener by which it comes.
            broker_id: the upstream broker that the port stands for; None for the listener's own port.
        """
        return ClientConnection(
            services, lambda connection: Forwarding(connection, services, self._services, broker_id)
        )

    def open_ports(self, listeners: Sequence[PortListener], *, node: str) -> None:
        """Open a port for each broker on the listeners that have a port base, and follow the brokers from now on.

        Args:
            listeners: those listeners, open already.
            node: what the workers of this node call it, and no other node of the machine is called.
        """
        self._ports = BrokerPorts(self._addresses, listeners, node=node)
        self._brokers.on_change(self._ports.brokers_changed)

    async def refresh_certificates(self) -> None:
        """Take new certificates for upstream if their files have changed; for connections that are made from now on."""
        await self._settings.refresh_certificates()

    def close_ports(self) -> None:
        """Open no more ports; open ones and their connections are their listeners' to close."""
        if self._ports is not None:
            self._ports.close()

    async def close(self) -> None:
        """Follow the cluster no more, once the connections are closed: they look for brokers and logins to the end."""
        await self._brokers.close()
        await self._identities.close()
