"""A real Prometheus scrapes a gateway: the alerts about the cluster behind it fire, and the dashboard has its data."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tests.interop.gateway.conftest import GatewayMaker
from tests.support.brokers.broker import USERS
from tests.support.brokers.kraft import KraftCluster
from tests.support.java.properties import plain
from tests.support.nodes.gateway import IDENTITY, IDENTITY_FILE, Gateway
from tests.support.nodes.metrics import metrics_properties
from tests.support.nodes.prometheus import Prometheus, dashboard_queries, programs
from tests.support.processes.ports import free_ports
from tests.support.protocol.raw import METADATA, ConnectionClosed

pytestmark = pytest.mark.soak

THIRD: Final = 3
NOWHERE: Final = "127.0.0.1:1"


def forward(gateway: Gateway, user: str) -> None:
    """Ask the cluster something, as a user who may be unknown there."""
    with suppress(ConnectionClosed, ConnectionError), gateway.connect(user=user) as connection:
        connection.ask(METADATA, 1, topics=())


def test_alerts_and_panels_of_a_gateway(cluster: KraftCluster, other_gateway: GatewayMaker, tmp_path: Path) -> None:
    identities = tmp_path / "identities.jaas"
    identities.touch(mode=0o600)
    passwords = {"alice": USERS["alice"], "bob": "no password of his"}
    logins = {user: plain(user, password)["sasl.jaas.config"] for user, password in passwords.items()}
    identities.write_text("".join(f'"User:{user}" {{ {login} }};\n' for user, login in logins.items()))
    mapped = {IDENTITY: "mapped", IDENTITY_FILE: identities, **metrics_properties(port := free_ports(1))}
    with other_gateway("watched", **mapped) as gateway, Prometheus(programs(), tmp_path, port).running() as prometheus:
        of_gateways = [query for query in dashboard_queries() if "kafka_dt_gateway_" in query]
        prometheus.wait_for_data(of_gateways, lambda: forward(gateway, "alice"))
        assert prometheus.firing() == set()
        prometheus.wait_for_alerts("KafkaDtUpstreamRefusesLogins", doing=lambda: forward(gateway, "bob"))
        # A broker that the cluster names, but at an address that leads nowhere from here.
        ports = free_ports(2)
        unreachable = cluster.another_broker(
            THIRD,
            listeners=f"SASL_PLAINTEXT://127.0.0.1:{ports},PLAINTEXT://127.0.0.1:{ports + 1}",
            advertised_listeners=f"SASL_PLAINTEXT://{NOWHERE},PLAINTEXT://127.0.0.1:{ports + 1}",
        )
        unreachable.start()
        try:
            prometheus.wait_for_alerts("KafkaDtUpstreamBrokersUnreachable")
        finally:
            unreachable.stop()
