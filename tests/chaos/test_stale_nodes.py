"""A node that is cut off, in any way, stops accepting revoked tokens in time: within its max.staleness.

The nodes reach one member of an ensemble each; tokens are revoked by a client that reaches the others. The bound is
held against the moment at which the revocation was acknowledged, and the moment at which an accepted login began.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from kafka_dt.client import DelegationToken, StorageNotReached, TokenClientError
from kafka_dt.tokens import StoreUnavailable
from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.connection.operations import Create, Delete
from kafka_dt.zookeeper.errors import ZooKeeperConnectionLost, ZooKeeperError
from kafka_dt.zookeeper.proofs.history import HistoryGuard
from kafka_dt.zookeeper.proofs.witness import WitnessMemory
from kafka_dt.zookeeper.znodes.kafka import TokenChangeZnode, TokenZnode
from tests.chaos.token_load import logs_in
from tests.integration.zookeeper_nodes import client_of, node_of, now_ms, settings
from tests.support.nodes.node import SHA_256, Node, children, connected_ports, local_port, node_properties
from tests.support.processes.process import hanging
from tests.support.processes.waiting import eventually, on_this_machine
from tests.support.protocol.raw import API_VERSIONS, EXPIRE, ConnectionClosed, LoginRefused, RawConnection, ms
from tests.support.zookeeper.ensemble import Ensemble, Member

SYNC_LIMIT = 16
"""In ticks: for eight seconds a member that is cut off does not know it, and answers its clients."""
SESSION_TIMEOUT_MS = 10_000
SHORT_SESSION_MS = 3_000
"""A request that is not answered for two thirds of it ends the connection."""
MAX_STALENESS_MS = 2_000
WITHIN_S = 30.0
TOKENS = 5


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    with Ensemble(tmp_path_factory.mktemp("ensemble"), sync_limit=SYNC_LIMIT) as ensemble:
        yield ensemble


@pytest.fixture
async def healed(ensemble: Ensemble) -> AsyncIterator[Ensemble]:
    """The ensemble, whole again after the test."""
    yield ensemble
    await asyncio.to_thread(ensemble.heal)
    await asyncio.to_thread(ensemble.followers)


@contextlib.contextmanager
def node_on(
    member: Member, folder: Path, *, workers: int, max_staleness_ms: int = MAX_STALENESS_MS, **overrides: object
) -> Iterator[Node]:
    properties = node_properties(
        f"{member.connect}/{folder.name}",
        zookeeper_session_timeout_ms=SESSION_TIMEOUT_MS,
        kafka_dt_workers=workers,
        kafka_dt_zookeeper_max_staleness_ms=max_staleness_ms,
        **overrides,
    )
    with Node(folder / "node", properties) as node:
        yield node
    node.check_log()


@contextlib.asynccontextmanager
async def operator(ensemble: Ensemble, folder: Path, without: Member | None = None) -> AsyncIterator[ZooKeeperClient]:
    """A client of the members but one, as another node would be."""
    connect = ",".join(member.direct for member in ensemble.members if member is not without)
    async with client_of(settings(f"{connect}/{folder.name}", SESSION_TIMEOUT_MS)) as client:
        yield client


async def revoke(client: ZooKeeperClient, token: DelegationToken) -> float:
    """Delete a token; the moment at which that was acknowledged."""
    announcement = Create(TokenChangeZnode.PREFIX, TokenChangeZnode.encode(token.token_id), sequence=True)
    while True:
        try:
            await client.multi([Delete(TokenZnode.path(token.token_id)), announcement])
        except ZooKeeperError:  # the members that are left have no leader yet
            await asyncio.sleep(0.05)
        else:
            return time.monotonic()


async def created(node: Node, count: int = 1) -> list[DelegationToken]:
    async with node.client() as client:
        return [await client.create() for _ in range(count)]


async def created_when_back(node: Node) -> DelegationToken:
    """Create a token on a node that has just been cut off; a change may still fail until it is connected again."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            with contextlib.suppress(StorageNotReached):
                return (await created(node))[0]
            await asyncio.sleep(0.1)


async def last_accepted(node: Node, token: DelegationToken, until: Callable[[], bool]) -> float:
    """When the last login by a token began that was accepted; tries until it is refused, and `until` holds."""
    accepted, refused = 0.0, False
    async with asyncio.timeout(WITHIN_S):
        while not (refused and until()):
            begun = time.monotonic()
            refused = not await logs_in(node, token)
            if not refused:
                accepted = begun
            await asyncio.sleep(0.02)
    return accepted


