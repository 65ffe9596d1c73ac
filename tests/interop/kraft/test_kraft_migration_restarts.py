"""Two nodes restart through the steps of the move from ZooKeeper to a cluster, while clients create and log in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Final

import pytest
from click.testing import CliRunner

from kafka_dt.cli import main
from kafka_dt.zookeeper.embedded.server import EmbeddedZooKeeper
from tests.chaos.recorded_clients import running
from tests.interop.kraft.conftest import at_brokers
from tests.interop.kraft.logins import Logins, logs_in
from tests.support.brokers.kraft import GATEWAY, KraftCluster
from tests.support.java.properties import write_properties
from tests.support.nodes.gateway import PORTS, Gateway, gateway_properties, upstream_store_properties
from tests.support.nodes.node import ADMIN, SEALING_AHEAD
from tests.support.processes.ports import free_ports
from tests.support.zookeeper.server import child_zookeeper

STEPS: Final = ("zookeeper", "upstream,zookeeper", "zookeeper,upstream", "upstream")
"""Of docs/how-to/move-to-kafka-4.md."""
CALM_S: Final = 2.0
"""Between two restarts."""

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]


@pytest.fixture
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedZooKeeper]:
    with child_zookeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


def settings(store: str, zookeeper: EmbeddedZooKeeper, cluster: KraftCluster, base: int) -> Mapping[str, object]:
    """The settings of a node at a step; it listens on `base`, in front of the ports of its brokers."""
    common = {
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{base}",
        "kafka.dt.token.store": store,
        "super.users": f"User:{ADMIN}",
        "kafka.dt.workers": 1,
    }
    if store == "upstream":
        return upstream_store_properties(cluster, base) | common
    properties = gateway_properties(zookeeper.address, cluster, base)
    del properties["allow.everyone.if.no.acl.found"]
    sealing = {"delegation.token.metadata.encryption.enable": True, "kafka.dt.sealing.ahead": SEALING_AHEAD}
    return properties | common | sealing


async def test_the_move_to_the_clusters_tokens_fails_no_login_and_loses_no_token(
    zookeeper: EmbeddedZooKeeper, cluster: KraftCluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    bases = {name: free_ports(PORTS) for name in ("first", "second")}

    def at(step: str, name: str) -> Mapping[str, object]:
        return settings(step, zookeeper, cluster, bases[name])

    with ExitStack() as stack:
        nodes = tuple(
            stack.enter_context(Gateway(tmp_path_factory.mktemp(name), at(STEPS[0], name), name=name)) for name in bases
        )
        logins = Logins((nodes[0], nodes[1]))
        async with running(logins.create(), *(logins.log_in() for _ in range(3))):
            await asyncio.sleep(CALM_S)
            for step in STEPS[1:]:
                if step == "upstream":
                    await end_what_is_in_zookeeper(logins, nodes[0], cluster)
                for node in nodes:
                    before = logins.count
                    await asyncio.to_thread(node.stop)
                    write_properties(node.configuration, at(step, node.name))
                    await asyncio.to_thread(node.start)
                    await asyncio.sleep(CALM_S)
                    assert not logins.failures
                    assert logins.count > before
                for token in logins.tokens:
                    for node in nodes:
                        await logs_in(node.sasl, token)
        assert logins.tokens
        for node in nodes:
            node.check_log()


async def end_what_is_in_zookeeper(logins: Logins, node: Gateway, cluster: KraftCluster) -> None:
    """Revoke the tokens that the cluster does not have, as the command lists them."""
    async with at_brokers(cluster, GATEWAY) as gateway:
        in_the_cluster = {each.token_id for each in await gateway.describe()}
    old = [token for token in logins.tokens if token.token_id not in in_the_cluster]
    new = [token for token in logins.tokens if token.token_id in in_the_cluster]
    assert old
    assert new
    logins.tokens[:] = new
    await asyncio.sleep(CALM_S)  # until the logins that are under way have ended
    async with node.client("alice") as alice:
        for token in old:
            await alice.expire(token.hmac)
    command = ["upstream", "remaining", "--config", str(node.configuration)]
    done = await asyncio.to_thread(CliRunner().invoke, main, command)
    assert "No live token is left in ZooKeeper" in done.output
