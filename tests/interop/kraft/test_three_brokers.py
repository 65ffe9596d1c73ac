"""Two nodes in front of three brokers, which are the controllers as well; `make soak` runs these tests.

Everything fails for ten minutes: brokers with their controllers, nodes, workers, and the links between controllers. A
rolling restart fails no login, and a thousand tokens go each way.

    KAFKA_DT_TEST_SECONDS     for how long things fail, instead of 600
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Final

import pytest

from kafka_dt.client import (
    DelegationToken,
    LoginFailed,
    NoServerReached,
    StorageNotReached,
    TokenClient,
    TokenClientError,
)
from kafka_dt.identity.acls.binding import PatternType, ResourceType
from tests.chaos.recorded_clients import running
from tests.interop.kraft.conftest import TOPIC, at_brokers, started
from tests.interop.kraft.fault_load import Nodes, run_with_faults
from tests.interop.kraft.logins import Logins, logs_in
from tests.support.brokers.controller_links import ControllerLinks
from tests.support.brokers.kraft import KraftCluster, Node
from tests.support.brokers.kraft_operator import Operator
from tests.support.java.jvm import Java
from tests.support.java.maven import Classpath
from tests.support.nodes.gateway import Gateway
from tests.support.processes.ports import free_ports

SECONDS: Final = float(os.environ.get("KAFKA_DT_TEST_SECONDS", "600"))
STALENESS_MS: Final = 10_000
FLAGS: Final = ("-XX:+UseSerialGC", "-Xshare:auto")
"""With all compilers: the brokers derive the credentials of new tokens five times as fast as with a quick start."""
TOKENS: Final = 1_000
AT_ONCE: Final = 8
KNOWN_WITHIN_S: Final = 120.0
"""Within this time the brokers take tokens that were created by the hundred."""
CALM_S: Final = 5.0
"""Between two restarts."""

pytestmark = [pytest.mark.soak, pytest.mark.timeout(SECONDS + 600)]


@pytest.fixture(scope="module")
def links() -> ControllerLinks:
    return ControllerLinks()


@pytest.fixture(scope="module")
def three_brokers(
    java: Java, kraft_classpath: Classpath, links: ControllerLinks, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KraftCluster]:
    folder = tmp_path_factory.mktemp("three-brokers")
    with KraftCluster(
        folder, java=java, classpath=kraft_classpath, brokers=3, controllers=3, links=links, flags=FLAGS
    ) as running_cluster:
        operator = Operator(running_cluster)
        for resource in (ResourceType.TOPIC, ResourceType.GROUP):
            operator.allow("alice", resource, "alice-", PatternType.PREFIXED)
        operator.make_topic(TOPIC, 1, 2, 3, replicas=2)
        yield running_cluster


def settings_of_a_node() -> dict[str, object]:
    """It refuses tokens soon when it is cut off, and starts again on the same port."""
    listener = f"SASL_PLAINTEXT://127.0.0.1:{free_ports(1)}"
    return {"kafka.dt.upstream.max.staleness.ms": STALENESS_MS, "listeners": listener}


@pytest.fixture(scope="module")
def two_nodes(three_brokers: KraftCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with ExitStack() as stack:
        first, second = (
            started(stack, three_brokers, tmp_path_factory, name, **settings_of_a_node())
            for name in ("first", "second")
        )
        yield first, second
    for node in (first, second):
        node.check_log()


async def test_no_answer_contradicts_another_while_three_brokers_their_controllers_and_nodes_fail(
    three_brokers: KraftCluster, links: ControllerLinks, two_nodes: Nodes
) -> None:
    await run_with_faults(
        three_brokers, two_nodes, links, seconds=SECONDS, longest_fault_s=20, staleness_ms=STALENESS_MS
    )


async def test_a_rolling_restart_of_brokers_and_of_nodes_fails_no_login(
    three_brokers: KraftCluster, two_nodes: Nodes
) -> None:
    logins = Logins(two_nodes)
    async with running(logins.create(), *(logins.log_in() for _ in range(4))):
        restarted: list[Node | Gateway] = [*three_brokers.brokers.values(), *two_nodes]
        for each in restarted:
            before = logins.count
            await asyncio.to_thread(each.stop)
            await asyncio.to_thread(each.start)
            await asyncio.sleep(CALM_S)
            assert not logins.failures
            assert logins.count > before


async def test_a_thousand_tokens_go_each_way(three_brokers: KraftCluster, two_nodes: Nodes) -> None:
    """Made at nodes, they log in at brokers; made at brokers, they log in at nodes."""
    brokers = [broker.sasl for broker in three_brokers.brokers.values()]
    made = await create(TOKENS, [lambda node=node: node.client("alice") for node in two_nodes])  # type: ignore[misc]
    await each_once(made, lambda token: known_and_logs_in(random.choice(brokers), token, LoginFailed))  # noqa: S311

    made = await create(TOKENS, [lambda: at_brokers(three_brokers, "alice")])
    await each_once(made, lambda token: known_and_logs_in(random.choice(two_nodes).sasl, token, NoServerReached))  # noqa: S311


async def create(count: int, makers: Sequence[Callable[[], TokenClient]]) -> list[DelegationToken]:
    async def one(client: TokenClient) -> DelegationToken:
        while True:
            with suppress(StorageNotReached):  # where brokers are far behind with the tokens of before
                return await client.create()
            await asyncio.sleep(0.5)

    async def some(number: int) -> list[DelegationToken]:
        async with makers[number % len(makers)]() as client:
            return [await one(client) for _ in range(number, count, AT_ONCE)]

    made = [token for part in await asyncio.gather(*map(some, range(AT_ONCE))) for token in part]
    assert len({token.token_id for token in made}) == count
    return made


async def each_once(tokens: Sequence[DelegationToken], work: Callable[[DelegationToken], Awaitable[None]]) -> None:
    async def some(number: int) -> None:
        for token in tokens[number::AT_ONCE]:
            await work(token)

    await asyncio.gather(*map(some, range(AT_ONCE)))


async def known_and_logs_in(address: str, token: DelegationToken, not_yet: type[TokenClientError]) -> None:
    """Log in where the token may not be known yet.

    Args:
        address: of a broker, which may hear of the token later than the controllers, or of a node, which refuses no
            token that it does not know, but gives no answer while all brokers are too far behind.
        token: what logs in.
        not_yet: the error meanwhile.
    """
    async with asyncio.timeout(KNOWN_WITHIN_S):
        while True:
            try:
                return await logs_in(address, token)
            except not_yet:
                await asyncio.sleep(0.5)
