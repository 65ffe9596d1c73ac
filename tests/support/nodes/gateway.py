"""kafka-dt in gateway mode in front of a cluster of `brokers.kraft`, and the clients that log in to it with tokens.

    with Gateway(folder, gateway_properties(zookeeper, cluster, base := free_ports(3))) as gateway:
        alice = gateway.make_token("alice")
        gateway.settings(alice, "aiokafka")      # keyword arguments of a client
        gateway.addresses_of_brokers()           # {1: "127.0.0.1:17001", 2: "127.0.0.1:17002"}

Clients reach broker N at port base + N.

`names_listener`, `gated_listener` and `sessions_listener` are further listeners. The gateway tells clients of GATED the
address 127.0.0.2, where only the gates of a test listen (`processes.tcp_gate`), one in front of each port. Clients of
SESSIONS have to log in again all the time.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

from kafka_dt.client import DelegationToken, settings
from tests.support.brokers.broker import sasl_properties
from tests.support.brokers.kraft import GATEWAY, GATEWAY_PASSWORD, KraftCluster
from tests.support.java.properties import ClientConfig, scram
from tests.support.nodes.node import ADMIN, EXPIRY_CHECK_MS, WORKERS, Node
from tests.support.nodes.server import server_properties
from tests.support.processes.waiting import POLL_S
from tests.support.protocol.raw import METADATA, ConnectionClosed, RawConnection

UPSTREAM: Final = "kafka.dt.gateway.upstream"
IDENTITY: Final = f"{UPSTREAM}.identity"
IDENTITY_FILE: Final = f"{UPSTREAM}.identity.file"
PORT_BASE: Final = "kafka.dt.gateway.broker.port.base"
HOST_PATTERN: Final = "kafka.dt.gateway.broker.host.pattern"

GATED_HOST: Final = "127.0.0.2"
CLIENT_SESSION_MS: Final = 2_500
"""How long the session of a client of SESSIONS lasts."""
REACHED_WITHIN_S: Final = 20.0
"""A broker that an earlier test has started again is led to by then."""
PORTS: Final = 4
"""How many neighbouring ports a listener has: its own, which may be unused, and those of brokers 1 to 3."""

_ESTABLISHED: Final = "01"


def gateway_properties(zookeeper: str, cluster: KraftCluster, port_base: int) -> dict[str, object]:
    """The settings of a gateway that logs in upstream with tokens of its clients' principals.

    Args:
        zookeeper: `zookeeper.connect`.
        cluster: what stands behind it.
        port_base: what the ports of brokers are counted from.
    """
    return {
        **server_properties(zookeeper),
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "listener.security.protocol.map": (
            "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,GATED:SASL_PLAINTEXT,SESSIONS:SASL_PLAINTEXT"
        ),
        "delegation.token.expiry.check.interval.ms": EXPIRY_CHECK_MS,
        "kafka.dt.workers": WORKERS,
        "connection.failed.authentication.delay.ms": 0,
        f"{UPSTREAM}.bootstrap.servers": cluster.sasl,
        **{f"{UPSTREAM}.{key}": value for key, value in service_login().items()},
        IDENTITY: "owner-token",
        f"listener.name.sasl_plaintext.{PORT_BASE}": port_base,
    }


def upstream_store_properties(cluster: KraftCluster, port_base: int) -> dict[str, object]:
    """The settings of a gateway that serves the tokens of the cluster itself; arguments as of `gateway_properties`."""
    properties = gateway_properties("", cluster, port_base)
    for key in (
        "zookeeper.connect",
        "delegation.token.secret.key",
        "delegation.token.metadata.encryption.enable",
        "allow.everyone.if.no.acl.found",
    ):
        del properties[key]
    return properties | {"kafka.dt.token.store": "upstream", "super.users": f"User:{ADMIN}"}


def names_listener(pattern: str, key_store: Path) -> dict[str, object]:
    """Settings of SASL_SSL: each broker has a name on the port of the listener."""
    return {
        **sasl_properties(listener="sasl_ssl"),
        "listener.name.sasl_ssl.ssl.keystore.type": "PEM",
        "listener.name.sasl_ssl.ssl.keystore.location": key_store,
        f"listener.name.sasl_ssl.{HOST_PATTERN}": pattern,
    }


def gated_listener(base: int, host: str = GATED_HOST) -> dict[str, object]:
    """Settings of GATED, which listens on `base` and for the brokers on those after it, and tells clients of a host."""
    return {
        **sasl_properties(listener="gated"),
        "advertised.listeners": f"GATED://{host}:{base}",
        f"listener.name.gated.{PORT_BASE}": base,
    }


def sessions_listener(base: int) -> dict[str, object]:
    """Settings of SESSIONS, with the ports of brokers behind `base`."""
    return {
        **sasl_properties(listener="sessions"),
        "listener.name.sessions.connections.max.reauth.ms": CLIENT_SESSION_MS,
        f"listener.name.sessions.{PORT_BASE}": base,
    }


def service_login() -> ClientConfig:
    """How the gateway itself logs in upstream, as settings of a Java client."""
    login = scram(GATEWAY, GATEWAY_PASSWORD, "SCRAM-SHA-512")
    return {key: login[key] for key in ("security.protocol", "sasl.mechanism", "sasl.jaas.config")}


class Gateway(Node):
    """One gateway."""

    port_base = 0
    """Broker N is at this port + N; the fixture that starts the gateway sets it."""

    def address_of_broker(self, broker_id: int) -> str:
        """Return the host:port that the gateway tells clients for an upstream broker."""
        return f"127.0.0.1:{self.port_base + broker_id}"

    def reach_broker(self, token: DelegationToken, broker_id: int) -> RawConnection:
        """A connection of a token's holder that a broker has answered on; tried again while that one comes back."""
        deadline = time.monotonic() + REACHED_WITHIN_S
        while True:
            try:
                connection = self.connect_by_token(token, to=self.address_of_broker(broker_id))
                try:
                    connection.ask(METADATA, 1, topics=())
                except BaseException:
                    connection.close()
                    raise
            except (ConnectionError, ConnectionClosed):
                if time.monotonic() > deadline:
                    raise
                time.sleep(POLL_S)
            else:
                return connection

    def tokens(self, user: str) -> list[DelegationToken]:
        """The tokens that a user may see; not for use while an event loop runs."""

        async def describe() -> list[DelegationToken]:
            async with self.client(user) as client:
                return await client.describe()

        return asyncio.run(describe())

    def settings(
        self, token: DelegationToken, kind: str, mechanism: str = "SCRAM-SHA-256", listener: str = "SASL_PLAINTEXT"
    ) -> dict[str, str]:
        """The settings of a client that logs in with a token, as a user pastes them."""
        servers = self.address(listener)
        return dict(
            settings(token, kind, bootstrap_servers=servers, security_protocol="SASL_PLAINTEXT", mechanism=mechanism)
        )

    def sockets_to(self, addresses: str) -> set[int]:
        """The local ports of this machine's connections to these host:port texts, commas between."""
        wanted = {int(each.rpartition(":")[2]) for each in addresses.split(",")}
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return {
            int(local.rpartition(":")[2], 16)
            for _, local, remote, state, *_ in rows
            if state == _ESTABLISHED and int(remote.rpartition(":")[2], 16) in wanted
        }

    def resident_kib(self) -> int:
        """Memory of its workers."""
        total = 0
        for pid in self.workers():
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    total += int(line.split()[1])
        return total

    def check_log(self) -> None:
        """See that nothing was unforeseen, and that nothing secret was written."""
        super().check_log()
        assert GATEWAY_PASSWORD not in self.log()
