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
from kafka_dt_protocol.api.registry import ApiKey
from tests.support.processes.ports import free_ports
from tests.support.tokens.scripted_cluster import ScriptedCluster
from tests.support.tokens.scripted_topic import ScriptedTopic

UPSTREAM = "kafka.dt.gateway.upstream."
IN_THE_CLUSTER = ("--override", "kafka.dt.token.store=upstream")
AUTHORIZER = "authorizer.class.name=kafka.security.authorizer.AclAuthorizer"


def with_identity(identity: str) -> tuple[str, ...]:
    """The settings of a gateway that keeps its tokens in ZooKeeper."""
    return ("--override", f"{UPSTREAM}identity={identity}", "--override", AUTHORIZER)


@pytest.fixture
async def cluster() -> AsyncIterator[ScriptedCluster]:
    async with ScriptedCluster.fit("gateway", "secret").running() as running:
        ScriptedTopic(running.server, "__kafka_dt_revocations")
        yield running


async def check(cluster: ScriptedCluster, *more: str) -> Result:
    """Check a cluster that is to keep the tokens."""
    return await run(cluster, *IN_THE_CLUSTER, *more)


async def run(cluster: ScriptedCluster, *more: str) -> Result:
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
    assert done.stderr == "Error: the cluster is not fit for a gateway with these settings\n"


async def test_a_login_that_the_cluster_refuses_names_the_setting_of_the_gateway(cluster: ScriptedCluster) -> None:
    login = f'{PLAIN_LOGIN_MODULE} required username="gateway" password="wrong";'
    done = await check(cluster, "--override", f"{UPSTREAM}sasl.jaas.config={login}")
    assert done.exit_code == 1
    assert f"(check user name and password in {UPSTREAM}sasl.jaas.config; " in done.stderr


async def test_a_warning_does_not_fail(cluster: ScriptedCluster) -> None:
    cluster.create_error = ErrorCode.delegation_token_authorization_failed
    done = await check(cluster)
    assert done.exit_code == 0
    assert "warning  tokens for all users: User:gateway may not create tokens for every user" in done.stdout
    assert "no super user: kafka-acls.sh" in done.stdout
    assert "'*'" not in done.stdout, "that includes super users"


async def test_a_problem_of_another_broker_is_a_warning_as_well(cluster: ScriptedCluster) -> None:
    cluster.brokers[4] = f"127.0.0.1:{free_ports(1)}"
    done = await check(cluster)
    assert done.exit_code == 0
    assert f"warning  each broker: broker 4 at {cluster.brokers[4]} cannot be asked" in done.stdout


@pytest.mark.parametrize("identity", ["owner-token", "relay"])
async def test_a_gateway_with_tokens_in_zookeeper_needs_only_what_its_clients_log_in_with(
    cluster: ScriptedCluster, identity: str
) -> None:
    """The rights and the metadata log that a store of tokens needs are no matter."""
    cluster.metadata_version = None
    cluster.quorum_error = ErrorCode.cluster_authorization_failed
    cluster.acl_error = ErrorCode.cluster_authorization_failed
    done = await run(cluster, *with_identity(identity), "--user-principal", "User:alice")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "ok       login of the gateway",
        "ok       delegation tokens",
        "ok       logins by token",
        "ok       each broker",
        "ok       tokens for User:alice",
    ]


async def test_without_names_it_is_said_that_the_right_to_create_tokens_was_not_tried(
    cluster: ScriptedCluster,
) -> None:
    done = await run(cluster, *with_identity("owner-token"))
    assert done.exit_code == 0
    problem, remedy = done.stdout.splitlines()[-2:]
    assert problem == (
        "warning  tokens for clients: whether User:gateway may create tokens for its clients was not tried"
    )
    assert remedy.strip() == "name users who come through the gateway: --user-principal User:NAME"
    assert ApiKey.CREATE_DELEGATION_TOKEN not in cluster.asked


@pytest.mark.parametrize("settings", [with_identity("owner-token"), IN_THE_CLUSTER])
async def test_a_named_user_without_the_right_fails_with_the_acl_for_this_user_alone(
    cluster: ScriptedCluster, settings: tuple[str, ...]
) -> None:
    cluster.create_error = ErrorCode.delegation_token_authorization_failed
    done = await run(cluster, *settings, "--user-principal", "User:alice")
    assert done.exit_code == 1
    assert "unfit    tokens for User:alice: User:gateway may not create tokens for User:alice" in done.stdout
    acl = "--allow-principal User:gateway --operation CreateTokens --user-principal User:alice"
    assert f"unless User:alice is a super user there: kafka-acls.sh --bootstrap-server ... --add {acl}" in done.stdout
    assert "DescribeTokens" not in done.stdout


async def test_tokens_that_are_switched_off_keep_clients_out(cluster: ScriptedCluster) -> None:
    cluster.describe_error = ErrorCode.delegation_token_auth_disabled
    done = await run(cluster, *with_identity("owner-token"))
    assert done.exit_code == 1
    assert "unfit    delegation tokens: delegation tokens are switched off" in done.stdout


async def test_a_broker_that_creates_tokens_for_the_caller_alone_is_unfit(cluster: ScriptedCluster) -> None:
    cluster.server.versions[ApiKey.CREATE_DELEGATION_TOKEN] = (0, 2)
    done = await run(cluster, *with_identity("owner-token"), "--user-principal", "User:alice")
    assert done.exit_code == 1
    assert "tokens for User:alice: " in done.stdout
    assert "Kafka 3.3" in done.stdout
    assert ApiKey.CREATE_DELEGATION_TOKEN not in cluster.asked, "it would be a token of the gateway's own"


async def test_a_gateway_that_needs_no_tokens_of_the_cluster_only_logs_in(cluster: ScriptedCluster) -> None:
    cluster.describe_error = ErrorCode.delegation_token_auth_disabled
    done = await run(cluster, *with_identity("service"))
    assert (done.exit_code, done.stdout) == (0, "ok       login of the gateway\n")
    done = await run(cluster, *with_identity("service"), "--user-principal", "User:alice")
    assert done.exit_code == 2
    assert "creates no tokens in the cluster" in done.stderr


async def test_a_user_without_a_type_is_refused(cluster: ScriptedCluster) -> None:
    done = await run(cluster, *with_identity("owner-token"), "--user-principal", "alice")
    assert done.exit_code == 2
    assert "write User:alice" in done.stderr


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
