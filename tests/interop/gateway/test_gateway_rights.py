"""A gateway whose own user lacks a right or the right password: what the operator sees, and what puts it right."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from click.testing import CliRunner, Result

from kafka_dt.cli import main
from kafka_dt.client import DelegationToken, TokenClient
from kafka_dt.identity.acls.binding import AclOperation, ResourceType
from tests.interop.gateway.conftest import GatewayMaker
from tests.interop.test_scram_users import alter
from tests.support.brokers.broker import USERS
from tests.support.brokers.kraft import KraftCluster
from tests.support.brokers.kraft_operator import Operator
from tests.support.identity.acl_client import Acl
from tests.support.identity.scram_changes import upsertion
from tests.support.java.properties import plain, scram
from tests.support.nodes.gateway import UPSTREAM, Gateway, service_login
from tests.support.nodes.metrics import MetricsEndpoint, metrics_properties
from tests.support.processes.ports import free_ports
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import METADATA, ConnectionClosed, RawConnection

CAROL = {
    f"{UPSTREAM}.{key}": value
    for key, value in plain("carol", USERS["carol"]).items()
    if key in {"security.protocol", "sasl.mechanism", "sasl.jaas.config"}
}
"""The gateway's own user, who is no super user of the cluster."""
CREATE_FOR_ALICE, CREATE_FOR_BOB = (
    Acl("User:carol", AclOperation.CREATE_TOKENS, ResourceType.USER, f"User:{name}") for name in ("alice", "bob")
)
COUNTED_WITHIN_S = 5.0
READY_WITHIN_S = 10.0
REFUSED_WITHIN_S = 30.0
ASKED_AGAIN_S = 10.0


def forwards(gateway: Gateway) -> bool:
    """Whether a request of bob's reaches the cluster."""
    try:
        with gateway.connect(user="bob") as connection:
            connection.ask(METADATA, 1, topics=())
    except (ConnectionClosed, ConnectionError):
        return False
    return True


def check(gateway: Gateway, *users: str) -> Result:
    """What `kafka-dt upstream check` says with the settings of a gateway."""
    names = [part for user in users for part in ("--user-principal", f"User:{user}")]
    return CliRunner().invoke(main, ["upstream", "check", "--config", str(gateway.configuration), *names])


def give_password(cluster: KraftCluster, user: str, password: str) -> None:
    """Change the password of a user of the cluster, as its operator does."""
    with RawConnection(cluster.plaintext.split(",")[0]) as connection:
        assert alter(connection, upsertion(user, password)) == {user: 0}


def test_a_missing_right_to_create_tokens_is_counted_and_told_and_the_acl_puts_it_right(
    other_gateway: GatewayMaker, operator: Operator
) -> None:
    with other_gateway("no-right", **CAROL, **metrics_properties(port := free_ports(1))) as gateway:
        refused = MetricsEndpoint(port)
        assert not forwards(gateway)
        name = "kafka_dt_gateway_upstream_connections_total"
        eventually(lambda: refused.value(name, result="refused") == 1, COUNTED_WITHIN_S)
        told = [line for line in gateway.log().splitlines() if "got no upstream token for User:bob" in line]
        assert len(told) == 1
        assert "WARN" in told[0]
        assert told[0].endswith("User:carol needs an ACL of the upstream cluster that allows CreateTokens on User:bob")
        with operator.allowing(CREATE_FOR_BOB):
            eventually(lambda: forwards(gateway), ASKED_AGAIN_S)


def test_the_check_tries_the_right_for_each_named_user_and_creates_no_token(
    other_gateway: GatewayMaker, operator: Operator, cluster: KraftCluster
) -> None:
    async def tokens() -> list[str]:
        async with TokenClient.from_config({**service_login(), "bootstrap.servers": cluster.sasl}) as client:
            return sorted(each.token_id for each in await client.describe())

    before = asyncio.run(tokens())
    with other_gateway("checked", **CAROL) as gateway, operator.allowing(CREATE_FOR_ALICE):
        done = check(gateway, "alice", "bob")
        assert done.exit_code == 1
        points = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
        assert {each.split()[0] for each in points[:-1]} == {"ok"}
        assert points[-2:] == [
            "ok       tokens for User:alice",
            "unfit    tokens for User:bob: User:carol may not create tokens for User:bob",
        ]
        assert check(gateway, "alice").exit_code == 0
    assert asyncio.run(tokens()) == before


def test_the_check_tells_that_a_broker_has_another_secret_key(
    gateway: Gateway, alice: DelegationToken, cluster: KraftCluster
) -> None:
    with gateway.reach_broker(alice, 1):
        pass  # now it has created a token in the cluster
    same = check(gateway, "alice")
    assert same.exit_code == 0
    assert "ok       secret keys of the brokers" in same.stdout
    third = cluster.another_broker(3, delegation_token_secret_key="another-key")
    third.start()
    try:
        eventually(lambda: "(broker ids: 1, 2; 3)" in check(gateway, "alice").stdout, READY_WITHIN_S)
    finally:
        third.stop()


@pytest.mark.soak
def test_health_says_that_the_cluster_refuses_the_login_of_the_gateway(
    other_gateway: GatewayMaker, cluster: KraftCluster
) -> None:
    user, password, other = uuid.uuid4().hex, "a password", "another password"
    give_password(cluster, user, password)
    login = scram(user, password, "SCRAM-SHA-256")
    own_login = {f"{UPSTREAM}.{key}": login[key] for key in ("sasl.mechanism", "sasl.jaas.config")}
    with other_gateway("refused", **own_login, **metrics_properties(port := free_ports(1))) as gateway:
        node = MetricsEndpoint(port)
        eventually(lambda: node.readiness() == (200, ["ready"]), READY_WITHIN_S)
        give_password(cluster, user, other)
        # The session with the old password lasts for some seconds.
        eventually(lambda: node.readiness()[0] == 503, REFUSED_WITHIN_S)
        reason = "worker 0: the upstream cluster refuses the gateway's login: "
        eventually(lambda: node.readiness()[1][1].startswith(reason), REFUSED_WITHIN_S)
        assert password not in "".join(node.readiness()[1])
        give_password(cluster, user, password)
        eventually(lambda: node.readiness() == (200, ["ready"]), REFUSED_WITHIN_S)
        assert gateway.log().count("cannot be asked for its brokers") <= 2
