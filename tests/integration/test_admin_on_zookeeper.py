"""`kafka-dt user` and `kafka-dt acl` with `--config`: on ZooKeeper itself, while a node runs and without any."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from kazoo.client import KazooClient

from kafka_dt.cli import main
from tests.support.brokers.broker import USERS
from tests.support.java.properties import SCRAM_MECHANISMS, plain, write_properties
from tests.support.nodes.audit import AuditFolder
from tests.support.nodes.node import ADMIN, Node
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import scram_logs_in
from tests.support.zookeeper.server import make_chroot

Ask = Callable[..., Result]
ALLOW_SCHEDULER = ("--allow-principal", "User:scheduler", "--operation", "CreateTokens", "--user-principal")
WITHIN_S = 10.0
AUTHORIZER = "authorizer.class.name=kafka.security.authorizer.AclAuthorizer"


@pytest.fixture
def ask(node: Node, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Run a command with the settings of the node; "first" is in the variable PASSWORD, "second" in NEXT_PASSWORD."""
    monkeypatch.setenv("PASSWORD", "first")
    monkeypatch.setenv("NEXT_PASSWORD", "second")
    return lambda *words: CliRunner().invoke(main, [*words, "--config", str(node.configuration)])


@pytest.fixture
def folder(tmp_path: Path) -> AuditFolder:
    return AuditFolder(tmp_path / "audit")


def audited(folder: AuditFolder) -> list[str]:
    return [f"--override={key}={value}" for key, value in folder.properties().items()]


def printed(done: Result) -> Any:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def refusal(done: Result) -> str:
    assert done.exit_code == 1, done.output
    (line,) = done.stderr.splitlines()
    return line


def logs_in(node: Node, user: str, password: str) -> bool:
    return all(scram_logs_in(node.sasl, user, password, mechanism) for mechanism in SCRAM_MECHANISMS)


def test_a_user_is_created_changed_and_deleted_in_zookeeper_and_the_node_hears_of_it(
    node: Node, ask: Ask, folder: AuditFolder
) -> None:
    name = f"user-{uuid.uuid4()}"
    overrides = audited(folder)
    made = printed(ask("user", "create", name, "--password", "env:PASSWORD", "--output", "json", *overrides))
    assert (made["name"], {each["mechanism"] for each in made["credentials"]}) == (name, set(SCRAM_MECHANISMS))
    assert made in printed(ask("user", "list", "--output", "json"))
    eventually(lambda: logs_in(node, name, "first"), WITHIN_S)
    assert "exists" in refusal(ask("user", "create", name, "--password", "env:PASSWORD"))
    assert ask("user", "passwd", name, "--password", "env:NEXT_PASSWORD", *overrides).exit_code == 0
    eventually(lambda: logs_in(node, name, "second"), WITHIN_S)
    assert not logs_in(node, name, "first")
    assert "would delete" in ask("user", "delete", name, "--dry-run", *overrides).stdout
    assert ask("user", "delete", name, *overrides).exit_code == 0
    eventually(lambda: not scram_logs_in(node.sasl, name, "second", "SCRAM-SHA-256"), WITHIN_S)
    assert "there is no SCRAM user" in refusal(ask("user", "delete", name))
    told = folder.events(type="scram_user_changed", outcome="ok", user=name)
    assert [each["client_id"] for each in sorted(told, key=lambda each: each["time"])] == [
        "kafka-dt user create",
        "kafka-dt user passwd",
        "kafka-dt user delete",
    ]
    assert len(folder.events()) == len(told)


def test_a_name_that_no_user_can_have_is_refused(ask: Ask) -> None:
    assert "name" in refusal(ask("user", "create", "n" * 5000, "--password", "env:PASSWORD"))


def test_acls_are_added_and_removed_in_zookeeper_and_the_node_decides_by_them(
    node: Node, ask: Ask, folder: AuditFolder, tmp_path: Path
) -> None:
    owner = f"User:{uuid.uuid4()}"
    resource = ("--user-principal", owner)
    (added,) = printed(ask("acl", "add", *ALLOW_SCHEDULER, owner, "--output", "json", *audited(folder)))
    assert printed(ask("acl", "list", *resource, "--output", "json")) == [added]
    login = write_properties(tmp_path / "admin.properties", plain(ADMIN, USERS[ADMIN]))
    over_kafka = ["--bootstrap-server", node.sasl, "--command-config", str(login)]
    at_the_node = partial(CliRunner().invoke, main, ["acl", "list", *resource, "--output", "json", *over_kafka])
    eventually(lambda: printed(at_the_node()) == [added], WITHIN_S)
    assert "say --yes" in ask("acl", "remove", *resource).stderr
    assert printed(ask("acl", "remove", *resource, "--yes", "--output", "json", *audited(folder))) == [added]
    eventually(lambda: printed(at_the_node()) == [], WITHIN_S)
    told = folder.events(outcome="ok", acl=f"ALLOW CreateTokens of LITERAL User:'{owner}' to User:scheduler from *")
    assert {each["type"]: each["client_id"] for each in told} == {
        "acl_created": "kafka-dt acl add",
        "acl_deleted": "kafka-dt acl remove",
    }
    assert len(folder.events()) == len(told)


def test_acls_that_no_node_would_look_at_are_refused(ask: Ask) -> None:
    for words in (("list",), ("add", *ALLOW_SCHEDULER, "User:bob"), ("remove", "--topic", "t", "--yes")):
        assert "have no ACLs" in refusal(ask("acl", *words, "--override", "authorizer.class.name="))


async def test_lists_of_an_empty_zookeeper_change_nothing(zookeeper_address: str) -> None:
    connect = await asyncio.to_thread(make_chroot, zookeeper_address, "nothing-yet")

    def run() -> list[str]:
        for words, shown in ((["user", "list"], "no SCRAM users\n"), (["acl", "list"], "no ACLs\n")):
            done = CliRunner().invoke(
                main, [*words, "--override", f"zookeeper.connect={connect}", "--override", AUTHORIZER]
            )
            assert (done.exit_code, done.stdout) == (0, shown), done.output
        kazoo = KazooClient(connect)
        kazoo.start()
        try:
            return list(kazoo.get_children("/"))
        finally:
            kazoo.stop()
            kazoo.close()

    assert await asyncio.to_thread(run) == []
