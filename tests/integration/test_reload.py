"""A running node takes over changed settings: all its workers, or none."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.brokers.broker import USERS, sasl_properties
from tests.support.java.properties import plain, write_properties
from tests.support.nodes.commands import called
from tests.support.nodes.gateway import IDENTITY, PORT_BASE, UPSTREAM
from tests.support.nodes.node import WORKERS, Node, node_properties, refuses_connections
from tests.support.nodes.server import server_properties
from tests.support.processes.ports import free_ports
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import CREATE, METADATA, ConnectionClosed, LoginRefused, RawConnection, ms
from tests.support.zookeeper.server import make_chroot

WITHIN_S = 20.0
PLAIN_USERS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
CLUSTER_ID = 1001


class Changing(Node):
    """A node whose file a test changes."""

    def change(self, settings: dict[str, object]) -> None:
        """Write settings over those of the file."""
        self.given |= settings
        write_properties(self.configuration, self.given)

    def reload(self) -> tuple[int, str]:
        """Run `kafka-dt reload`: its exit status and what it says."""
        return reload(self.configuration)

    given: dict[str, object]


def reload(configuration: Path) -> tuple[int, str]:
    """Run the command on a file."""
    run = called("reload", "--config", configuration)
    return run.returncode, (run.stdout + run.stderr).strip()


def changing(folder: Path, properties: dict[str, object], name: str = "kafka-dt") -> Changing:
    node = Changing(folder, properties, name)
    node.given = {"kafka.dt.log.lines.per.minute": 1_000_000, **properties}
    return node


@pytest.fixture
def node(zookeeper_connect: str, tmp_path: Path) -> Iterator[Changing]:
    users = tmp_path / "users.jaas"
    users.write_text(sasl_properties()[PLAIN_USERS])
    properties = node_properties(zookeeper_connect, allow_everyone_if_no_acl_found=False) | {
        PLAIN_USERS: f"file:{users}"
    }
    with changing(tmp_path, properties) as running:
        yield running
    running.check_log()


def creates_for_another(connection: RawConnection) -> bool:
    """Whether the client may create a token for another owner, as super users may."""
    owner = {"owner_principal_type": "User", "owner_principal_name": "carol"}
    return not connection.ask(CREATE, 3, **owner, renewers=(), max_lifetime=ms(-1)).error_code.value


def may_log_in(node: Node, user: str, password: str) -> bool:
    try:
        with node.connect() as connection:
            connection.login_plain(user, password)
    except LoginRefused:
        return False
    return True


def test_all_workers_take_over_users_super_users_and_the_level_of_the_log(node: Changing, tmp_path: Path) -> None:
    before = node.workers()
    with node.on_every_worker(lambda: node.connect(user="alice")) as connections:
        assert not any(map(creates_for_another, connections.values()))
        (tmp_path / "users.jaas").write_text(sasl_properties(USERS | {"dora": "dora-secret"})[PLAIN_USERS])
        node.change({"super.users": "User:admin;User:alice", "kafka.dt.log.level": "DEBUG", "kafka.dt.workers": 7})
        status, said = node.reload()
        assert (status, said) == (
            0,
            f"Changed: kafka.dt.log.level, {PLAIN_USERS}, super.users. "
            "To change, the node must be restarted: kafka.dt.workers",
        )
        assert all(map(creates_for_another, connections.values())), "on connections that were open before as well"
    with node.on_every_worker(lambda: logged_in(node, "dora", "dora-secret")):
        pass
    assert node.workers() == before
    log = node.log()
    assert "INFO [supervisor] Changed: kafka.dt.log.level" in log
    assert all(f"DEBUG [worker {number}] Login of 'User:dora' by PLAIN" in log for number in range(WORKERS))
    assert "dora-secret" not in log
    assert node.reload() == (0, "To change, the node must be restarted: kafka.dt.workers")


def logged_in(node: Node, user: str, password: str) -> RawConnection:
    connection = node.connect()
    connection.login_plain(user, password)
    return connection


def test_a_file_that_cannot_be_used_leaves_everything_as_it_was(node: Changing) -> None:
    good = dict(node.given)
    unusable: tuple[tuple[str, object, str], ...] = (
        ("super.users", "admin", "Expected a principal in the form Type:name, got 'admin'"),
        ("kafka.dt.log.level", "LOUD", "'LOUD' is not one of"),
        (PLAIN_USERS, "file:/not/there", "the secret's file /not/there cannot be read"),
        ("kafka.dt.workers", -1, "-1 is too small"),
    )
    for key, value, reason in unusable:
        node.given = good | {"super.users": "User:alice"}
        node.change({key: value})
        status, said = node.reload()
        assert status == 1
        assert said.startswith(f"Error: the settings stay as they are: {key}: {reason}")
        assert said.count("\n") == 0
        assert f"ERROR [supervisor] The settings stay as they are: {key}: {reason}" in node.log()
    with node.connect(user="alice") as connection:
        assert not creates_for_another(connection)


def test_a_worker_that_is_replaced_has_the_changed_settings_and_hang_up_reads_them_too(
    node: Changing, tmp_path: Path
) -> None:
    users = tmp_path / "users.jaas"
    users.write_text(sasl_properties({**USERS, "alice": "changed"})[PLAIN_USERS])
    assert node.process.pid is not None
    os.kill(node.process.pid, signal.SIGHUP)
    eventually(lambda: f"Changed: {PLAIN_USERS}" in node.log(), WITHIN_S)
    users.write_text("what an editor has half written")
    killed = set(node.workers())
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    # Until the supervisor has collected it a killed worker is still its child, and has connections that it never took.
    eventually(lambda: len(set(node.workers()) - killed) == WORKERS and not refuses_connections(node.sasl), WITHIN_S)
    with node.on_every_worker(lambda: logged_in(node, "alice", "changed")):
        assert not may_log_in(node, "alice", USERS["alice"])


def test_without_a_node_on_that_file_the_command_says_so(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.touch()
    status, text = reload(file)
    assert status == 1
    assert text.startswith(f"Error: no node of this machine runs on {file}; ")


# A gateway


def test_a_gateway_takes_over_its_login_and_its_brokers(zookeeper_address: str, tmp_path: Path) -> None:
    first, second = (
        changing(
            tmp_path,
            {**server_properties(make_chroot(zookeeper_address, name)), "kafka.dt.workers": 1},
            name,
        )
        for name in ("first", "second")
    )
    front = {
        **server_properties(make_chroot(zookeeper_address, "front")),
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "kafka.dt.workers": 1,
        PORT_BASE: free_ports(1) - CLUSTER_ID,
        IDENTITY: "service",
        f"{UPSTREAM}.security.protocol": "SASL_PLAINTEXT",
        f"{UPSTREAM}.sasl.mechanism": "PLAIN",
        f"{UPSTREAM}.sasl.jaas.config": plain("bob", USERS["bob"])["sasl.jaas.config"],
    }
    with first, second:
        front[f"{UPSTREAM}.bootstrap.servers"] = first.sasl
        with changing(tmp_path, front, "gateway") as gateway:
            assert answers(gateway)
            changed = sasl_properties({**USERS, "bob": "changed"})[PLAIN_USERS]
            first.change({PLAIN_USERS: changed})
            assert first.reload() == (0, f"Changed: {PLAIN_USERS}")
            assert not answers(gateway)
            jaas = f"{UPSTREAM}.sasl.jaas.config"
            gateway.change({jaas: plain("bob", "changed")["sasl.jaas.config"]})
            assert gateway.reload() == (0, f"Changed: {jaas}")
            eventually(lambda: answers(gateway), WITHIN_S)
            second.change({PLAIN_USERS: changed})
            assert second.reload()[0] == 0
            servers = f"{UPSTREAM}.bootstrap.servers"
            gateway.change({servers: second.sasl})
            assert gateway.reload() == (0, f"Changed: {servers}")
            first.stop()
            eventually(lambda: answers(gateway), WITHIN_S)
        gateway.check_log()


def answers(gateway: Node) -> bool:
    """Whether a client reaches the cluster through a gateway."""
    try:
        with gateway.connect(user="alice") as connection:
            connection.ask(METADATA, 4, topics=(), allow_auto_topic_creation=False)
    except (ConnectionClosed, OSError):
        return False
    return True
