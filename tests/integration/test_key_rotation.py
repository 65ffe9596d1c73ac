"""Rotate the secret keys of two live nodes while clients log in on both: no login is refused.

The nodes share the files of their keys, as the command does; a third one joins where a test is about starting, or about
nodes with files of their own.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from kafka_dt.client import DelegationToken, LoginFailed
from kafka_dt.tokens import SecretKey
from tests.support.nodes.commands import called
from tests.support.nodes.node import SHA_256, SHA_512, Node, node_properties
from tests.support.nodes.server import PROGRAM
from tests.support.processes.forked import fork_server
from tests.support.processes.process import ChildProcess
from tests.support.processes.waiting import eventually
from tests.support.zookeeper.server import make_chroot

_LOG = logging.getLogger(__name__)
"""Measured figures, shown with `--log-cli-level=INFO`."""

COMMAND_S = 60
SESSION_MS = 4_000
ENOUGH = 20
"""Logins on each node while a test runs, and until it ends."""
PAUSE_S = 0.1
"""Between two logins on a node, so that the commands have a share of the machine."""
KEPT = 20
"""Tokens in use at the same time, besides the first ones."""
FIRST = 5


@dataclass
class Cluster:
    """Two nodes that share their keys' files."""

    directory: Path
    zookeeper: str
    nodes: list[Node] = field(default_factory=list)

    @property
    def current(self) -> Path:
        return self.directory / "current.key"

    @property
    def previous(self) -> Path:
        return self.directory / "previous.keys"

    def properties(self, keys: Path | None = None) -> dict[str, object]:
        """The settings of one more node; `keys`: a directory with key files of its own."""
        directory = keys or self.directory
        return node_properties(self.zookeeper) | {
            "delegation.token.metadata.encryption.enable": True,
            "delegation.token.secret.key": f"file:{directory / self.current.name}",
            "kafka.dt.secret.keys.previous": f"file:{directory / self.previous.name}",
            "zookeeper.session.timeout.ms": SESSION_MS,
        }

    def command(self, *arguments: str, keys: Path | None = None) -> list[str]:
        directory = keys or self.directory
        settings = self.properties(directory)
        overrides = [f"--override={name}={settings[name]}" for name in settings if "key" in name or "zookeeper" in name]
        return ["keys", *arguments, *overrides]

    def call(self, *arguments: str, keys: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run `kafka-dt keys ...` to its end."""
        result = called(*self.command(*arguments, keys=keys))
        for text in (result.stdout, result.stderr):
            assert not any(key in text for key in self.secrets()), "a command shows a key"
            assert "Traceback" not in text, text
        return result

    def secrets(self) -> list[str]:
        return [*self.current.read_text().split(), *self.previous.read_text().split()]

    @property
    def current_id(self) -> str:
        return SecretKey(self.current.read_text().strip()).id

    @property
    def previous_ids(self) -> list[str]:
        return [SecretKey(key).id for key in self.previous.read_text().split()]

    def listed(self) -> dict[str, Any]:
        result = self.call("list", "--output", "json")
        assert result.returncode == 0, result.stderr
        found: dict[str, Any] = json.loads(result.stdout)
        return found


@pytest.fixture(scope="module")
def cluster(zookeeper_address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("keys"), make_chroot(zookeeper_address, "rotation"))
    cluster.current.write_text("the-first-key-of-this-cluster-made-by-hand\n")
    cluster.current.chmod(0o640)
    cluster.previous.write_text("")
    with (
        Node(tmp_path_factory.mktemp("node"), cluster.properties(), "node") as node,
        Node(tmp_path_factory.mktemp("other-node"), cluster.properties(), "other-node") as other,
    ):
        cluster.nodes = [node, other]
        yield cluster
    for each in cluster.nodes:
        each.check_log()
        assert not any(key in each.log() for key in cluster.secrets())


class Logins:
    """Clients that make tokens and log in with them, on all nodes and all the time."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.first: list[DelegationToken] = []
        self.made: list[DelegationToken] = []
        self.refused: list[str] = []
        self.counts: Counter[str] = Counter()
        self._turn = 0

    async def make(self, node: Node) -> DelegationToken:
        async with node.client() as client:
            return await client.create()

    async def start(self) -> None:
        self.first = [await self.make(node) for node in self.nodes for _ in range(FIRST)]

    async def create(self, node: Node) -> None:
        while True:
            self.made = [*self.made[-KEPT:], await self.make(node)]
            await asyncio.sleep(3 * PAUSE_S)

    async def log_in(self, node: Node) -> None:
        while True:
            for token in (*self.first, *self.made):
                self._turn += 1
                try:
                    async with node.token_client(token, (SHA_256, SHA_512)[self._turn % 2]):
                        self.counts[node.process.name] += 1
                except LoginFailed as error:
                    self.refused.append(f"{node.process.name}: {error}")
                await asyncio.sleep(PAUSE_S)

    def enough(self) -> bool:
        """Whether there were enough logins on each node."""
        return all(self.counts[node.process.name] >= ENOUGH for node in self.nodes)


@asynccontextmanager
async def logging_in(nodes: list[Node]) -> AsyncIterator[Logins]:
    """Have clients at work during the block, until they have logged in often enough; see that none was refused."""
    logins = Logins(nodes)
    await logins.start()
    begun = time.monotonic()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work(node)) for node in nodes for work in (logins.create, logins.log_in)]
        try:
            yield logins
            await asyncio.to_thread(eventually, logins.enough, COMMAND_S)
        finally:
            for task in tasks:
                task.cancel()
    seconds = time.monotonic() - begun
    _LOG.info("%s logins in %.1f s", dict(logins.counts), seconds)
    assert logins.refused == []


