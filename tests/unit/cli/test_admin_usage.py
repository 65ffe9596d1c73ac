"""`kafka-dt user` and `kafka-dt acl`: wrong usage, passwords, and the controller; run against a scripted server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from kio.schema.errors import ErrorCode

from kafka_dt.cli import main
from kafka_dt.client import Acl, AclFilter, AdminClient, ClusterAuthorizationFailed, RequestRefused
from kafka_dt_protocol.api.acls import AclOperation, AclPermissionType, PatternType, ResourceType
from kafka_dt_protocol.api.registry import ApiKey, response_type
from kafka_dt_protocol.api.responses import build, element_type
from kafka_dt_protocol.sasl import ScramMechanism, derive_keys, keys_of
from tests.support.protocol.scripted_server import ScriptedServer

PROGRAM = str(Path(sys.executable).with_name("kafka-dt"))
DESCRIBE_USERS, ALTER_USERS = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS
ALLOW_ALICE = ("--allow-principal", "User:alice")
USAGE = [
    (["user", "create", "x"], "Missing option '--password'"),
    (["user", "create", "x", "--password", "secret"], "--password takes file:F or env:N"),
    (["user", "create", "x", "--password", "file:/dev/null"], "The password is empty"),
    (["user", "create", "x", "--password", "file:/proc/self/limits"], "The password has a line end in it"),
    (["user", "create", "j\u00fcrgen", "--password", "env:HOME"], "SCRAM has names of ASCII only"),
    (["user", "create", "x", "--iterations", "4095"], "4095 is not in the range"),
    (["user", "delete", "x", "--mechanism", "plain"], "'PLAIN' is not one of 'SCRAM-SHA-256', 'SCRAM-SHA-512'"),
    (["acl", "add", "--topic", "t"], "Name who is allowed or denied"),
    (["acl", "add", *ALLOW_ALICE], "Name a resource"),
    (["acl", "add", "--topic", "t", "--allow-principal", "alice"], "write User:alice"),
    (["acl", "add", *ALLOW_ALICE, "--user-principal", "alice"], "'alice' has no type: write User:alice"),
    (["acl", "add", *ALLOW_ALICE, "--user-principal", "User:a", "--user-principal", "b", "--dry-run"], "write User:b"),
    (["acl", "add", *ALLOW_ALICE, "--user-principal", ":a"], "':a' has no type"),
    (
        ["acl", "add", "--topic", "t", *ALLOW_ALICE, "--operation", "CreateTokens"],
        "Topic has no operation CreateTokens",
    ),
    (["acl", "add", "--topic", "t", *ALLOW_ALICE, "--operation", "Reed"], "'Reed' is none of All, Read, Write"),
    (["acl", "add", "--topic", "t", *ALLOW_ALICE, "--resource-pattern-type", "match"], "literal or prefixed"),
    (["acl", "add", "--topic", "t", "--deny-principal", "User:b", "--allow-host", "1.1.1.1"], "--allow-host needs"),
    (["acl", "add", "--topic", "t", *ALLOW_ALICE, "--idempotent"], "--idempotent needs --producer"),
    (["acl", "add", "--topic", "t", *ALLOW_ALICE, "--producer", "--operation", "Read"], "give no --operation"),
    (["acl", "add", "--group", "g", *ALLOW_ALICE, "--producer"], "--producer needs --topic"),
    (["acl", "remove"], "Name the resources"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE)
def test_wrong_usage_exits_with_2(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, [*arguments, "--bootstrap-server", "127.0.0.1:1"])
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer().running() as scripted:
        yield scripted


def client_of(server: ScriptedServer) -> AdminClient:
    return AdminClient.from_config({"bootstrap.servers": server.address})


def altered(error: ErrorCode, message: str | None = None) -> Any:
    def answer(header: Any, request: Any) -> dict[str, Any]:
        result = element_type(response_type(header), "results")
        names = {each.name for each in (*request.upsertions, *request.deletions)}
        return {"results": tuple(result(user=name, error_code=error, error_message=message) for name in names)}

    return answer


async def test_the_server_gets_salted_passwords(server: ScriptedServer) -> None:
    server.scripts[ALTER_USERS] = altered(ErrorCode.none)
    requests = server.record(ALTER_USERS)
    async with client_of(server) as client:
        await client.set_password("alice", "wonder", iterations=5000)
    first, second = (each for request in requests for each in request.upsertions)
    assert len(requests) == 2
    assert first.salt != second.salt
    for mechanism, number, each in ((ScramMechanism.SHA_256, 1, first), (ScramMechanism.SHA_512, 2, second)):
        assert (each.mechanism, each.iterations) == (number, 5000)
        assert keys_of(mechanism, each.salted_password) == derive_keys(mechanism, "wonder", each.salt, 5000)


async def test_a_broker_that_is_not_the_controller_names_the_one_that_is(server: ScriptedServer) -> None:
    async with ScriptedServer().running() as controller:
        controller.scripts[ALTER_USERS] = altered(ErrorCode.none)
        there = controller.record(ALTER_USERS)

        def metadata(header: Any, _request: Any) -> dict[str, Any]:
            kind = response_type(header)
            broker = element_type(kind, "brokers")
            port = int(controller.address.rpartition(":")[2])
            brokers = tuple(
                build(broker, node_id=node, host="127.0.0.1", port=number, rack=None)
                for node, number in ((1, 1), (2, port))
            )
            return {
                "brokers": brokers,
                "controller_id": 2,
                "cluster_id": None,
                "topics": (),
                "cluster_authorized_operations": 0,
                "error_code": ErrorCode.none,
            }

        server.scripts |= {ALTER_USERS: altered(ErrorCode.not_controller), ApiKey.METADATA: metadata}
        async with client_of(server) as client:
            await client.delete_user("alice", [ScramMechanism.SHA_512])
    assert [(each.name, each.mechanism) for each in there[0].deletions] == [("alice", 2)]


async def test_refusals_carry_the_words_of_the_server_or_advice(server: ScriptedServer) -> None:
    server.scripts[ALTER_USERS] = altered(ErrorCode.unacceptable_credential, "The name is \x1b[2J too long")
    server.scripts[DESCRIBE_USERS] = lambda *_: {
        "error_code": ErrorCode.cluster_authorization_failed,
        "error_message": "Cluster authorization failed.",
        "results": (),
    }
    async with client_of(server) as client:
        with pytest.raises(
            RequestRefused, match=r"set password for SCRAM-SHA-256 refused: The name is .* too long \(Kafka error 93"
        ):
            await client.set_password("alice", "wonder")
        with pytest.raises(ClusterAuthorizationFailed, match="DESCRIBE to read"):
            await client.scram_users()


async def test_a_password_is_asked_for_twice_and_never_shown(server: ScriptedServer) -> None:
    server.scripts |= {
        ALTER_USERS: altered(ErrorCode.none),
        DESCRIBE_USERS: lambda *_: {"error_code": ErrorCode.none, "error_message": None, "results": ()},
    }
    requests = server.record(ALTER_USERS)
    command = [PROGRAM, "user", "create", "alice", "--mechanism", "SCRAM-SHA-256", "--bootstrap-server", server.address]
    shown = await asyncio.to_thread(on_terminal, command, [("Password: ", "wonder"), ("confirmation: ", "wonder")])
    assert shown.split() == ["Password:", "Repeat", "for", "confirmation:", "created", "alice"]
    (made,) = requests[0].upsertions
    expected = derive_keys(ScramMechanism.SHA_256, "wonder", made.salt, made.iterations)
    assert keys_of(ScramMechanism.SHA_256, made.salted_password) == expected


async def test_the_tokens_of_an_owner_end_only_after_a_yes_at_a_terminal() -> None:
    command = [PROGRAM, "token", "revoke", "--owner", "User:alice", "--bootstrap-server", "127.0.0.1:1"]
    question = "This ends every token of User:alice (--dry-run shows which). Continue? [y/N]: "
    assert on_terminal(command, [(question, "n")], status=1).endswith("Aborted!\r\n")
    assert "no bootstrap server can be used" in on_terminal(command, [(question, "y")], status=1)


def on_terminal(command: list[str], answers: list[tuple[str, str]], status: int = 0) -> str:
    """Run a program on a terminal of its own, answer its questions, and give all that the terminal shows."""
    terminal, of_program = os.openpty()
    shown = ""
    try:
        with subprocess.Popen(
            command, stdin=of_program, stdout=of_program, stderr=of_program, start_new_session=True
        ) as process:
            os.close(of_program)
            for question, answer in answers:
                while not shown.endswith(question):
                    shown += os.read(terminal, 1000).decode()
                os.write(terminal, f"{answer}\n".encode())
            with suppress(OSError):  # the end of a terminal on Linux
                while piece := os.read(terminal, 1000):
                    shown += piece.decode()
        assert process.returncode == status, shown
    finally:
        os.close(terminal)
    return shown


async def test_a_user_that_does_not_exist_and_a_mechanism_of_tomorrow_are_left_out(server: ScriptedServer) -> None:
    def described(header: Any, _request: Any) -> dict[str, Any]:
        result = element_type(response_type(header), "results")
        info = element_type(result, "credential_infos")
        none, missing = ErrorCode.none, ErrorCode.resource_not_found
        infos = (info(mechanism=3, iterations=1), info(mechanism=1, iterations=8192))
        return {
            "error_code": none,
            "error_message": None,
            "results": (
                result(user="alice", error_code=none, error_message=None, credential_infos=infos),
                result(user="bob", error_code=missing, error_message="no", credential_infos=()),
            ),
        }

    server.scripts[DESCRIBE_USERS] = described
    async with client_of(server) as client:
        assert await client.scram_users(["alice", "bob"]) == {"alice": {ScramMechanism.SHA_256: 8192}}
    shown = await asyncio.to_thread(ask, server, "user", "list", "--output", "json")
    assert json.loads(shown.stdout) == [
        {"name": "alice", "credentials": [{"mechanism": "SCRAM-SHA-256", "iterations": 8192}]}
    ]


async def test_a_user_is_deleted_by_name_without_a_question_and_can_be_tried(server: ScriptedServer) -> None:
    def described(header: Any, _request: Any) -> dict[str, Any]:
        result = element_type(response_type(header), "results")
        info = element_type(result, "credential_infos")
        alice = result(
            user="alice",
            error_code=ErrorCode.none,
            error_message=None,
            credential_infos=(info(mechanism=1, iterations=8192),),
        )
        return {"error_code": ErrorCode.none, "error_message": None, "results": (alice,)}

    server.scripts |= {DESCRIBE_USERS: described, ALTER_USERS: altered(ErrorCode.none)}
    requests = server.record(ALTER_USERS)
    deleting = ("user", "delete", "alice")
    held = {"name": "alice", "credentials": [{"mechanism": "SCRAM-SHA-256", "iterations": 8192}]}

    tried = await asyncio.to_thread(ask, server, *deleting, "--dry-run", "--output", "json")
    assert json.loads(tried.stdout) == held
    shown = await asyncio.to_thread(ask, server, *deleting, "--dry-run", "--mechanism", "Scram-Sha-256")
    assert shown.stdout == "would delete SCRAM-SHA-256 of alice\n"
    lacking = await asyncio.to_thread(ask, server, *deleting, "--mechanism", "scram-sha-512")
    assert (lacking.exit_code, lacking.stderr) == (
        1,
        "Error: user 'alice' has no SCRAM-SHA-512, only SCRAM-SHA-256\n",
    )
    assert requests == []
    assert (await asyncio.to_thread(ask, server, *deleting)).stdout == "deleted alice\n"
    done = await asyncio.to_thread(ask, server, *deleting, "--yes", "--output", "json")
    assert json.loads(done.stdout) == held
    assert [[(each.name, each.mechanism) for each in request.deletions] for request in requests] == [[("alice", 1)]] * 2


async def test_acls_of_a_server_without_types_of_patterns_are_not_guessed(server: ScriptedServer) -> None:
    server.versions[ApiKey.CREATE_ACLS] = server.versions[ApiKey.DESCRIBE_ACLS] = (0, 0)
    acl = Acl(
        ResourceType.TOPIC,
        "t",
        PatternType.PREFIXED,
        "User:alice",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    async with client_of(server) as client:
        with pytest.raises(Exception, match="types of resource patterns"):
            await client.create_acls([acl])
        with pytest.raises(Exception, match="types of resource patterns"):
            await client.acls(AclFilter.of(acl))


def ask(server: ScriptedServer, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--bootstrap-server", server.address])


async def test_nothing_to_list_is_said(server: ScriptedServer) -> None:
    nothing: dict[str, Any] = {"error_code": ErrorCode.none, "error_message": None}
    server.scripts[DESCRIBE_USERS] = lambda *_: {**nothing, "results": ()}
    server.scripts[ApiKey.DESCRIBE_ACLS] = lambda *_: {**nothing, "resources": ()}
    assert (await asyncio.to_thread(ask, server, "user", "list")).stdout == "no SCRAM users\n"
    assert (await asyncio.to_thread(ask, server, "acl", "list")).stdout == "no ACLs\n"


@pytest.mark.parametrize("arguments", [("*",), ("User:bob",), ("User:", "--resource-pattern-type", "prefixed")])
def test_every_user_one_user_or_those_whose_names_begin_so_are_resources(arguments: tuple[str, ...]) -> None:
    adding = ["acl", "add", *ALLOW_ALICE, "--operation", "CreateTokens", "--dry-run", "--output", "json"]
    done = CliRunner().invoke(main, [*adding, "--bootstrap-server", "127.0.0.1:1", "--user-principal", *arguments])
    assert done.exit_code == 0, done.output
    assert [each["resource_name"] for each in json.loads(done.stdout)] == [arguments[0]]


async def test_an_old_acl_on_a_user_without_a_type_is_listed_and_removed(server: ScriptedServer) -> None:
    """It never matches a user, and other tools can still make it."""
    nothing: dict[str, Any] = {"error_code": ErrorCode.none, "error_message": None, "resources": ()}
    server.scripts[ApiKey.DESCRIBE_ACLS] = lambda *_: nothing
    requests = server.record(ApiKey.DESCRIBE_ACLS)
    for command in (("acl", "list"), ("acl", "remove", *ALLOW_ALICE, "--dry-run")):
        done = await asyncio.to_thread(ask, server, *command, "--user-principal", "bob")
        assert done.exit_code == 0, done.output
    assert [each.resource_name_filter for each in requests] == ["bob", "bob"]


@pytest.mark.parametrize(
    ("command", "types"),
    [
        ("add", ["literal", "prefixed"]),
        ("list", ["any", "literal", "prefixed", "match"]),
        ("remove", ["literal", "prefixed", "match", "any"]),
    ],
)
def test_the_help_explains_the_types_of_patterns_that_the_command_takes(command: str, types: list[str]) -> None:
    shown = " ".join(CliRunner().invoke(main, ["acl", command, "--help"]).stdout.split())
    _, _, text = shown.partition(f"--resource-pattern-type [{'|'.join(types)}] ")
    explained = re.findall(r"(literal|prefixed|match|any): ", text.partition("[default: ")[0])
    assert explained == types
