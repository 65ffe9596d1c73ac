"""What a client certificate decides, and what it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.brokers.broker import USERS
from tests.support.identity.tls_listeners import TlsListeners
from tests.support.nodes.server import KafkaDt, server_properties
from tests.support.protocol.raw import DESCRIBE_CLUSTER, ConnectionClosed, RawConnection


def test_who_logged_in_by_sasl_needs_no_rule_for_the_name_in_its_certificate(
    tmp_path: Path, zookeeper_connect: str
) -> None:
    tls = TlsListeners.make(tmp_path)
    people_only = {
        "ssl.principal.mapping.rules": r"RULE:^CN=([^,]+),OU=People,.*$/$1/",
        "listener.name.sasl_ssl.ssl.client.auth": "required",
    }
    with KafkaDt(tmp_path / "server", server_properties(zookeeper_connect) | tls.properties | people_only) as server:
        with RawConnection(server.address("SASL_SSL"), tls.context(tls.stranger)) as connection:
            connection.login_plain("alice", USERS["alice"])
            assert connection.ask(DESCRIBE_CLUSTER, 0, include_cluster_authorized_operations=False).cluster_id
        with (
            RawConnection(server.address("SSL"), tls.context(tls.stranger)) as connection,
            pytest.raises(ConnectionClosed),
        ):
            connection.ask(DESCRIBE_CLUSTER, 0, include_cluster_authorized_operations=False)
