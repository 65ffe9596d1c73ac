"""`kafka-dt user` and `kafka-dt acl` at a real broker and at kafka-dt, beside Kafka's own tools."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafka_dt.cli import main
from tests.interop.conftest import Authority
from tests.support.brokers.broker import USERS, Broker
from tests.support.java.properties import SCRAM_MECHANISMS, plain, write_properties
from tests.support.java.tools import KafkaTools
from tests.support.nodes.server import KafkaDt
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import scram_logs_in

Ask = Callable[..., Result]
ADMIN = plain("admin", USERS["admin"])


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., Result]:
    """Run a command as User:admin at an authority: `ask(authority, "user", "list")`."""
    login = write_properties(tmp_path / "admin.properties", ADMIN)
    return lambda authority, *words: CliRunner().invoke(
        main, [*words, "--bootstrap-server", authority.sasl, "--command-config", str(login)]
    )


def ok(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def printed(result: Result) -> Any:
    return json.loads(ok(result))


def with_all_mechanisms(authority: Authority, user: str, password: str) -> list[bool]:
    return [scram_logs_in(authority.sasl, user, password, mechanism) for mechanism in SCRAM_MECHANISMS]


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with the password "first päss"; "second" is in the variable NEXT_PASSWORD."""
    file = tmp_path / "password"
    file.write_text("first päss\n")
    monkeypatch.setenv("NEXT_PASSWORD", "second")
    return file


def test_a_user_made_at_either_logs_in_at_both(
    authority: Authority, broker: Broker, server: KafkaDt, ask: Ask, secret: Path
) -> None:
    name = f"user {uuid.uuid4().hex}*~"

    def both_take(password: str, *mechanisms: bool) -> bool:
        return all(with_all_mechanisms(each, name, password) == list(mechanisms) for each in (broker, server))

    ok(ask(authority, "user", "create", name, "--password", f"file:{secret}", "--iterations", "5000"))
    eventually(lambda: both_take("first päss", True, True), 5)
    (listed,) = (user for user in printed(ask(authority, "user", "list", "--output", "json")) if user["name"] == name)
    assert listed["credentials"] == [{"mechanism": mechanism, "iterations": 5000} for mechanism in SCRAM_MECHANISMS]
    again = ask(authority, "user", "create", name, "--password", f"file:{secret}")
    assert (again.exit_code, "exists" in again.stderr) == (1, True)
    ok(ask(authority, "user", "delete", name, "--mechanism", "scram-sha-512"))
    ok(ask(authority, "user", "passwd", name, "--password", "env:NEXT_PASSWORD"))
    eventually(lambda: both_take("second", True, False), 5)
    ok(ask(authority, "user", "delete", name))
    eventually(lambda: both_take("second", False, False), 5)
    missing = ask(authority, "user", "passwd", name, "--password", "env:NEXT_PASSWORD")
    assert (missing.exit_code, "there is no SCRAM user" in missing.stderr) == (1, True)


ALICE = ("--allow-principal", "User:alice {}")
"""A principal of the test's own: an ACL of the cluster is known by it, and one that an earlier test removed at the
other of the two may be there for a moment."""
WORDS = [
    (*ALICE, "--topic", "{}"),
    (*ALICE, "--allow-host", "10.0.0.7", "--operation", "Read", "--operation", "Describe", "--topic", "{}"),
    ("--deny-principal", "User:*", "--deny-host", "10.0.0.8", *ALICE, "--operation", "All", "--group", "{}"),
    (*ALICE, "--operation", "Write", "--topic", "{}", "--topic", "{}-2", "--resource-pattern-type", "prefixed"),
    (*ALICE, "--operation", "CreateTokens", "--operation", "DescribeTokens", "--user-principal", "User:{}"),
    (*ALICE, "--operation", "Describe", "--delegation-token", "{}"),
    (*ALICE, "--operation", "Write", "--transactional-id", "{}"),
    (*ALICE, "--producer", "--topic", "{}", "--transactional-id", "{}", "--idempotent"),
    (*ALICE, "--consumer", "--topic", "{}", "--group", "{}"),
    (*ALICE, "--producer", "--consumer", "--topic", "{}", "--group", "{}"),
]


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_the_words_of_kafka_acls_mean_the_same(
    guarded: Authority, kafka_39: KafkaTools, ask: Ask, words: tuple[str, ...]
) -> None:
    name = uuid.uuid4().hex
    words = tuple(word.format(name) for word in words)

    def listed() -> list[dict[str, str]]:
        every = printed(ask(guarded, "acl", "list", "--output", "json"))
        return [acl for acl in every if name in acl["resource_name"] or name in acl["principal"]]

    kafka_39.acls(guarded.sasl, ADMIN, "--add", *words).ok()
    by_kafka = listed()
    assert by_kafka
    assert printed(ask(guarded, "acl", "remove", *words, "--output", "json")) == by_kafka
    assert listed() == []
    assert printed(ask(guarded, "acl", "add", *words, "--dry-run", "--output", "json")) == by_kafka
    assert listed() == []
    assert printed(ask(guarded, "acl", "add", *words, "--output", "json")) == by_kafka
    assert listed() == by_kafka
    kafka_39.acls(guarded.sasl, ADMIN, "--remove", "--force", *words).ok()
    assert listed() == []


