"""The road of docs/upgrading.md, walked by three nodes while clients log in: to sealed metadata (KIP-395), and back."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from kazoo.client import KazooClient

from kafka_dt.client import DelegationToken
from tests.support.brokers.broker import SECRET_KEY
from tests.support.java.properties import write_properties
from tests.support.nodes.commands import called
from tests.support.nodes.node import Node, node_properties
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import ConnectionClosed, LoginRefused
from tests.support.zookeeper import kip395

TOKENS = "/delegation_token/tokens"
SWITCH = "delegation.token.metadata.encryption.enable"
SEALED_FROM = b"RFRF"
"""Base64 of the letters DTE."""
WITHIN_S = 20.0
PAUSE_S = 0.03


@dataclass
class Logins:
    """Logs in with every token there is, in turn, on whichever node is up, until told to stop."""

    nodes: Sequence[Node]
    tokens: list[DelegationToken] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    succeeded: int = 0
    unserved: int = 0
    """How often no node at all could be reached."""

    def __post_init__(self) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="logins")

    def _run(self) -> None:
        turn = 0
        while not self._stopping.wait(PAUSE_S):
            if self.tokens:
                self._log_in(self.tokens[turn % len(self.tokens)], turn)
                turn += 1

    def _log_in(self, token: DelegationToken, turn: int) -> None:
        """Log in as a client with all nodes in its bootstrap.servers: one that cannot be reached is passed over."""
        for place in range(len(self.nodes)):
            node = self.nodes[(turn + place) % len(self.nodes)]
            try:
                node.connect_by_token(token).close()
            except LoginRefused as refusal:
                self.refused.append(f"{token.token_id} on {node.process.name}: {refusal}")
                return
            except (OSError, ConnectionClosed):
                continue
            self.succeeded += 1
            return
        self.unserved += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()


class Cluster:
    """Three nodes on one ZooKeeper, one worker each."""

    def __init__(self, directory: Path, zookeeper: str) -> None:
        self._directory = directory
        self._zookeeper = zookeeper
        self.nodes = [self._node(number) for number in range(3)]
        self.kazoo = KazooClient(hosts=zookeeper)

    def _properties(self, *, sealing: bool) -> dict[str, object]:
        return {**node_properties(self._zookeeper, kafka_dt_workers=1), SWITCH: sealing}

    def _node(self, number: int) -> Node:
        return Node(self._directory, self._properties(sealing=False), f"node-{number}")

    @contextmanager
    def running(self) -> Iterator[Self]:
        self.kazoo.start()
        try:
            for node in self.nodes:
                node.start()
            yield self
        finally:
            for node in self.nodes:
                node.stop()
            self.kazoo.stop()
            self.kazoo.close()

    def restart(self, node: Node, *, sealing: bool) -> None:
        """Stop a node as an operator does, change the switch, start it."""
        assert node.stop() == 0
        write_properties(node.configuration, self._properties(sealing=sealing))
        node.start()

    def keys(self, command: str) -> str:
        """Run a command of `kafka-dt keys`; what it prints."""
        done = called("keys", command, "--config", self.nodes[0].configuration)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def sealed(self) -> set[str]:
        """The ids of the tokens whose znodes are sealed; each of them opens with the secret key."""
        found = set()
        for token_id in self.kazoo.get_children(TOKENS):
            data, _ = self.kazoo.get(f"{TOKENS}/{token_id}")
            if data.startswith(SEALED_FROM):
                assert token_id.encode() in kip395.decode(data, SECRET_KEY)
                found.add(token_id)
        return found


@pytest.fixture
def cluster(tmp_path: Path, zookeeper_connect: str) -> Iterator[Cluster]:
    with Cluster(tmp_path, zookeeper_connect).running() as cluster:
        yield cluster


async def made_on(node: Node) -> DelegationToken:
    async with node.client() as client:
        return await client.create()


async def test_the_road_to_sealed_metadata_and_back_refuses_no_login(cluster: Cluster) -> None:
    old = {token.token_id: token for token in [await made_on(node) for node in cluster.nodes]}
    with Logins(cluster.nodes, list(old.values())) as logins:

        async def roll(*, sealing: bool) -> set[str]:
            """Restart the nodes one by one, and make a token on each; their ids."""
            made = set()
            for node in cluster.nodes:
                cluster.restart(node, sealing=sealing)
                token = await made_on(node)
                made.add(token.token_id)
                logins.tokens.append(token)
            return made

        plain = await roll(sealing=False)
        assert cluster.sealed() == set()

        sealed = await roll(sealing=True)
        assert cluster.sealed() == sealed
        cluster.keys("seal")
        assert cluster.sealed() == old.keys() | plain | sealed
        cluster.keys("verify")

        back = await roll(sealing=False)
        assert cluster.sealed() == old.keys() | plain | sealed
        cluster.keys("unseal")
        assert cluster.sealed() == set()
        cluster.keys("verify")

        everything = old.keys() | plain | sealed | back
        assert set(cluster.kazoo.get_children(TOKENS)) == everything
        before = logins.succeeded
        eventually(lambda: logins.succeeded > before + 2 * len(everything), within_s=WITHIN_S)
    assert logins.refused == []
    assert logins.unserved == 0
    for node in cluster.nodes:
        node.check_log()
