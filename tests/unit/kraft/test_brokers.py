"""What `kafka-dt upstream check` finds at the single brokers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.client import ClientConfig
from kafka_dt.jaas import PLAIN_LOGIN_MODULE
from kafka_dt.kraft import brokers
from kafka_dt.kraft.brokers import examine_brokers
from kafka_dt.kraft.finding import Finding
from kafka_dt.kraft.session import session
from kafka_dt.tokens import DelegationToken, Principal, Token
from kafka_dt_protocol import ApiKey
from kafka_dt_protocol.sasl import ScramMechanism
from tests.support.processes.ports import free_ports
from tests.support.tokens.scripted_cluster import GATEWAY, ScriptedCluster
from tests.support.tokens.store_contract import new_token


@pytest.fixture
async def bootstrap() -> AsyncIterator[ScriptedCluster]:
    async with ScriptedCluster.fit("gateway", "secret").running() as running:
        running.brokers[1] = running.server.address
        yield running


@pytest.fixture
async def second(bootstrap: ScriptedCluster) -> AsyncIterator[ScriptedCluster]:
    """Another broker, which the first one names."""
    async with ScriptedCluster.fit("gateway", "secret").running() as running:
        bootstrap.brokers[2] = running.server.address
        yield running


async def examined(cluster: ScriptedCluster) -> Sequence[Finding]:
    config = ClientConfig.from_properties(
        {
            "bootstrap.servers": cluster.server.address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{PLAIN_LOGIN_MODULE} required username="gateway" password="secret";',
        }
    )
    asking = session(config)
    try:
        return await examine_brokers(await asking.ready(), config, ScramMechanism.SHA_512, GATEWAY)
    finally:
        await asking.close()


async def test_brokers_without_a_problem_are_one_point(bootstrap: ScriptedCluster, second: ScriptedCluster) -> None:
    assert await examined(bootstrap) == [Finding("each broker")]
    assert ApiKey.DESCRIBE_DELEGATION_TOKEN in second.asked


@pytest.mark.parametrize(
    ("spoil", "problem", "remedy"),
    [
        (
            lambda second: setattr(second, "describe_error", ErrorCode.delegation_token_auth_disabled),
            "delegation tokens are switched off",
            "set the same delegation.token.secret.key on all brokers and controllers",
        ),
        (
            lambda second: setattr(second.server, "mechanisms", ("PLAIN",)),
            "does not take SCRAM-SHA-512",
            "add it to sasl.enabled.mechanisms there",
        ),
        (
            lambda second: second.server.users.update(gateway="another"),
            "refuses the gateway's login",
            "compare its listener with those of the others",
        ),
        (
            lambda second: setattr(second.server, "greeting", b"no kafka"),
            "cannot be asked",
            "correct its advertised.listeners",
        ),
    ],
)
async def test_a_problem_with_one_broker_is_a_warning_that_names_it(
    bootstrap: ScriptedCluster,
    second: ScriptedCluster,
    spoil: Callable[[ScriptedCluster], object],
    problem: str,
    remedy: str,
) -> None:
    spoil(second)
    (finding,) = await examined(bootstrap)
    assert not finding.needed
    assert finding.problem.startswith("broker 2")
    assert second.server.address in finding.problem
    assert problem in finding.problem
    assert remedy in finding.remedy


def describe(token: Token, hmac: bytes, *clusters: ScriptedCluster) -> None:
    for each in clusters:
        each.described[token.token_id] = DelegationToken(token, hmac)


async def test_brokers_with_the_same_key_tell_the_same_hmac_of_a_token(
    bootstrap: ScriptedCluster, second: ScriptedCluster
) -> None:
    describe(new_token(), b"one", bootstrap, second)
    assert await examined(bootstrap) == [Finding("each broker"), Finding("secret keys of the brokers")]


async def test_brokers_that_tell_different_hmacs_of_a_token_have_different_keys(
    bootstrap: ScriptedCluster, second: ScriptedCluster
) -> None:
    token = new_token()
    describe(token, b"secret-of-one-key", bootstrap)
    describe(token, b"secret-of-another", second)
    _, finding = await examined(bootstrap)
    assert not finding.needed
    assert f"different HMACs of delegation token {token.token_id} (broker ids: 1; 2)" in finding.problem
    assert finding.remedy == "set the same delegation.token.secret.key on all brokers and controllers"
    assert "secret-of" not in repr(finding)


async def test_keys_are_not_compared_without_a_token_that_two_brokers_have(
    bootstrap: ScriptedCluster, second: ScriptedCluster
) -> None:
    describe(new_token(), b"one", bootstrap)
    describe(new_token(), b"two", second)
    assert await examined(bootstrap) == [Finding("each broker")]


async def test_each_broker_is_asked_about_the_owner_with_the_fewest_tokens_alone(
    bootstrap: ScriptedCluster, second: ScriptedCluster
) -> None:
    asked = second.server.record(ApiKey.DESCRIBE_DELEGATION_TOKEN)
    carol = Principal.user("carol")
    for token in (new_token(), new_token(), new_token(owner=carol)):
        describe(token, b"one", bootstrap, second)
    assert len(await examined(bootstrap)) == 2
    assert [[each.principal_name for each in owners] for owners in (request.owners for request in asked)] == [
        [],
        ["carol"],
    ]


async def test_brokers_before_kafka_3_3_are_not_compared(bootstrap: ScriptedCluster, second: ScriptedCluster) -> None:
    second.server.versions[ApiKey.DESCRIBE_DELEGATION_TOKEN] = (0, 2)
    describe(new_token(), b"one", bootstrap, second)
    assert await examined(bootstrap) == [Finding("each broker")]


async def test_a_broker_that_is_out_of_reach_is_told(bootstrap: ScriptedCluster) -> None:
    bootstrap.brokers[7] = f"127.0.0.1:{free_ports(1)}"
    (finding,) = await examined(bootstrap)
    assert finding.problem.startswith(f"broker 7 at {bootstrap.brokers[7]} cannot be asked: ")


async def test_a_broker_that_hangs_is_not_waited_for(
    bootstrap: ScriptedCluster, second: ScriptedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = asyncio.Event()

    async def hang(*_: object) -> None:
        await over.wait()

    del bootstrap.brokers[1]  # it would have to answer within that time
    second.server.scripts[ApiKey.DESCRIBE_DELEGATION_TOKEN] = hang
    monkeypatch.setattr(brokers, "PATIENCE_S", 0.1)
    (finding,) = await examined(bootstrap)
    over.set()
    assert "has not answered within 0.1 s" in finding.problem
