"""`kafka-dt check` beside a real node: what agrees is no warning, what does not is one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka_dt.cli import main
from kafka_dt.cli.check import surroundings
from kafka_dt.clock import now_ms
from kafka_dt.zookeeper.connection.settings import DIGEST_LOGIN_MODULE, LoginScheme, ZooKeeperLogin
from tests.integration.zookeeper_nodes import client_of, settings
from tests.support.java.properties import write_properties
from tests.support.nodes.node import Node, node_properties
from tests.support.processes.ports import free_ports
from tests.support.zookeeper.server import child_zookeeper, make_chroot


@pytest.fixture(scope="module")
def node(zookeeper_address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node beside which there is none with other settings, as there may be beside the one that all tests share."""
    with Node(tmp_path_factory.mktemp("node"), node_properties(make_chroot(zookeeper_address, "check"))) as node:
        yield node
    node.check_log()


def warnings(configuration: Path, *arguments: str) -> dict[str, str]:
    done = CliRunner().invoke(main, ["check", "--config", str(configuration), *arguments, "--output", "json"])
    assert done.exit_code == 0, done.output
    return {each["setting"]: each["problem"] for each in json.loads(done.stdout)["warnings"]}


def test_the_settings_of_a_running_node_fit_to_their_surroundings(node: Node) -> None:
    # They are those of a test: open on this machine alone, with a short key.
    assert warnings(node.configuration).keys() == {"delegation.token.secret.key", "allow.everyone.if.no.acl.found"}


def test_other_keys_and_another_form_than_live_nodes_have_are_told(node: Node) -> None:
    other = "o" * 32
    found = warnings(
        node.configuration,
        "--override",
        f"delegation.token.secret.key={other}",
        "--override",
        "delegation.token.metadata.encryption.enable=true",
    )
    assert "has other keys" in found["delegation.token.secret.key"]
    assert "write tokens plain" in found["delegation.token.metadata.encryption.enable"]
    assert other not in json.dumps(found)


@pytest.mark.parametrize(("minutes", "way"), [(10, "ahead of"), (-10, "behind")])
def test_a_clock_that_is_off_is_told(node: Node, monkeypatch: pytest.MonkeyPatch, minutes: int, way: str) -> None:
    monkeypatch.setattr(surroundings, "now_ms", lambda: now_ms() + minutes * 60_000)
    assert f"600 s {way} ZooKeeper's" in warnings(node.configuration)["clock"]


def properties_on(zookeeper_connect: str) -> dict[str, object]:
    return {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:9092",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "zookeeper.connect": zookeeper_connect,
        "delegation.token.secret.key": "k" * 32,
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    }


async def test_nothing_but_the_clock_znode_is_written(zookeeper_connect: str, tmp_path: Path) -> None:
    file = write_properties(tmp_path / "server.properties", properties_on(zookeeper_connect))
    assert await asyncio.to_thread(warnings, file) == {}
    async with client_of(settings(zookeeper_connect)) as client:
        assert await client.children("/") == ["kafka_dt"]
        assert await client.children("/kafka_dt") == ["clock"]


def gateway_to(servers: str, **upstream: str) -> dict[str, object]:
    prefix = "kafka.dt.gateway.upstream."
    return {
        f"{prefix}bootstrap.servers": servers,
        "kafka.dt.gateway.broker.port.base": "20000",
        **{prefix + key.replace("_", "."): value for key, value in upstream.items()},
    }


def test_a_cluster_that_is_not_reached_is_told(zookeeper_connect: str, tmp_path: Path) -> None:
    away = f"127.0.0.1:{free_ports(1)}"
    gateway = gateway_to(away, security_protocol="PLAINTEXT", identity="none")
    file = write_properties(tmp_path / "server.properties", {**properties_on(zookeeper_connect), **gateway})
    assert away in warnings(file)["kafka.dt.gateway.upstream.bootstrap.servers"]
    done = CliRunner().invoke(main, ["check", "--config", str(file)])
    assert done.stdout.splitlines()[-1] == (
        "ok       the settings are accepted; the cluster behind the gateway could not be asked (1 warning)"
    )


def test_a_login_that_the_cluster_refuses_is_refused(node: Node, zookeeper_connect: str, tmp_path: Path) -> None:
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
    gateway = gateway_to(
        node.address("SASL_PLAINTEXT"),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_jaas_config=f'{plain} required username="alice" password="wr0ng";',
        identity="service",
    )
    (problem,) = refused(tmp_path, {**properties_on(zookeeper_connect), **gateway}).items()
    assert problem[0] == "kafka.dt.gateway.upstream.sasl.jaas.config"
    assert "login at 127.0.0.1" in problem[1]
    assert "check user name and password" in problem[1]


def test_a_login_that_zookeeper_refuses_is_refused(tmp_path: Path) -> None:
    login = ZooKeeperLogin(LoginScheme.SASL_DIGEST_MD5, "kafka-dt", "a-password-of-zookeeper")
    jaas = f'{DIGEST_LOGIN_MODULE} required username="kafka-dt" password="wr0ng";'
    with child_zookeeper(tmp_path / "zookeeper", login=login) as server:
        found = refused(tmp_path, {**properties_on(server.address), "kafka.dt.zookeeper.sasl.jaas.config": jaas})
    assert found == {
        "kafka.dt.zookeeper.sasl.jaas.config": (
            f"ZooKeeper at {server.address} refuses this login: check its user name and password"
        )
    }


def refused(folder: Path, properties: dict[str, object]) -> dict[str, str]:
    file = write_properties(folder / "server.properties", properties)
    done = CliRunner().invoke(main, ["check", "--config", str(file), "--output", "json"])
    assert done.exit_code == 1
    assert "wr0ng" not in done.output
    document = json.loads(done.stdout)
    assert not document["ok"]
    return {each["setting"]: each["problem"] for each in document["refused"]}