def test_acls_are_found_by_pattern_and_principal_and_removed_all_at_once(guarded: Authority, ask: Ask) -> None:
    name = uuid.uuid4().hex
    for words in (
        ("--topic", name, "--allow-principal", "User:alice", "--operation", "Read"),
        ("--topic", name[:6], "--resource-pattern-type", "prefixed", "--deny-principal", "User:bob"),
    ):
        ok(ask(guarded, "acl", "add", *words))

    def principals(*words: str) -> list[str]:
        found = printed(ask(guarded, "acl", "list", *words, "--output", "json"))
        return sorted(acl["principal"] for acl in found)

    assert principals("--topic", name) == ["User:alice"]
    assert principals("--topic", name, "--resource-pattern-type", "match") == ["User:alice", "User:bob"]
    matching = ("--topic", name, "--resource-pattern-type", "match")
    assert principals(*matching, "--principal", "User:bob") == ["User:bob"]
    unsure = ask(guarded, "acl", "remove", *matching)
    assert (unsure.exit_code, "would remove 2 ACLs: say --yes" in unsure.stderr) == (2, True)
    assert len(printed(ask(guarded, "acl", "remove", *matching, "--dry-run", "--output", "json"))) == 2
    assert principals(*matching) == ["User:alice", "User:bob"]
    ok(ask(guarded, "acl", "remove", *matching, "--yes"))
    assert principals(*matching) == []


# A broker gives no answer to `user list` of a user who may not: it fails in making the refusal.
@pytest.mark.parametrize("words", [("user", "delete", "x"), ("acl", "list"), ("acl", "remove", "--cluster", "--yes")])
def test_who_may_not_is_told_what_is_missing(guarded: Authority, tmp_path: Path, words: tuple[str, ...]) -> None:
    login = write_properties(tmp_path / "bob.properties", plain("bob", USERS["bob"]))
    refused = CliRunner().invoke(main, [*words, "--bootstrap-server", guarded.sasl, "--command-config", str(login)])
    assert refused.exit_code == 1
    assert "needs a super user, or an ACL" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_check_tells_which_settings_a_broker_has_otherwise(broker: Broker, server: KafkaDt, tmp_path: Path) -> None:
    login = write_properties(tmp_path / "admin.properties", ADMIN)
    command = ["check", "--config", str(server.configuration), "--output", "json"]
    beside = ["--bootstrap-server", broker.sasl, "--command-config", str(login)]

    def at_the_brokers(*overrides: str) -> dict[str, str]:
        found = printed(CliRunner().invoke(main, [*command, *beside, *overrides]))["warnings"]
        return {each["setting"]: each["problem"] for each in found if "at the brokers" in each["problem"]}

    assert at_the_brokers() == {}
    longer = (
        "--override",
        "delegation.token.max.lifetime.ms=1209600000",
        "--override",
        "connections.max.reauth.ms=60000",
    )
    assert at_the_brokers(*longer) == {
        "delegation.token.max.lifetime.ms": "it is '1209600000' here and '604800000' at the brokers",
        "connections.max.reauth.ms": "it is '60000' here and '0' at the brokers",
    }
