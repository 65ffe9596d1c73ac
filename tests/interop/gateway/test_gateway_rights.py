"""A gateway whose user may create no tokens for a client: what the operator sees, and what puts it right."""

from __future__ import annotations

from kafka_dt.identity.acls.binding import AclOperation, ResourceType
from tests.interop.gateway.conftest import GatewayMaker
from tests.support.brokers.broker import USERS
from tests.support.brokers.kraft_operator import Operator
from tests.support.identity.acl_client import Acl
from tests.support.java.properties import plain
from tests.support.nodes.gateway import UPSTREAM, Gateway
from tests.support.nodes.metrics import MetricsEndpoint, metrics_properties
from tests.support.processes.ports import free_ports
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import METADATA, ConnectionClosed

CAROL = {
    f"{UPSTREAM}.{key}": value
    for key, value in plain("carol", USERS["carol"]).items()
    if key in {"security.protocol", "sasl.mechanism", "sasl.jaas.config"}
}
"""The gateway's own user, who is no super user of the cluster."""
CREATE_FOR_ALICE = Acl("User:carol", AclOperation.CREATE_TOKENS, ResourceType.USER, "User:alice")
COUNTED_WITHIN_S = 5.0
ASKED_AGAIN_S = 10.0


def forwards(gateway: Gateway) -> bool:
    """Whether a request of alice's reaches the cluster."""
    try:
        with gateway.connect(user="alice") as connection:
            connection.ask(METADATA, 1, topics=())
    except (ConnectionClosed, ConnectionError):
        return False
    return True


def test_a_missing_right_to_create_tokens_is_counted_and_told_and_the_acl_puts_it_right(
    other_gateway: GatewayMaker, operator: Operator
) -> None:
    with other_gateway("no-right", **CAROL, **metrics_properties(port := free_ports(1))) as gateway:
        refused = MetricsEndpoint(port)
        assert not forwards(gateway)
        name = "kafka_dt_gateway_upstream_connections_total"
        eventually(lambda: refused.value(name, result="refused") == 1, COUNTED_WITHIN_S)
        told = [line for line in gateway.log().splitlines() if "got no upstream token for User:alice" in line]
        assert len(told) == 1
        assert "WARN" in told[0]
        assert told[0].endswith(
            "User:carol needs an ACL of the upstream cluster that allows CreateTokens on User:alice"
        )
        with operator.allowing(CREATE_FOR_ALICE):
            eventually(lambda: forwards(gateway), ASKED_AGAIN_S)