async def test_a_node_on_an_isolated_follower_refuses_a_revoked_token_within_its_max_staleness(
    healed: Ensemble, tmp_path: Path
) -> None:
    follower = (await asyncio.to_thread(healed.followers))[0]
    with node_on(follower, tmp_path, workers=1) as node:
        revoked, kept = await created(node, 2)
        async with operator(healed, tmp_path, without=follower) as client:
            healed.partition(follower)
            revoked_s = await revoke(client, revoked)
            accepted_s = await last_accepted(node, revoked, lambda: True)
            assert accepted_s - revoked_s <= MAX_STALENESS_MS / 1000
            assert not await logs_in(node, kept)
            await asyncio.to_thread(healed.heal)
            await asyncio.to_thread(eventually, lambda: asyncio.run(logs_in(node, kept)), WITHIN_S)
            assert not await logs_in(node, revoked)


@pytest.mark.soak
@pytest.mark.parametrize("max_staleness_ms", [1_000, 4_000, 12_000])
@pytest.mark.parametrize("leader", [False, True], ids=["follower", "leader"])
async def test_the_bound_holds_as_long_as_a_member_is_isolated(
    healed: Ensemble, tmp_path: Path, leader: bool, max_staleness_ms: int
) -> None:
    """Also when it gives up, closes its connections, and the node tries again and again."""
    member = await asyncio.to_thread(healed.leader) if leader else (await asyncio.to_thread(healed.followers))[0]
    with node_on(member, tmp_path, workers=2, max_staleness_ms=max_staleness_ms) as node:
        tokens = await created(node, TOKENS)
        async with operator(healed, tmp_path, without=member) as client:
            healed.partition(member)
            ends = time.monotonic() + 18
            async with asyncio.TaskGroup() as group:
                tries = []
                for token in tokens:
                    revoked_s = await revoke(client, token)
                    trying = last_accepted(node, token, lambda: time.monotonic() > ends)
                    tries.append((revoked_s, group.create_task(trying)))
            for revoked_s, trying_task in tries:
                assert trying_task.result() - revoked_s <= max_staleness_ms / 1000
            await asyncio.to_thread(healed.heal)
        for token in tokens:
            assert not await logs_in(node, token)
        later = await created_when_back(node)
        await asyncio.to_thread(eventually, lambda: asyncio.run(logs_in(node, later)), WITHIN_S)


async def test_a_node_that_was_frozen_accepts_no_token_before_it_has_heard_what_was_revoked_meanwhile(
    healed: Ensemble, tmp_path: Path
) -> None:
    """Its connection to ZooKeeper is open, and full of answers from before; no new one arrives."""
    member = healed.members[0]
    with node_on(member, tmp_path, workers=2) as node:
        revoked, kept = (await created(node, TOKENS)), (await created(node))[0]
        for token in (*revoked, kept):
            with node.on_every_worker(lambda token=token: node.connect_by_token(token)):  # type: ignore[misc]
                pass
        with node.connect_by_token(revoked[0]) as session:
            async with operator(healed, tmp_path) as client:
                with frozen(node):
                    for token in revoked:
                        await revoke(client, token)
                    await asyncio.sleep(MAX_STALENESS_MS / 1000)  # the gap itself
                    healed.cut_clients(member)
                accepted = await asyncio.gather(*(logs_in(node, token) for token in revoked))
                assert not any(accepted)
                await asyncio.to_thread(healed.heal)
                await asyncio.to_thread(eventually, lambda: asyncio.run(logs_in(node, kept)), WITHIN_S)
                assert session.closed(WITHIN_S)
                assert not any([await logs_in(node, token) for token in revoked])


async def test_a_node_on_an_isolated_follower_ends_the_sessions_of_tokens_if_that_is_wanted(
    healed: Ensemble, tmp_path: Path
) -> None:
    follower = (await asyncio.to_thread(healed.followers))[0]
    with node_on(follower, tmp_path, workers=2, kafka_dt_token_sessions_end_when_stale=True) as node:
        (token,) = await created(node)
        with (
            node.on_every_worker(lambda: node.connect_by_token(token)) as sessions,
            node.on_every_worker(lambda: node.connect(user="alice")) as users,
        ):
            for _ in range(3):
                await asyncio.sleep(MAX_STALENESS_MS / 1000)  # the node proves its knowledge meanwhile
                assert all(map(_answers, sessions.values()))
            healed.partition(follower)
            cut_s = time.monotonic()
            within_s = MAX_STALENESS_MS / 1000 + 1
            ended = await asyncio.gather(
                *(asyncio.to_thread(each.closed, on_this_machine(within_s)) for each in sessions.values())
            )
            assert all(ended), f"{time.monotonic() - cut_s:.1f} s after the cut"
            assert not await logs_in(node, token)
            assert all(map(_answers, users.values()))
            await asyncio.to_thread(healed.heal)
            await asyncio.to_thread(eventually, lambda: asyncio.run(logs_in(node, token)), WITHIN_S)
        assert node.log().count("Closed 1 connection that logged in by token") == 2, "one line of each worker"


