"""`kafka-dt token`: flags, forms of output, exit status; run in this process against a scripted server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import javaproperties
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from kafka_dt.cli import main
from kafka_dt.cli.output import Output
from kafka_dt.cli.tables import iso_utc
from kafka_dt.cli.token.commands import write_token, write_tokens
from kafka_dt.client import ClientConfig, DelegationToken, jaas_line, parse_addresses
from kafka_dt.jaas import parse_login_module
from kafka_dt_protocol.api.registry import ApiKey, response_type
from kafka_dt_protocol.api.responses import element_type
from kafka_dt_protocol.wire.times import from_duration
from tests.support.protocol.scripted_server import CLOSE, ScriptedServer
from tests.unit.client.conftest import TOKEN, created, expiry, properties

Kafka = Callable[..., Coroutine[Any, Any, Result]]
OTHER = replace(TOKEN, token_id="other-id", owner="User:bob", renewers=())


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    scripted = ScriptedServer(users={"alice": "wonder"})
    scripted.scripts = {
        ApiKey.CREATE_DELEGATION_TOKEN: lambda _header, _request: created(),
        ApiKey.RENEW_DELEGATION_TOKEN: lambda _header, _request: expiry(7_000_000),
        ApiKey.EXPIRE_DELEGATION_TOKEN: lambda _header, _request: expiry(8_000_000),
        ApiKey.DESCRIBE_DELEGATION_TOKEN: _described,
    }
    async with scripted.running():
        yield scripted


def _described(header: Any, _request: Any) -> dict[str, Any]:
    kind: Any = element_type(response_type(header), "tokens")
    renewer: Any = element_type(kind, "renewers")
    tokens = tuple(
        kind(
            **{
                name: value
                for name, value in created(token).items()
                if name not in {"error_code", "issue_timestamp", "expiry_timestamp", "max_timestamp"}
            },
            issue_timestamp=token.issue_timestamp_ms,
            expiry_timestamp=token.expiry_timestamp_ms,
            max_timestamp=token.max_timestamp_ms,
            renewers=tuple(renewer(principal_type="User", principal_name=name[5:]) for name in token.renewers),
        )
        for token in (TOKEN, OTHER)
    )
    return {"error_code": ErrorCode.none, "tokens": tokens}


@pytest.fixture
def kafka_dt(server: ScriptedServer) -> Kafka:
    """Run `kafka-dt token ...` with the server's address."""

    async def run(*arguments: str, **options: Any) -> Result:
        command = ["token", *arguments, "--bootstrap-server", server.address]
        return await asyncio.to_thread(CliRunner().invoke, main, command, **options)

    return run


async def test_create_sends_what_the_flags_say(server: ScriptedServer, kafka_dt: Kafka) -> None:
    requests = server.record(ApiKey.CREATE_DELEGATION_TOKEN)
    renewers = ("--renewer-principal", "User:carol", "--renewer-principal", "User:dave")
    result = await kafka_dt("create", "--max-life-time-period", "60000", "--owner-principal", "User:alice", *renewers)
    assert result.exit_code == 0, result.output
    (request,) = requests
    assert from_duration(request.max_lifetime) == 60_000
    assert request.owner_principal_name == "alice"
    assert [renewer.principal_name for renewer in request.renewers] == ["carol", "dave"]


async def test_the_table_of_a_token_shows_all_of_it(kafka_dt: Kafka) -> None:
    result = await kafka_dt("create", env={"COLUMNS": "20"})
    lines = {line.split()[0]: line.split(maxsplit=1)[1].rstrip() for line in result.stdout.splitlines()}
    assert lines == {
        "TOKENID": TOKEN.token_id,
        "OWNER": "User:alice",
        "REQUESTER": "User:boss",
        "RENEWERS": "-",
        "ISSUED": "1970-01-01T00:16:40Z",
        "EXPIRES": "1970-01-01T00:33:20Z",
        "MAX": "1970-01-01T00:50:00Z",
        "HMAC": TOKEN.hmac_base64,
    }
    assert "\x1b" not in result.stdout


