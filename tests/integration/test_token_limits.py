"""The limits of new tokens on a node of two workers: whichever worker is asked, they are those of the node."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest

from kafka_dt.client import DelegationToken, TokenClient, TokenLimitExceeded, TooManyCreates
from tests.support.nodes.audit import AuditFolder
from tests.support.nodes.node import Node, local_port, node_properties
from tests.support.processes.waiting import eventually
from tests.support.zookeeper.server import make_chroot

PER_OWNER, PER_MINUTE, RENEWERS, BYTES = 12, 100, 2, 2_000
CLIENTS = 8


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> AuditFolder:
    return AuditFolder(tmp_path_factory.mktemp("audit"))


@pytest.fixture(scope="module")
def node(zookeeper_address: str, audit: AuditFolder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    properties = node_properties(
        make_chroot(zookeeper_address, "limits"),
        kafka_dt_tokens_per_owner_max=PER_OWNER,
        kafka_dt_token_creates_per_minute_max=PER_MINUTE,
        kafka_dt_token_renewers_max=RENEWERS,
        kafka_dt_token_bytes_max=BYTES,
    )
    with Node(tmp_path_factory.mktemp("node"), {**properties, **audit.properties()}) as node:
        yield node
    node.check_log()


async def clients_of(node: Node, stack: AsyncExitStack, user: str) -> list[TokenClient]:
    """Connections to both workers."""
    made: list[TokenClient] = []
    workers: set[int] = set()
    while len(made) < CLIENTS or (len(workers) < 2 and len(made) < 60):
        made.append(await stack.enter_async_context(node.client(user)))
        workers.add(await asyncio.to_thread(node.worker_of, local_port(made[-1])))
    return made


def log_names(node: Node, setting: str, value: int) -> None:
    eventually(lambda: f"{setting}={value}" in node.log(), within_s=10)


async def test_an_owner_has_as_many_tokens_as_the_limit_whichever_worker_is_asked(node: Node) -> None:
    async with AsyncExitStack() as stack:
        clients = await clients_of(node, stack, "alice")
        made = [await clients[number % len(clients)].create() for number in range(PER_OWNER)]
        for client in clients:
            await client.describe()  # it has heard of the tokens that the other worker has made
            with pytest.raises(TokenLimitExceeded, match=r"kafka\.dt\.tokens\.per\.owner\.max"):
                await client.create()
        log_names(node, "kafka.dt.tokens.per.owner.max", PER_OWNER)
        await clients[0].expire(made[0].hmac)
        await clients[0].create()


async def test_a_principal_creates_as_many_tokens_in_a_minute_as_the_limit_whichever_worker_is_asked(
    node: Node,
) -> None:
    async with AsyncExitStack() as stack:
        clients = await clients_of(node, stack, "bob")
        answers: list[BaseException | DelegationToken] = []
        while not any(isinstance(answer, TooManyCreates) for answer in answers):
            answers += await asyncio.gather(*(_made_and_deleted(client) for client in clients), return_exceptions=True)
            assert len(answers) <= 3 * PER_MINUTE, "the minute may have changed once"
        made = sum(isinstance(answer, DelegationToken) for answer in answers)
        assert PER_MINUTE - CLIENTS <= made <= 2 * PER_MINUTE + CLIENTS
    log_names(node, "kafka.dt.token.creates.per.minute.max", PER_MINUTE)


async def _made_and_deleted(client: TokenClient) -> DelegationToken:
    token = await client.create()
    await client.expire(token.hmac)
    return token


async def test_a_token_has_no_more_renewers_and_bytes_than_the_limits(node: Node, audit: AuditFolder) -> None:
    async with node.client("admin") as client:
        await client.create(renewers=["User:a", "User:b"])
        with pytest.raises(TokenLimitExceeded):
            await client.create(renewers=["User:a", "User:b", "User:c"])
        with pytest.raises(TokenLimitExceeded):
            await client.create(renewers=["User:" + "*" * 900])
    log_names(node, "kafka.dt.token.renewers.max", RENEWERS)
    log_names(node, "kafka.dt.token.bytes.max", BYTES)
    for setting in ("kafka.dt.token.renewers.max", "kafka.dt.token.bytes.max"):
        audit.wait_for(1, type="token_created", outcome="refused", reason="POLICY_VIOLATION", limit=setting)
