"""`kafka-dt upstream init`: it makes the topic of revocations, and says which rights nodes need on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kio.schema.errors import ErrorCode

from kafka_dt.cli import main
from kafka_dt.jaas import PLAIN_LOGIN_MODULE
from kafka_dt_protocol.api.registry import AskedApi
from tests.support.protocol.scripted_server import ScriptedServer
from tests.support.tokens.scripted_topic import ScriptedTopic

UPSTREAM = "kafka.dt.gateway.upstream."
NAME = "__kafka_dt_revocations"
RIGHTS = (
    "kafka-acls.sh --bootstrap-server ... --add --allow-principal User:gateway --operation Read --operation Write "
    f"--operation Create --operation DescribeConfigs --topic {NAME}\n"
)


@pytest.fixture
async def topic() -> AsyncIterator[ScriptedTopic]:
    async with ScriptedServer(users={"gateway": "secret", "admin": "other"}).running() as server:
        yield ScriptedTopic(server, NAME, exists=False)


def login(user: str, password: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN_LOGIN_MODULE} required username="{user}" password="{password}";',
    }


async def init(topic: ScriptedTopic, *more: str) -> Result:
    settings = {"bootstrap.servers": topic.server.address, **login("gateway", "secret")}
    overrides = [part for key, value in settings.items() for part in ("--override", f"{UPSTREAM}{key}={value}")]
    return await asyncio.to_thread(CliRunner().invoke, main, ["upstream", "init", *overrides, *more])


async def test_the_topic_is_made_once_and_its_rights_are_told(topic: ScriptedTopic) -> None:
    needed = f"Nodes need these rights on it:\n{RIGHTS}"
    done = await init(topic)
    assert (done.exit_code, done.stdout) == (0, f"Created topic {NAME}\n{needed}")
    done = await init(topic)
    assert (done.exit_code, done.stdout) == (0, f"Topic {NAME} is there already\n{needed}")
    assert topic.server.logins == ["gateway", "gateway"]


async def test_another_user_may_make_it_for_the_gateway(topic: ScriptedTopic, tmp_path: Path) -> None:
    properties = tmp_path / "admin.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in login("admin", "other").items()))
    done = await init(topic, "--command-config", str(properties))
    assert done.exit_code == 0
    assert RIGHTS in done.stdout
    assert topic.server.logins == ["admin"]


async def test_who_may_not_make_it_learns_the_way_out(topic: ScriptedTopic) -> None:
    topic.errors[AskedApi.CREATE_TOPICS] = [ErrorCode.topic_authorization_failed]
    done = await init(topic)
    assert done.exit_code == 1
    assert f"create topic {NAME} refused" in done.stderr
    assert "--command-config" in done.stderr
    assert RIGHTS in done.stderr


async def test_without_a_topic_in_the_settings_there_is_nothing_to_make(topic: ScriptedTopic) -> None:
    done = await init(topic, "--override", "kafka.dt.upstream.news.topic=")
    assert done.exit_code == 1
    assert "kafka.dt.upstream.news.topic: is empty" in done.stderr