async def asked(cluster: Cluster, *arguments: str, keys: Path | None = None) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(lambda: cluster.call(*arguments, keys=keys))


async def rotated(cluster: Cluster) -> None:
    before = cluster.current_id
    result = await asked(cluster, "rotate", "--output", "json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {"keyId": cluster.current_id, "stage": "done", "workers": 4, "lagging": []}
    assert cluster.current_id != before
    assert cluster.previous_ids[0] == before


async def refused(node: Node, token: DelegationToken) -> bool:
    try:
        async with node.token_client(token):
            return False
    except LoginFailed:
        return True


async def test_two_rotations_refuse_nobody_and_a_retired_keys_tokens_end_everywhere(cluster: Cluster) -> None:
    async with logging_in(cluster.nodes) as logins:
        oldest = cluster.current_id
        await rotated(cluster)
        between = [await logins.make(node) for node in cluster.nodes]
        await rotated(cluster)
        newest = [await logins.make(node) for node in cluster.nodes]
        listed = await asyncio.to_thread(cluster.listed)
    keys = {key["keyId"]: key for key in listed["keys"]}
    assert [key["role"] for key in listed["keys"]][:3] == ["current", "previous", "previous"]
    assert keys[oldest]["liveTokens"] >= len(logins.first)
    assert keys[cluster.current_id]["liveTokens"] >= len(newest)
    assert keys[cluster.current_id]["sealedTokens"] >= len(newest)
    assert [node["lags"] for node in listed["nodes"]] == [False] * 4
    assert cluster.current.stat().st_mode & 0o777 == 0o640

    refusal = await asked(cluster, "retire", oldest)
    assert refusal.returncode == 1
    assert refusal.stderr.startswith(f"Error: the key {oldest} still has ")
    assert "--expire-tokens" in refusal.stderr
    assert not any([await refused(node, token) for node in cluster.nodes for token in logins.first])

    result = await asked(cluster, "retire", oldest, "--expire-tokens", "--output", "json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["endedTokens"] >= len(logins.first)
    # The command has waited until no node has the key, so this is so at once; how long a refusal takes is not measured.
    outcomes = await asyncio.gather(*(refused(node, token) for node in cluster.nodes for token in logins.first))
    assert all(outcomes)
    assert not any([await refused(node, token) for node in cluster.nodes for token in (*between, *newest)])
    assert oldest not in cluster.previous_ids
    assert oldest not in {key["keyId"] for key in (await asyncio.to_thread(cluster.listed))["keys"]}


async def test_the_current_key_is_not_retired(cluster: Cluster) -> None:
    result = await asked(cluster, "retire", cluster.current_id, "--expire-tokens")
    assert result.returncode == 1
    assert "is the current one" in result.stderr


@asynccontextmanager
async def node_with_own_files(cluster: Cluster, directory: Path) -> AsyncIterator[tuple[Node, Callable[[Path], None]]]:
    """One more node, and what brings it a file of the others; until it has got that, rotations wait for it."""
    own = directory / "own"
    own.mkdir()

    def distribute(path: Path) -> None:
        shutil.copy(path, own / "new")
        (own / "new").replace(own / path.name)

    distribute(cluster.current)
    distribute(cluster.previous)
    node = Node(directory, cluster.properties(own) | {"kafka.dt.workers": 1}, "far")
    await asyncio.to_thread(node.start)
    try:
        yield node, distribute
    finally:
        await asyncio.to_thread(node.stop)


def killed_when(cluster: Cluster, directory: Path, seen: Callable[[], bool]) -> None:
    """Begin a rotation and kill it when something is seen."""
    command = [str(PROGRAM), *cluster.command("rotate")]
    process = ChildProcess("rotate", command, directory / "rotate.log", forks=fork_server())
    process.start()
    try:
        eventually(seen, COMMAND_S)
    finally:
        process.kill()
    assert process.returncode != 0


@pytest.mark.parametrize("activated", [False, True], ids=["prepared", "activated"])
async def test_a_rotation_that_was_killed_is_finished_by_the_next_one(
    cluster: Cluster, tmp_path: Path, *, activated: bool
) -> None:
    async with logging_in(cluster.nodes):
        before, previous = cluster.current_id, cluster.previous_ids
        async with node_with_own_files(cluster, tmp_path) as (_, distribute):
            if activated:
                prepared = await asked(cluster, "rotate", "--prepare")
                assert prepared.returncode == 0, prepared.stderr
                distribute(cluster.previous)
                await asyncio.to_thread(killed_when, cluster, tmp_path, lambda: cluster.current_id != before)
            else:
                await asyncio.to_thread(killed_when, cluster, tmp_path, lambda: cluster.previous_ids != previous)
        new = cluster.previous_ids[0]
        assert before in cluster.previous_ids
        assert cluster.current_id == (new if activated else before)
        result = await asked(cluster, "rotate", "--output", "json")
        assert result.returncode == 0, result.stderr
        assert (cluster.current_id, cluster.previous_ids[0]) == (new, before)
        assert new not in cluster.previous_ids


@contextmanager
def registered_broker(connect: str, broker_id: str) -> Iterator[None]:
    """Be a live broker, as far as ZooKeeper tells."""
    kazoo = KazooClient(hosts=connect)
    kazoo.start()
    try:
        kazoo.create(f"/brokers/ids/{broker_id}", b"{}", ephemeral=True, makepath=True)
        yield
    finally:
        kazoo.stop()
        kazoo.close()


async def test_a_node_that_starts_in_the_middle_of_a_rotation_takes_part_in_it(
    cluster: Cluster, tmp_path: Path
) -> None:
    prepared = await asked(cluster, "rotate", "--prepare")
    assert prepared.returncode == 0, prepared.stderr
    with (
        registered_broker(cluster.zookeeper, "7"),
        Node(tmp_path, cluster.properties() | {"kafka.dt.workers": 1}, "late") as late,
    ):
        assert late.log().count("Brokers are live in the same ZooKeeper (ids 7)") == 1
        async with logging_in([*cluster.nodes, late]):
            result = await asked(cluster, "rotate", "--output", "json")
            assert "Brokers are live (ids 7): new tokens do not log in there" in result.stderr
            assert result.returncode == 0, result.stderr
            assert json.loads(result.stdout) == {
                "keyId": cluster.current_id,
                "stage": "done",
                "workers": 5,
                "lagging": [],
            }


async def test_nodes_with_files_of_their_own_are_waited_for_and_named(cluster: Cluster, tmp_path: Path) -> None:
    async with node_with_own_files(cluster, tmp_path) as (far, distribute), logging_in([*cluster.nodes, far]):
        prepared = await asked(cluster, "rotate", "--prepare")
        assert prepared.returncode == 0, prepared.stderr
        new = cluster.previous_ids[0]
        stopped = await asked(cluster, "rotate", "--timeout", "1.5")
        assert stopped.returncode == 1
        assert f"the key {new} is not accepted by " in stopped.stderr
        assert f"(worker 0, pid {far.workers()[0]}): see that its machine has what is in" in stopped.stderr
        distribute(cluster.previous)
        activated = await asked(cluster, "rotate", "--activate", "--output", "json")
        assert activated.returncode == 0, activated.stderr
        assert cluster.current_id == new
        stopped = await asked(cluster, "rotate", "--timeout", "1.5")
        assert stopped.returncode == 1
        assert f"tokens are not made with the key {new} by " in stopped.stderr
        distribute(cluster.current)
        finished = await asked(cluster, "rotate")
        assert finished.returncode == 0, finished.stderr
        assert new not in cluster.previous_ids


async def test_a_file_that_cannot_be_used_changes_nothing(cluster: Cluster) -> None:
    kept = cluster.current.read_text()
    told = "The secret keys stay as they are, the changed ones cannot be used: delegation.token.secret.key: "
    before = [node.log().count(told) for node in cluster.nodes]
    cluster.current.write_text("\n")
    try:
        await asyncio.to_thread(
            eventually,
            lambda: [node.log().count(told) for node in cluster.nodes] == [count + 2 for count in before],
            30,
        )
        async with cluster.nodes[0].client() as client:
            token = await client.create()
        assert not any([await refused(node, token) for node in cluster.nodes])
    finally:
        cluster.current.write_text(kept)
    listed = await asyncio.to_thread(cluster.listed)
    assert [node["lags"] for node in listed["nodes"]] == [False] * 4
