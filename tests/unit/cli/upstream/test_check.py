"""`kafka-dt upstream check`: what it prints of each point, and with which status it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from click.testing import CliRunner, Result
from kio.schema.errors import ErrorCode

from kafka_dt.cli import main
from kafka_dt.jaas import PLAIN_LOGIN_MODULE
from tests.support.processes.ports import free_ports
from tests.support.tokens.scripted_cluster import ScriptedCluster
from tests.support.tokens.scripted_topic import ScriptedTopic

UPSTREAM = "kafka.dt.gateway.upstream."


@pytest.fixture
async def cluster() -> AsyncIterator[ScriptedCluster]:
    async with ScriptedCluster.fit("gateway", "secret").running() as running:
        ScriptedTopic(running.server, "__kafka_dt_revocations")
        yield running


async def check(cluster: ScriptedCluster, *more: str) -> Result:
    settings = {
        "bootstrap.servers": cluster.server.address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN_LOGIN_MODULE} required username="gateway" password="secret";',
    }
    overrides = [part for key, value in settings.items() for part in ("--override", f"{UPSTREAM}{key}={value}")]
    return await asyncio.to_thread(CliRunner().invoke, main, ["upstream", "check", *overrides, *more])


async def test_a_fit_cluster_is_ok_in_every_point(cluster: ScriptedCluster) -> None:
    done = await check(cluster)
    assert done.exit_code == 0
    assert {line.split()[0] for line in done.stdout.splitlines()} == {"ok"}


async def test_a_problem_is_told_with_its_remedy_and_fails(cluster: ScriptedCluster) -> None:
    cluster.describe_error = ErrorCode.delegation_token_auth_disabled
    done = await check(cluster)
    assert done.exit_code == 1
    switched_off = f"delegation tokens are switched off at {cluster.server.address}"
    assert f"unfit    delegation tokens: {switched_off}\n         set" in done.stdout
    assert done.stderr == "Error: a node cannot serve the tokens of this cluster\n"


async def test_a_warning_does_not_fail(cluster: ScriptedCluster) -> None:
    cluster.create_error = ErrorCode.delegation_token_authorization_failed
    done = await check(cluster)
    assert done.exit_code == 0
    assert "warning  tokens for all users: User:gateway may not create tokens for every user" in done.stdout


async def test_a_problem_of_another_broker_is_a_warning_as_well(cluster: ScriptedCluster) -> None:
    cluster.brokers[4] = f"127.0.0.1:{free_ports(1)}"
    done = await check(cluster)
    assert done.exit_code == 0
    assert f"warning  each broker: broker 4 at {cluster.brokers[4]} cannot be asked" in done.stdout


async def test_programs_get_all_points(cluster: ScriptedCluster) -> None:
    cluster.describe_error = ErrorCode.delegation_token_auth_disabled
    done = await check(cluster, "--output", "json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert found["fit"] is False
    (unfit,) = [each for each in found["points"] if not each["fit"]]
    assert unfit == {
        "point": "delegation tokens",
        "fit": False,
        "needed": True,
        "problem": f"delegation tokens are switched off at {cluster.server.address}",
        "remedy": "set the same delegation.token.secret.key on all brokers and controllers",
    }


def test_without_a_cluster_there_is_nothing_to_check() -> None:
    done = CliRunner().invoke(main, ["upstream", "check"])
    assert done.exit_code == 1
    assert "kafka.dt.gateway.upstream.bootstrap.servers: is needed" in done.stderr
