"""Connections and sessions lost and found again: nothing acknowledged is lost, nothing comes back, no restart."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from kafka_dt.tokens import Keyring
from kafka_dt.tokens.errors import StoreUnavailable
from kafka_dt.zookeeper.connection.handler import Answer
from kafka_dt.zookeeper.connection.operations import Create, SetData, Stat
from kafka_dt.zookeeper.errors import ZooKeeperConnectionLost
from kafka_dt.zookeeper.sealing.token_codec import Decoded, TokenCodec
from kafka_dt.zookeeper.znodes.kafka import TokenChangeZnode, TokenZnode
from tests.integration.zookeeper_nodes import caught_up, client_of, eventually, node_of, settings
from tests.support.processes.process import hanging
from tests.support.processes.tcp_gate import TcpGate
from tests.support.processes.waiting import on_this_machine
from tests.support.tokens.store_contract import new_token
from tests.support.zookeeper.server import child_zookeeper
from tests.support.zookeeper.token_codecs import CURRENT, codec_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from kafka_dt.tokens import Token
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient
    from kafka_dt.zookeeper.embedded.server import EmbeddedZooKeeper
    from tests.integration.zookeeper_nodes import Node

KEYRING = Keyring(CURRENT)
THREADS = ThreadPoolExecutor(2, thread_name_prefix="session")
SHORT_SESSION_MS = 3000
"""Short, and longer than a machine stands still: a session that ends by itself is another test."""


@pytest.fixture
async def gate(zookeeper_connect: str) -> AsyncIterator[TcpGate]:
    host, _, port = zookeeper_connect.partition("/")[0].rpartition(":")
    async with TcpGate(host, int(port)) as gate:
        yield gate


def _through(gate: TcpGate, connect: str) -> str:
    return f"127.0.0.1:{gate.port}/{connect.partition('/')[2]}"


async def _session_ended(client: ZooKeeperClient, session_id: int | None) -> None:
    """Wait until the server has given a session up: its ephemeral mark, made below, is gone."""
    await eventually(lambda: session_id is not None)
    deadline = time.monotonic() + 60
    while await client.exists("/mark") is not None:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


async def _mark(client: ZooKeeperClient) -> None:
    kazoo = client._session.kazoo
    kazoo.create_async(client._full("/mark"), b"", ephemeral=True)
    assert await client.exists("/mark") is not None


async def test_while_cut_off_requests_fail_at_once_and_staleness_grows(zookeeper_connect: str, gate: TcpGate) -> None:
    async with node_of(settings(_through(gate, zookeeper_connect))) as node:
        await caught_up(node)
        gate.shut()
        await eventually(lambda: not node.store.connected)
        begun = time.monotonic()
        for request in (node.store.create(new_token()), node.store.read("a"), node.store.catch_up()):
            with pytest.raises(StoreUnavailable):
                await request
        assert time.monotonic() - begun < on_this_machine(0.5)
        first = node.store.staleness_ms()
        assert first > 0
        await eventually(lambda: node.store.staleness_ms() > first + 100)
        gate.open()
        await caught_up(node)
        token = new_token()
        await node.store.create(token)
        assert node.token(token.token_id) == token


async def test_the_log_gives_each_loss_its_own_reason(
    zookeeper_connect: str, gate: TcpGate, caplog: pytest.LogCaptureFixture
) -> None:
    def losses() -> list[str]:
        return [each.getMessage() for each in caplog.records if "connection to ZooKeeper" in each.getMessage()]

    async with client_of(settings(_through(gate, zookeeper_connect), SHORT_SESSION_MS)) as client:
        handler = client._session.handler
        asked, unanswered = handler.unanswered, [(None, Answer(threading.Lock()), 1)]
        handler.unanswered = lambda: unanswered
        await eventually(lambda: bool(losses()))
        handler.unanswered = asked
        await eventually(lambda: client.connected)
        before = losses()
        gate.drop()
        await eventually(lambda: losses() > before)
    reason = "a request was not answered for 2.0 s"
    assert [before[0], losses()[-1]] == [f"connection to ZooKeeper suspended ({why})" for why in (reason, "closed")]


async def test_a_session_that_is_found_again_reads_what_it_has_missed_and_no_more(
    zookeeper_connect: str, gate: TcpGate
) -> None:
    async with (
        node_of(settings(_through(gate, zookeeper_connect), 10_000)) as node,
        node_of(settings(zookeeper_connect)) as other,
    ):
        tokens = [new_token() for _ in range(50)]
        for token in tokens:
            await other.store.create(token)
        await eventually(lambda: len(node.states) == 50)
        session_id, reports = node.client.session_id, node.reports
        gate.shut()
        await eventually(lambda: not node.store.connected)
        changed = tokens[0].expiring_at(1)
        await other.store.update(changed, 0)
        await other.store.delete(tokens[1].token_id, 0)
        gate.open()
        await caught_up(node)
        assert node.client.session_id == session_id
        assert node.token(changed.token_id) == changed
        assert node.states[tokens[1].token_id] is None
        assert node.reports == reports + 2
        later = new_token()
        await other.store.create(later)
        assert await eventually(lambda: node.token(later.token_id) == later) < on_this_machine(1)


async def test_an_expired_session_is_replaced_and_everything_compared(zookeeper_connect: str, gate: TcpGate) -> None:
    async with (
        node_of(settings(_through(gate, zookeeper_connect), SHORT_SESSION_MS)) as node,
        node_of(settings(zookeeper_connect)) as other,
    ):
        kept, gone, made = new_token(), new_token(), new_token()
        await other.store.create(kept)
        await node.store.create(gone)
        await other.store.catch_up()
        await eventually(lambda: node.token(kept.token_id) == kept)
        await _mark(node.client)
        session_id = node.client.session_id
        gate.shut()
        await eventually(lambda: not node.store.connected)
        await other.store.update(kept.expiring_at(1), 0)
        await other.store.delete(gone.token_id, 0)
        await other.store.create(made)
        await _session_ended(other.client, session_id)
        gate.open()
        await caught_up(node)
        assert node.client.session_id != session_id
        assert node.token(kept.token_id) == kept.expiring_at(1)
        assert node.states[gone.token_id] is None
        assert node.token(made.token_id) == made
        await node.store.create(new_token())
        later = new_token()
        await other.store.create(later)
        assert await eventually(lambda: node.token(later.token_id) == later) < on_this_machine(1)


class HeldCodec(TokenCodec):
    """Opens sealed tokens while `opens` is set."""

    def __init__(self) -> None:
        super().__init__(KEYRING, seal=True, executor=THREADS, random_bytes=secrets.token_bytes)
        self.opens = asyncio.Event()
        self.opens.set()

    async def decode(self, token_id: str, data: bytes) -> Decoded:
        await self.opens.wait()
        return await super().decode(token_id, data)


class Resealed:
    """A node that has lost its session, and two of whose tokens were sealed again meanwhile, which none announces."""

    def __init__(self, node: Node, other: Node, codec: HeldCodec, gate: TcpGate) -> None:
        self.node = node
        self.other = other
        self.codec = codec
        self.tokens = [new_token() for _ in range(3)]
        self._gate = gate

    async def lose_session(self) -> None:
        for token in self.tokens:
            await self.other.store.create(token)
        await eventually(lambda: len(self.node.states) == len(self.tokens))
        await _mark(self.node.client)
        session_id = self.node.client.session_id
        self._gate.shut()
        await eventually(lambda: not self.node.store.connected)
        self.codec.opens.clear()
        for token in self.tokens[:2]:
            await self.other.client.multi([await self.sealed(token)])
        await _session_ended(self.other.client, session_id)

    async def sealed(self, token: Token) -> SetData:
        """Seal a token that has not been written since it was created."""
        return SetData(TokenZnode.path(token.token_id), await codec_of(KEYRING, seal=True).encode(token), 0)

    async def come_back(self) -> float:
        """Let the node have a new session; the time from which it can prove that it knows everything."""
        self._gate.open()
        await eventually(lambda: self.node.store.connected)
        return time.monotonic()

    def has_proved_since(self, begun: float) -> bool:
        return self.node.store.staleness_ms() < (time.monotonic() - begun) * 1000

    def revision(self, number: int) -> int:
        stored = self.node.states[self.tokens[number].token_id]
        assert stored is not None
        return stored.revision or 0


@pytest.fixture
async def resealed(zookeeper_connect: str, gate: TcpGate) -> AsyncIterator[Resealed]:
    codec = HeldCodec()
    async with (
        node_of(settings(_through(gate, zookeeper_connect), SHORT_SESSION_MS), codec=codec) as node,
        node_of(settings(zookeeper_connect), codec=codec_of(KEYRING, seal=True)) as other,
    ):
        yield Resealed(node, other, codec, gate)
        codec.opens.set()


async def test_a_new_session_need_not_open_again_what_was_only_sealed_again_before_it_is_proved(
    resealed: Resealed,
) -> None:
    node, tokens = resealed.node, resealed.tokens
    await resealed.lose_session()
    revision = resealed.revision(0)
    await resealed.other.store.delete(tokens[1].token_id, None)
    begun = await resealed.come_back()
    await eventually(lambda: resealed.has_proved_since(begun))
    assert node.states[tokens[1].token_id] is None, "the deletion is known"
    assert node.token(tokens[0].token_id) == tokens[0]
    assert resealed.revision(0) == revision, "it has not been opened"
    resealed.codec.opens.set()
    await eventually(lambda: resealed.revision(0) > revision)
    assert node.states[tokens[1].token_id] is None


async def _is_proved_when_it_can_open(resealed: Resealed) -> None:
    begun = await resealed.come_back()
    await asyncio.sleep(1)
    assert not resealed.has_proved_since(begun)
    resealed.codec.opens.set()
    await eventually(lambda: resealed.has_proved_since(begun))


async def test_a_new_session_is_proved_when_the_changes_that_it_missed_are_opened(resealed: Resealed) -> None:
    await resealed.lose_session()
    changed = resealed.tokens[2].expiring_at(1)
    await resealed.other.store.update(changed, 0)
    await _is_proved_when_it_can_open(resealed)
    assert resealed.node.token(changed.token_id) == changed


async def test_a_new_session_that_missed_changes_is_proved_when_everything_is_compared(resealed: Resealed) -> None:
    await resealed.lose_session()
    changed, client = resealed.tokens[2].expiring_at(1), resealed.other.client
    announcement = Create(TokenChangeZnode.PREFIX, TokenChangeZnode.encode(changed.token_id), sequence=True)
    _, announced = await client.multi([await resealed.sealed(changed), announcement])
    assert isinstance(announced, str)
    await client.delete(f"{TokenChangeZnode.PARENT}/{announced.rpartition('/')[2]}")  # it has been purged
    await _is_proved_when_it_can_open(resealed)
    assert resealed.node.token(changed.token_id) == changed


async def test_a_change_under_way_when_the_connection_breaks_has_an_unknown_outcome_and_is_heard_of(
    zookeeper_connect: str, gate: TcpGate
) -> None:
    async with (
        node_of(settings(_through(gate, zookeeper_connect))) as node,
        client_of(settings(zookeeper_connect)) as direct,
    ):
        token = new_token()
        gate.mute()
        creating = asyncio.ensure_future(node.store.create(token))
        deadline = time.monotonic() + 60
        while await direct.exists(f"/delegation_token/tokens/{token.token_id}") is None:
            assert time.monotonic() < deadline
        assert node.token(token.token_id) is None
        gate.shut()
        with pytest.raises(StoreUnavailable) as caught:
            await creating
        assert isinstance(caught.value.__cause__, ZooKeeperConnectionLost)
        assert caught.value.__cause__.sent
        gate.open()
        await eventually(lambda: node.token(token.token_id) == token)
        # A second try, guarded by the version, does not do it twice.
        read = await node.store.read(token.token_id)
        assert read is not None
        assert read.version == 0


async def test_silence_is_noticed_and_staleness_counts_from_the_last_proof(
    zookeeper_connect: str, gate: TcpGate
) -> None:
    async with node_of(settings(_through(gate, zookeeper_connect))) as node:
        gate.mute()
        silent = time.monotonic()
        await eventually(lambda: not node.store.connected)
        noticed_ms = (time.monotonic() - silent) * 1000
        assert node.store.staleness_ms() >= int(noticed_ms)
        gate.shut()
        gate.open()
        await caught_up(node)


@pytest.mark.parametrize("restarted", [False, True], ids=["first start", "restarted"])
async def test_a_connection_on_which_requests_leave_and_nothing_returns_is_ended(
    zookeeper_connect: str, gate: TcpGate, restarted: bool
) -> None:
    async with client_of(settings(_through(gate, zookeeper_connect), SHORT_SESSION_MS)) as client:
        if restarted:
            await asyncio.to_thread(client._session.kazoo.stop)
            await eventually(lambda: not client.connected)
            await eventually(lambda: client.connected)
        gate.mute()
        asked: list[asyncio.Future[Stat | None]] = []
        deadline = time.monotonic() + 60
        while client.connected:  # as long as requests leave, kazoo sends no ping that could be missed
            asked.append(client.exists("/"))
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        for outcome in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(outcome, ZooKeeperConnectionLost)
        assert "was not answered" in client._session.trouble


async def test_a_server_that_answers_pings_and_no_request_is_left(zookeeper_connect: str, gate: TcpGate) -> None:
    """As a follower does that has lost its leader."""
    async with client_of(settings(_through(gate, zookeeper_connect), SHORT_SESSION_MS)) as client:
        unanswered = [(None, Answer(threading.Lock()), 1)]
        client._session.handler.unanswered = lambda: unanswered
        await eventually(lambda: not client.connected)


async def test_staleness_does_not_restart_at_an_attempt_to_connect_again(zookeeper_connect: str, gate: TcpGate) -> None:
    async with node_of(settings(_through(gate, zookeeper_connect), SHORT_SESSION_MS)) as node:
        gate.hold()
        cut = time.monotonic()
        node.client._session.handler.hang_up()
        time.sleep(0.5)  # noqa: ASYNC251 - it has connected again before this loop hears of the loss
        await eventually(lambda: not node.client.connected)
        assert node.store.staleness_ms() >= int((time.monotonic() - cut) * 1000)
        gate.open()
        await caught_up(node)


async def test_a_client_that_has_ended_by_itself_is_started_again(zookeeper_connect: str) -> None:
    async with node_of(settings(zookeeper_connect)) as node:
        token = new_token()
        await asyncio.to_thread(node.client._session.kazoo.stop)
        await eventually(lambda: not node.store.connected)
        await caught_up(node)
        await node.store.create(token)
        assert node.token(token.token_id) == token


async def test_the_server_is_killed_and_restarted_under_load(tmp_path: Path) -> None:
    with child_zookeeper(tmp_path) as server:
        async with (
            node_of(settings(f"{server.address}/k", 8000)) as node,
            node_of(settings(f"{server.address}/k", 8000)) as other,
        ):
            acknowledged, deleted = await _work_while(node, server)
            assert len(acknowledged) > 20
            assert deleted
            await caught_up(node, other)
            for some in (node, other):
                await some.store.catch_up()
                assert all(some.token(token_id) is not None for token_id in acknowledged - deleted)
                assert not any(some.token(token_id) for token_id in deleted)


async def test_a_server_that_hangs_longer_than_the_session_is_found_again(tmp_path: Path) -> None:
    with child_zookeeper(tmp_path) as server:
        async with node_of(settings(f"{server.address}/h", SHORT_SESSION_MS)) as node:
            with hanging(server.server_pid):
                await eventually(lambda: not node.store.connected)
                await eventually(lambda: node.store.staleness_ms() > 2 * SHORT_SESSION_MS)
            await caught_up(node)
            await node.store.create(new_token())


async def _work_while(node: Node, server: EmbeddedZooKeeper) -> tuple[set[str], set[str]]:
    """Create and delete tokens while the server is killed and started again.

    Returns the ids whose creation was acknowledged (without those whose deletion is unclear), and those deleted.
    """
    made: set[str] = set()
    deleted: set[str] = set()
    unclear: set[str] = set()
    done = asyncio.Event()

    async def work() -> None:
        while not done.is_set():
            token = new_token()
            try:
                stored = await node.store.create(token)
                made.add(token.token_id)
                if len(made) % 3 == 0:
                    unclear.add(token.token_id)
                    await node.store.delete(token.token_id, stored.version)
                    deleted.add(token.token_id)
                    unclear.discard(token.token_id)
            except StoreUnavailable:
                await asyncio.sleep(0.02)

    workers = [asyncio.ensure_future(work()) for _ in range(16)]
    await eventually(lambda: len(made) > 100)
    await asyncio.to_thread(server.kill)
    before = len(made)
    await asyncio.to_thread(server.start)
    await eventually(lambda: len(made) > before + 100)
    done.set()
    await asyncio.gather(*workers)
    return made - unclear, deleted