async def test_json_has_the_names_of_token_list_and_those_of_0_1_0(kafka_dt: Kafka) -> None:
    result = await kafka_dt("create", "--output", "json", "--renewer-principal", "User:carol")
    assert json.loads(result.stdout) == {
        "token_id": TOKEN.token_id,
        "owner": "User:alice",
        "requester": "User:boss",
        "renewers": ["User:carol"],
        "issue_timestamp": 1_000_001,
        "expiry_timestamp": 2_000_002,
        "max_timestamp": 3_000_003,
        "hmac": TOKEN.hmac_base64,
        "tokenId": TOKEN.token_id,
        "tokenRequester": "User:boss",
        "issueTimestamp": 1_000_001,
        "expiryTimestamp": 2_000_002,
        "maxTimestamp": 3_000_003,
    }


async def test_properties_are_ready_to_paste(server: ScriptedServer, kafka_dt: Kafka, tmp_path: Path) -> None:
    command_config = tmp_path / "client.properties"
    command_config.write_text(javaproperties.dumps(properties(server, "SCRAM-SHA-512")))
    result = await kafka_dt("create", "--output", "properties", "--command-config", str(command_config))
    assert result.exit_code == 0, result.output
    assert server.logins == ["alice"]
    assert javaproperties.loads(result.stdout) == {
        "bootstrap.servers": server.address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": jaas_line(TOKEN),
    }
    # They are read by the command itself, too.
    command_config.write_text(result.stdout)
    server.users[TOKEN.token_id] = TOKEN.hmac_base64
    server.tokens = frozenset({TOKEN.token_id})
    again = await asyncio.to_thread(
        CliRunner().invoke, main, ["token", "describe", "--command-config", str(command_config)]
    )
    assert again.exit_code == 0, again.output
    assert server.logins == ["alice", TOKEN.token_id]


async def test_jaas_is_one_line(kafka_dt: Kafka) -> None:
    result = await kafka_dt("create", "--output", "jaas")
    assert result.stdout == jaas_line(TOKEN) + "\n"


async def test_describe_prints_every_token(server: ScriptedServer, kafka_dt: Kafka) -> None:
    requests = server.record(ApiKey.DESCRIBE_DELEGATION_TOKEN)
    first, second = (await kafka_dt("describe", env={"COLUMNS": "20"})).stdout.split("\n\n")
    names = [line.split()[0] for line in first.splitlines()]
    assert names == ["TOKENID", "OWNER", "REQUESTER", "RENEWERS", "ISSUED", "EXPIRES", "MAX", "HMAC"]
    assert f"TOKENID    {TOKEN.token_id}\n" in first
    assert "RENEWERS   User:carol, User:dave\n" in first
    assert first.endswith(f"HMAC       {TOKEN.hmac_base64}")
    assert f"TOKENID    {OTHER.token_id}\n" in second
    assert not any(line.endswith(" ") for line in [*first.splitlines(), *second.splitlines()])
    objects = json.loads((await kafka_dt("describe", "--output", "json")).stdout)["tokens"]
    assert [token["token_id"] for token in objects] == [TOKEN.token_id, OTHER.token_id]
    assert (await kafka_dt("describe", "--output", "jaas")).stdout == f"{jaas_line(TOKEN)}\n{jaas_line(OTHER)}\n"
    blocks = (await kafka_dt("describe", "--output", "properties")).stdout.split("\n\n")
    assert [javaproperties.loads(block)["sasl.jaas.config"] for block in blocks] == [jaas_line(TOKEN), jaas_line(OTHER)]
    assert [block.splitlines()[0] for block in blocks] == [f"# {TOKEN.token_id}", f"# {OTHER.token_id}"]
    await kafka_dt("describe", "--owner-principal", "User:a", "--owner-principal", "Group:b")
    assert [request.owners for request in requests[:4]] == [None] * 4
    assert [(owner.principal_type, owner.principal_name) for owner in requests[4].owners] == [
        ("User", "a"),
        ("Group", "b"),
    ]


async def test_no_tokens_are_said_so(server: ScriptedServer, kafka_dt: Kafka) -> None:
    server.scripts[ApiKey.DESCRIBE_DELEGATION_TOKEN] = lambda _header, _request: {
        "error_code": ErrorCode.none,
        "tokens": (),
    }
    assert (await kafka_dt("describe")).stdout == "no tokens\n"
    assert json.loads((await kafka_dt("describe", "--output", "json")).stdout) == {"tokens": []}
    assert (await kafka_dt("describe", "--output", "properties")).stdout == ""


