"""Contexts: what they keep, when they are used, and that they hold no secret; run against a scripted server."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kio.schema.errors import ErrorCode

from kafka_dt.cli import main
from kafka_dt.cli.contexts import contexts_file
from kafka_dt_protocol.api.registry import ApiKey
from tests.support.java.properties import write_properties
from tests.support.protocol.scripted_server import ScriptedServer
from tests.unit.client.conftest import properties


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    scripted = ScriptedServer(users={"alice": "wonder"})
    scripted.scripts[ApiKey.DESCRIBE_DELEGATION_TOKEN] = lambda *_: {"error_code": ErrorCode.none, "tokens": ()}
    async with scripted.running():
        yield scripted


@pytest.fixture
def login(server: ScriptedServer, tmp_path: Path) -> Path:
    without_server = {key: text for key, text in properties(server).items() if key != "bootstrap.servers"}
    return write_properties(tmp_path / "alice.properties", without_server)


def ask(*words: str) -> Result:
    return CliRunner().invoke(main, words)


def ok(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


async def test_a_command_uses_the_current_context(server: ScriptedServer, login: Path) -> None:
    ok(ask("context", "add", "prod", "--bootstrap-server", server.address, "--command-config", str(login)))
    assert ok(await asyncio.to_thread(ask, "token", "list")) == "no tokens\n"
    assert server.logins == ["alice"]


async def test_a_context_can_be_named_for_one_command(
    server: ScriptedServer, login: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ok(ask("context", "add", "away", "--bootstrap-server", "127.0.0.1:1"))
    ok(ask("context", "add", "prod", "--bootstrap-server", server.address, "--command-config", str(login)))
    assert (await asyncio.to_thread(ask, "token", "describe")).exit_code == 1
    ok(await asyncio.to_thread(ask, "--context", "prod", "token", "describe"))
    monkeypatch.setenv("KAFKA_DT_CONTEXT", "prod")
    ok(await asyncio.to_thread(ask, "token", "describe"))
    monkeypatch.delenv("KAFKA_DT_CONTEXT")
    ok(ask("context", "use", "prod"))
    ok(await asyncio.to_thread(ask, "token", "describe"))


async def test_options_are_never_mixed_with_a_context(
    server: ScriptedServer, login: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a login would go to a server that it is not for."""
    ok(ask("context", "add", "prod", "--bootstrap-server", "127.0.0.1:1", "--command-config", str(login)))
    there = ("--bootstrap-server", server.address)
    ok(await asyncio.to_thread(ask, "token", "describe", *there))
    assert server.logins == []
    for words in (("token", "describe", *there), ("token", "list", "--config", str(login))):
        both = ask("--context", "prod", *words)
        assert (both.exit_code, "not both" in both.stderr) == (2, True)
    monkeypatch.setenv("KAFKA_DT_CONTEXT", "prod")
    ok(await asyncio.to_thread(ask, "token", "describe", *there))


def test_contexts_are_listed_used_and_removed(login: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(login.parent)
    assert ok(ask("context", "list")) == "no contexts\n"
    ok(ask("context", "add", "test", "--bootstrap-server", "kafka1:9092,kafka2:9092"))
    ok(ask("context", "add", "prod", "--command-config", login.name))
    assert json.loads(ok(ask("context", "list", "--output", "json"))) == [
        {"name": "prod", "current": False, "bootstrap_server": None, "command_config": str(login)},
        {"name": "test", "current": True, "bootstrap_server": "kafka1:9092,kafka2:9092", "command_config": None},
    ]
    ok(ask("context", "use", "prod"))
    assert "*  prod" in ok(ask("context", "list"))
    ok(ask("context", "remove", "prod"))
    left = ask("token", "list")
    assert (left.exit_code, "or a context" in left.stderr) == (2, True)
    assert login.exists()


def test_the_file_is_for_the_user_alone_and_holds_no_secret(login: Path) -> None:
    ok(ask("context", "add", "prod", "--bootstrap-server", "kafka1:9092", "--command-config", str(login)))
    file = contexts_file()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "wonder" not in file.read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("context", "add", "prod"), "Missing option"),
        (("context", "add", "prod", "--bootstrap-server", "nowhere"), "not of the form host:port"),
        (("context", "add", "prod", "--command-config", "/nowhere"), "does not exist"),
        (("context", "use", "prod"), "no context 'prod'; kafka-dt context add makes one"),
        (("context", "remove", "prod"), "no context 'prod'"),
        (("--context", "prod", "token", "list"), "no context 'prod'"),
    ],
)
def test_a_slip_is_told(words: tuple[str, ...], message: str) -> None:
    done = ask(*words)
    assert done.exit_code in {1, 2}
    assert message in done.stderr
    assert not contexts_file().exists()


def test_a_name_is_given_once_and_a_broken_file_is_told() -> None:
    ok(ask("context", "add", "prod", "--bootstrap-server", "kafka1:9092"))
    again = ask("context", "add", "prod", "--bootstrap-server", "kafka2:9092")
    assert (again.exit_code, "exists" in again.stderr) == (1, True)
    contexts_file().write_text("{}")
    broken = ask("context", "list")
    assert (broken.exit_code, "is no file of contexts" in broken.stderr) == (1, True)