async def test_a_worker_that_was_frozen_ends_the_sessions_of_tokens_if_that_is_wanted(
    healed: Ensemble, tmp_path: Path
) -> None:
    member = healed.members[0]
    with node_on(member, tmp_path, workers=2, kafka_dt_token_sessions_end_when_stale=True) as node:
        (token,) = await created(node)
        with (
            node.on_every_worker(lambda: node.connect_by_token(token)) as sessions,
            node.on_every_worker(lambda: node.connect(user="alice")) as users,
        ):
            frozen_worker, other = sessions
            with hanging(frozen_worker):
                await asyncio.sleep(MAX_STALENESS_MS / 1000)  # the gap itself
                healed.cut_clients(member)
            assert await asyncio.to_thread(sessions[frozen_worker].closed, on_this_machine(1))
            assert await asyncio.to_thread(sessions[other].closed, on_this_machine(MAX_STALENESS_MS / 1000 + 1))
            assert all(map(_answers, users.values()))


@pytest.mark.soak
async def test_a_node_that_was_frozen_goes_on_with_the_first_login(healed: Ensemble, tmp_path: Path) -> None:
    with node_on(healed.members[0], tmp_path, workers=1) as node:
        (kept,) = await created(node)
        with frozen(node):
            await asyncio.sleep(MAX_STALENESS_MS / 1000)  # the gap itself
        assert await logs_in(node, kept)


async def test_sessions_on_the_other_worker_end_though_zookeeper_has_hung_since_the_revocation(
    healed: Ensemble, tmp_path: Path
) -> None:
    member = healed.members[0]
    with node_on(member, tmp_path, workers=2, max_staleness_ms=60_000) as node:
        (token,) = await created(node)
        with (
            node.on_every_worker(lambda: node.connect_by_token(token)) as sessions,
            node.connect(user="alice") as owner,
        ):
            worker = node.worker_of(local_port(owner))
            (other,) = set(sessions) - {worker}
            with contextlib.ExitStack() as silence:
                with hanging(other):
                    answer = owner.ask(EXPIRE, 2, hmac=token.hmac, expiry_time_period=ms(-1))
                    assert answer.error_code.value == 0
                    silence.enter_context(hanging(member.pid))
                ended = await asyncio.to_thread(sessions[other].closed, SESSION_TIMEOUT_MS / 2000)
                assert ended
                assert not await logs_in(node, token)


async def test_a_worker_uses_no_connection_to_an_isolated_leader(healed: Ensemble) -> None:
    """It answers all that needs no quorum, and lacks what the worker may have heard from another member."""
    leader = await asyncio.to_thread(healed.leader)
    guard = HistoryGuard(WitnessMemory(), "worker", must_restart=_nothing, forget_proofs=_nothing, now_ms=now_ms)
    async with client_of(settings(leader.connect, SHORT_SESSION_MS)) as client:
        await guard.admit(client)
        healed.partition(leader)
        assert await client.exists("/") is not None
        with pytest.raises(ZooKeeperConnectionLost):
            await guard.admit(client)


def _nothing() -> None:
    """Do nothing."""


async def test_an_isolated_leader_cannot_prove_that_a_token_was_not_revoked(healed: Ensemble, tmp_path: Path) -> None:
    leader = await asyncio.to_thread(healed.leader)
    async with node_of(settings(f"{leader.connect}/{tmp_path.name}", SHORT_SESSION_MS)) as node:
        await node.store.prove()
        healed.partition(leader)
        with pytest.raises(StoreUnavailable):
            await node.store.prove()