async def test_a_deletion_is_said_so(kafka_dt: Kafka) -> None:
    assert (await kafka_dt("expire", "--hmac", TOKEN.hmac_base64)).stdout == "deleted\n"
    assert (await kafka_dt("renew", "--hmac", TOKEN.hmac_base64)).stdout.startswith("EXPIRES  ")


async def test_an_unusable_hmac_is_told_by_its_source(kafka_dt: Kafka, tmp_path: Path) -> None:
    file = tmp_path / "hmac"
    for content, message in (
        (b"\n", f"--hmac-file {file} is empty"),
        (b"secret?", f"--hmac-file {file} is not base64 text; give it as it was shown when the token was made"),
        (b"\xff\xfe", f"--hmac-file {file} cannot be read: it is no text"),
    ):
        file.write_bytes(content)
        result = await kafka_dt("expire", "--hmac-file", str(file))
        assert (result.exit_code, result.stderr) == (1, f"Error: {message}\n")
    result = await kafka_dt("expire", env={"KAFKA_DT_HMAC": ""})
    assert (result.exit_code, result.stderr) == (1, "Error: KAFKA_DT_HMAC is empty\n")
    result = await kafka_dt("expire", "--hmac", "", env={"KAFKA_DT_HMAC": TOKEN.hmac_base64})
    assert (result.exit_code, result.stderr) == (1, "Error: --hmac is empty\n")


class Change(NamedTuple):
    """A command that changes a token, and what it sends."""

    action: str
    flag: str
    api: ApiKey
    period_field: str
    expiry_timestamp_ms: int


CHANGES = [
    Change("renew", "--renew-time-period", ApiKey.RENEW_DELEGATION_TOKEN, "renew_period", 7_000_000),
    Change("expire", "--expiry-time-period", ApiKey.EXPIRE_DELEGATION_TOKEN, "expiry_time_period", 8_000_000),
]


@pytest.mark.parametrize("change", CHANGES)
async def test_renew_and_expire_print_the_new_expiry(server: ScriptedServer, kafka_dt: Kafka, change: Change) -> None:
    requests = server.record(change.api)
    table = await kafka_dt(change.action, "--hmac", TOKEN.hmac_base64, change.flag, "1234")
    assert table.stdout == f"EXPIRES  {iso_utc(change.expiry_timestamp_ms)}\n"
    as_json = await kafka_dt(change.action, "--hmac", TOKEN.hmac_base64, "--output", "json")
    expiry = change.expiry_timestamp_ms
    assert json.loads(as_json.stdout) == {"expiry_timestamp": expiry, "expiryTimestamp": expiry}
    assert [request.hmac for request in requests] == [TOKEN.hmac] * 2
    assert [from_duration(getattr(request, change.period_field)) for request in requests] == [1234, -1]


@pytest.mark.parametrize("change", CHANGES)
async def test_the_hmac_comes_from_a_file_the_input_or_the_environment(
    server: ScriptedServer, kafka_dt: Kafka, tmp_path: Path, change: Change
) -> None:
    requests = server.record(change.api)
    file = tmp_path / "hmac"
    file.write_text(TOKEN.hmac_base64 + "\n")
    await kafka_dt(change.action, "--hmac-file", str(file))
    await kafka_dt(change.action, "--hmac-file", "-", input=TOKEN.hmac_base64)
    await kafka_dt(change.action, env={"KAFKA_DT_HMAC": TOKEN.hmac_base64})
    assert [request.hmac for request in requests] == [TOKEN.hmac] * 3


