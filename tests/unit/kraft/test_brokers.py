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
from kafka_dt.kraft.node import session
from kafka_dt_protocol import ApiKey
from kafka_dt_protocol.sasl import ScramMechanism
from tests.support.processes.ports import free_ports
from tests.support.tokens.scripted_cluster import ScriptedCluster


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
        return await examine_brokers(await asking.ready(), config, ScramMechanism.SHA_512)
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