async def test_a_worker_on_an_isolated_leader_refuses_a_token_that_another_worker_has_revoked(
    healed: Ensemble, tmp_path: Path
) -> None:
    """The old leader answers its worker that nothing is new, and what is known there is not too old yet."""
    leader, follower = await asyncio.to_thread(healed.leader), (await asyncio.to_thread(healed.followers))[0]
    connect = f"{leader.connect},{follower.connect}/{tmp_path.name}"
    properties = node_properties(
        connect,
        zookeeper_session_timeout_ms=SESSION_TIMEOUT_MS,
        # Nothing is written or proved meanwhile but by the login: a leader with an unfinished write answers no sync.
        kafka_dt_zookeeper_max_staleness_ms=600_000,
        delegation_token_expiry_check_interval_ms=600_000,
    )
    healed.refuse_new_clients(follower)
    with Node(tmp_path / "node", properties) as node:
        healed.open_to_clients(follower)
        healed.refuse_new_clients(leader)
        on_leader, other = node.workers()
        os.kill(other, signal.SIGKILL)
        await asyncio.to_thread(eventually, lambda: bool(_on(node, follower)), WITHIN_S)
        (on_follower,) = _on(node, follower)
        revoked, kept = await created(node, 2)
        with (
            node.on_every_worker(lambda: node.connect(user="alice")) as owners,
            _connections(node, on_leader, 4) as logins,
        ):
            assert _accepted(logins[0], revoked), "it is known there"
            await asyncio.to_thread(healed.depose, leader)
            await asyncio.to_thread(eventually, lambda: _expired(owners[on_follower], revoked), WITHIN_S)
            outcomes = await asyncio.gather(*(asyncio.to_thread(_accepted, each, revoked) for each in logins[1:3]))
            assert outcomes == [False, False]
            assert _accepted(logins[3], kept)
            assert leader.mode() == "leader", "the member has noticed that it is isolated; nothing was tested"
            assert _on(node, leader) == [on_leader]
    node.check_log()


@contextlib.contextmanager
def _connections(node: Node, worker: int, count: int) -> Iterator[list[RawConnection]]:
    """Give connections to one worker; the kernel chooses, so more are made."""
    with contextlib.ExitStack() as stack:
        found: list[RawConnection] = []
        while len(found) < count:
            connection = stack.enter_context(node.connect())
            if node.worker_of(local_port(connection)) == worker:
                found.append(connection)
        yield found


def _on(node: Node, member: Member) -> list[int]:
    """The workers that are connected to a member."""
    return [worker for worker in node.workers() if member.gate.port in connected_ports(worker)]


def _expired(connection: RawConnection, token: DelegationToken) -> bool:
    answer = connection.ask(EXPIRE, 2, hmac=token.hmac, expiry_time_period=ms(-1))
    return bool(answer.error_code.value == 0)


def _answers(connection: RawConnection) -> bool:
    """Whether a connection that has logged in is served."""
    return bool(connection.ask(API_VERSIONS, 0).error_code.value == 0)


def _accepted(connection: RawConnection, token: DelegationToken) -> bool:
    with contextlib.suppress(LoginRefused, ConnectionClosed):
        connection.login_scram(token.token_id, token.hmac_base64, SHA_256, token=True)
        return True
    return False


@contextlib.contextmanager
def frozen(node: Node) -> Iterator[None]:
    """Let all processes of a node stand still, as those of a machine that is held."""
    assert node.process.pid is not None
    with contextlib.ExitStack() as stack:
        for pid in (node.process.pid, *children(node.process.pid)):
            stack.enter_context(hanging(pid))
        yield


@pytest.mark.soak
async def test_a_busy_node_leaves_a_member_that_hangs(healed: Ensemble, tmp_path: Path) -> None:
    """The member takes requests and answers none; changes keep coming, so that kazoo has no reason for a ping."""
    properties = node_properties(
        f"{healed.connect}/{tmp_path.name}",
        zookeeper_session_timeout_ms=SESSION_TIMEOUT_MS // 2,
        kafka_dt_workers=1,
        kafka_dt_zookeeper_max_staleness_ms=MAX_STALENESS_MS,
    )
    with Node(tmp_path / "node", properties) as node:
        revoked, kept = await created(node, 2)
        (member,) = (member for member in healed.members if member.gate.in_use)
        async with operator(healed, tmp_path, without=member) as client, asyncio.TaskGroup() as group:
            with hanging(member.pid):
                revoked_s = await revoke(client, revoked)
                accepted = group.create_task(last_accepted(node, revoked, lambda: True))
                done = asyncio.Event()
                for _ in range(200):
                    group.create_task(_create(node, done))
                    if done.is_set():
                        break
                    await asyncio.sleep(0.1)
                assert done.is_set()
                assert await accepted - revoked_s <= MAX_STALENESS_MS / 1000
                assert await logs_in(node, kept)


async def _create(node: Node, done: asyncio.Event) -> None:
    with contextlib.suppress(TokenClientError):
        async with node.client() as client:
            await client.create()
            done.set()