USAGE = [
    (["renew"], "Missing option '--hmac-file'"),
    (["renew", "--hmac", "YQ==", "--hmac-file", "-"], "not both"),
    (["renew", "--hmac-file", "/nowhere/hmac"], "No such file"),
    (["renew", "--hmac", "YQ==", "--renew-time-period", "soon"], "is not a valid integer"),
    (["renew", "--hmac", "YQ==", "--output", "jaas"], "is not one of"),
    (["create", "--max-life-time-period", str(2**63)], "does not fit 64 bits"),
    (["create", "--command-config", "/nowhere/client.properties"], "does not exist"),
    (["create", "--what"], "No such option"),
    (["rename"], "No such command"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE)
async def test_wrong_usage_exits_with_2(kafka_dt: Kafka, arguments: list[str], message: str) -> None:
    result = await kafka_dt(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_a_server_has_to_be_named() -> None:
    result = CliRunner().invoke(main, ["token", "create"])
    assert result.exit_code == 2
    assert "--bootstrap-server" in result.stderr


def _refuse(server: ScriptedServer) -> None:
    server.scripts[ApiKey.RENEW_DELEGATION_TOKEN] = lambda _header, _request: {
        **expiry(-1),
        "error_code": ErrorCode.delegation_token_not_found,
    }


async def test_a_refusal_is_one_line_and_exits_with_1(server: ScriptedServer, kafka_dt: Kafka) -> None:
    _refuse(server)
    result = await kafka_dt("renew", "--hmac", TOKEN.hmac_base64)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("Error: renew refused: no token has this HMAC")
    assert result.stderr.count("\n") == 1
    assert TOKEN.hmac_base64 not in result.stderr


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (b"security.protocol=TLS", "Error: security.protocol: 'TLS' is none of"),
        (b"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN", "Error: sasl.jaas.config: PLAIN needs it"),
        (b"sasl.jaas.config=hunter2\\u12", r"cannot be read: it has \u without four hex digits behind it"),
        (b"bootstrap.servers=x\nrequest.timeout.ms=0", "Error: request.timeout.ms"),
    ],
)
async def test_an_unusable_config_is_one_line_and_exits_with_1(
    kafka_dt: Kafka, tmp_path: Path, config: bytes, message: str
) -> None:
    file = tmp_path / "client.properties"
    file.write_bytes(config)
    result = await kafka_dt("describe", "--command-config", str(file))
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert "hunter2" not in result.stderr


async def test_an_unusable_hmac_is_one_line_and_exits_with_1(kafka_dt: Kafka) -> None:
    result = await kafka_dt("renew", "--hmac", "no base64")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1


async def test_help_says_how_to_keep_an_hmac_to_oneself(kafka_dt: Kafka) -> None:
    result = await kafka_dt("renew", "--help")
    text = " ".join(result.stdout.split())
    assert "Other users of this machine can see a command line" in text
    assert "KAFKA_DT_HMAC" in text


PRINCIPALS = st.text(min_size=1, max_size=30).map(lambda name: f"User:{name}")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(owner=PRINCIPALS, renewers=st.lists(PRINCIPALS, max_size=3))
def test_no_name_can_steer_the_terminal_or_break_a_form(
    capsys: pytest.CaptureFixture[str], owner: str, renewers: list[str]
) -> None:
    token = replace(TOKEN, owner=owner, renewers=tuple(renewers))
    config = ClientConfig(bootstrap_servers=parse_addresses("a:1"))
    write_token(token, Output.TABLE, config)
    write_tokens([token], Output.TABLE, config)
    assert all(character.isprintable() or character == "\n" for character in capsys.readouterr().out)
    write_token(token, Output.JSON, config)
    printed = json.loads(capsys.readouterr().out)
    assert (printed["owner"], printed["renewers"]) == (owner, renewers)


@given(token_id=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30), hmac=st.binary(min_size=1))
def test_properties_hold_any_token(token_id: str, hmac: bytes) -> None:
    token: DelegationToken = replace(TOKEN, token_id=token_id, hmac=hmac)
    written = javaproperties.dumps({"sasl.jaas.config": jaas_line(token)}, timestamp=None)
    module = parse_login_module(javaproperties.loads(written)["sasl.jaas.config"])
    assert (module.username, module.password) == (token_id, token.hmac_base64)


@pytest.mark.parametrize(
    ("timestamp_ms", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_700_000_000_999, "2023-11-14T22:13:20Z"),
        (-1, "1969-12-31T23:59:59Z"),
        (2**63 - 1, str(2**63 - 1)),
    ],
)
def test_instants_are_iso_utc(timestamp_ms: int, text: str) -> None:
    assert iso_utc(timestamp_ms) == text


@pytest.mark.parametrize("command", ["create", "describe"])
async def test_without_a_login_the_option_that_brings_one_is_named(
    server: ScriptedServer, kafka_dt: Kafka, command: str
) -> None:
    for api in (ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN):
        server.scripts[api] = lambda _header, _request: CLOSE
    result = await kafka_dt(command)
    assert result.exit_code == 1
    assert result.stderr.endswith("sasl.jaas.config in the file of --command-config\n")
