"""A rolling upgrade of two nodes in front of a cluster, under live producers, and back: docs/how-to/upgrade.md.

`make soak` goes from the last release to the wheels of this tree and back, with 1,000 connections. `make test` restarts
the nodes of this tree with fewer. The wheels of the last release are built from its commit, so that test needs the
history of this repository, which a shallow clone does not have.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import confluent_kafka
import pytest

from kafka_dt.client import ConnectionFailed, Credentials, DelegationToken, TokenClient
from release.packages import build
from release.tools import NotReleased
from release.tree import export, read_version
from tests.support.brokers.broker import USERS
from tests.support.brokers.kraft import KraftCluster
from tests.support.brokers.kraft_operator import Operator
from tests.support.docs.documents import LAST_RELEASE, ROOT, marked
from tests.support.nodes.gateway import PORTS, Gateway, gateway_properties
from tests.support.nodes.node import SHA_256
from tests.support.nodes.producers import Producers
from tests.support.processes.ports import free_ports
from tests.support.zookeeper.server import make_chroot

BROKER: Final = 1
PARTITIONS: Final = 4
FEW: Final = 60
MANY: Final = 1_000
PAUSE_S: Final = 30.0
"""No record may wait longer for its acknowledgement: as long as Kafka's clients wait for an answer
(`request.timeout.ms`)."""
CREATE_PAUSE_S: Final = 0.1
READ_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Version:
    """What a node runs."""

    name: str
    step: str = ""
    """Which block of the page installs it on a machine; none for the checkout."""


HERE: Final = Version("this tree")
LAST: Final = Version("0.1.0", "switch-back")
NEXT: Final = Version(read_version(ROOT), "switch")


class Nodes:
    """Two nodes on one ZooKeeper, each with its own ports, which it keeps."""

    def __init__(
        self, folder: Path, zookeeper: str, cluster: KraftCluster, workers: int, installed: Path | None = None
    ) -> None:
        self._folder = folder
        self._installed = installed
        self._settings = []
        first = free_ports(2 * PORTS)
        for base in (first, first + PORTS):
            properties = gateway_properties(zookeeper, cluster, base)
            listeners = {"listeners": f"SASL_PLAINTEXT://127.0.0.1:{base}", "kafka.dt.workers": workers}
            self._settings.append((base, properties | listeners))
        self.running: dict[int, Gateway] = {}

    @property
    def servers(self) -> str:
        """The bootstrap list."""
        return ",".join(f"127.0.0.1:{base}" for base, _ in self._settings)

    @property
    def addresses_of_broker(self) -> list[str]:
        """Where the broker is reached, at each node."""
        return [f"127.0.0.1:{base + BROKER}" for base, _ in self._settings]

    def start(self, number: int, version: Version) -> None:
        base, properties = self._settings[number]
        machine = self._folder / f"machine-{number}"
        if version.step:
            # Without PYTHONPATH, no package of the checkout stands before those that are installed.
            program = self._take_step(version, machine)
            node = Gateway(machine, properties, f"node-{number}", {"PYTHONPATH": ""}, program=program)
        else:
            node = Gateway(machine, properties, f"node-{number}")
        node.port_base = base
        node.start()
        self.running[number] = node

    def _take_step(self, version: Version, machine: Path) -> Path:
        """Do what the page says between stopping and starting; gives the program."""
        machine.mkdir(exist_ok=True)
        (step,) = marked("docs/how-to/upgrade.md", version.step)
        step = step.replace("/opt/kafka-dt-", f"{self._installed}/kafka-dt-")
        step = step.replace("/opt/kafka-dt", str(machine / "kafka-dt"))
        done = subprocess.run(["/bin/sh", "-e", "-c", step], capture_output=True, text=True, check=True)
        assert f"version {version.name} " in done.stdout
        return machine / "kafka-dt" / "bin" / "kafka-dt"

    def stop(self, number: int) -> None:
        """Stop one as an operator does."""
        node = self.running.pop(number)
        assert node.stop() == 0
        node.check_log()

    def __enter__(self) -> Nodes:
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.running.values():
            node.stop()


@dataclass
class Tokens:
    """Creates tokens all the time, at whichever node is up."""

    servers: str
    created: list[DelegationToken] = field(default_factory=list)

    @asynccontextmanager
    async def being_created(self) -> AsyncIterator[None]:
        """Create them during a block."""
        creating = asyncio.create_task(self._create())
        try:
            yield
        finally:
            creating.cancel()
            with suppress(asyncio.CancelledError):
                await creating

    async def _create(self) -> None:
        login = {
            "bootstrap.servers": self.servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": (
                "org.apache.kafka.common.security.plain.PlainLoginModule required "
                f'username="alice" password="{USERS["alice"]}";'
            ),
        }
        async with TokenClient.from_config(login) as client:
            while True:
                with suppress(ConnectionFailed):  # the token may be there, or not: no answer promised anything
                    self.created.append(await client.create())
                await asyncio.sleep(CREATE_PAUSE_S)


async def roll(nodes: Nodes, version: Version, producers: Producers) -> float:
    """Restart the nodes one after the other, as docs/how-to/upgrade.md says; gives the longest pause of a producer."""
    producers.longest_pause_s = 0.0
    for number in (0, 1):
        await asyncio.to_thread(nodes.stop, number)
        await producers.all_go_on()
        await asyncio.to_thread(nodes.start, number, version)
        await producers.all_go_on()
    return producers.longest_pause_s


def in_topic(cluster: KraftCluster, topic: str) -> list[str]:
    """The values of all records of a topic."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": cluster.plaintext, "group.id": "reads-all"})
    try:
        partitions = [confluent_kafka.TopicPartition(topic, number, 0) for number in range(PARTITIONS)]
        count = sum(consumer.get_watermark_offsets(each)[1] for each in partitions)
        consumer.assign(partitions)
        values: list[str] = []
        deadline = time.monotonic() + READ_S
        while len(values) < count and time.monotonic() < deadline:
            found = (message.value() for message in consumer.consume(1_000, timeout=1.0))
            values += [value.decode() for value in found if value is not None]
    finally:
        consumer.close()
    return values


async def lost_tokens(nodes: Nodes, created: Sequence[DelegationToken]) -> set[str]:
    """The ids of tokens that some node does not have; all are those of alice."""
    lost: set[str] = set()
    for node in nodes.running.values():
        async with node.client("alice") as client:
            described = {each.token_id for each in await client.describe()}
        lost |= {each.token_id for each in created} - described
    return lost


async def run(nodes: Nodes, cluster: KraftCluster, topic: str, *, count: int, versions: Sequence[Version]) -> str:
    """Roll from each version to the next under producers; gives what was seen, in words."""
    for number in (0, 1):
        await asyncio.to_thread(nodes.start, number, versions[0])
    tokens = Tokens(nodes.servers)
    async with nodes.running[0].client("alice") as client:
        token = await client.create()
    credentials = Credentials(SHA_256, token.token_id, token.hmac_base64, token_auth=True)
    producers = Producers(nodes.addresses_of_broker, credentials, topic, count=count, partitions=PARTITIONS)
    async with producers.running(), tokens.being_created():
        pauses_s = [await roll(nodes, version, producers) for version in versions[1:]]
    values = await asyncio.to_thread(in_topic, cluster, topic)
    pauses = ", ".join(
        f"{pause_s:.1f} s when nodes of {stopped.name} stopped"
        for stopped, pause_s in zip(versions, pauses_s, strict=False)
    )
    seen = (
        f"{count} connections, {' -> '.join(each.name for each in versions)}: {len(producers.acknowledged)} records "
        f"acknowledged ({len(values) - len(set(values))} twice), {producers.logins} logins, "
        f"{len(tokens.created)} tokens; longest pauses: {pauses}"
    )
    assert producers.refused == []
    assert producers.failures == []
    assert producers.acknowledged - set(values) == set()
    assert tokens.created
    assert await lost_tokens(nodes, [token, *tokens.created]) == set()
    for node in nodes.running.values():
        node.connect_by_token(tokens.created[-1]).close()
    assert max(pauses_s) < PAUSE_S, seen
    return seen


@pytest.fixture
def led_by_one(operator: Operator, request: pytest.FixtureRequest) -> str:
    """A topic of alice's that one broker leads."""
    name = f"alice-{request.node.name.partition('[')[0]}"
    return operator.make_topic(name, *[BROKER] * PARTITIONS)


def two_nodes(
    folder: Path, gateway_connect: str, cluster: KraftCluster, *, workers: int, installed: Path | None = None
) -> Nodes:
    return Nodes(folder, make_chroot(gateway_connect.partition("/")[0], "upgrade"), cluster, workers, installed)


async def test_nodes_restart_one_by_one_and_no_acknowledged_record_and_no_token_is_lost(
    cluster: KraftCluster, gateway_connect: str, led_by_one: str, tmp_path: Path
) -> None:
    with two_nodes(tmp_path, gateway_connect, cluster, workers=1) as nodes:
        await run(nodes, cluster, led_by_one, count=FEW, versions=[HERE, HERE])


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with the last release and the wheels of this tree, each installed in a folder of its own."""
    try:
        export(ROOT, LAST_RELEASE, tmp_path / "source")
    except NotReleased:
        pytest.skip("this clone is shallow: it does not have the commit of the last release")
    install(tmp_path / "source", tmp_path / f"kafka-dt-{LAST.name}")
    install(ROOT, tmp_path / f"kafka-dt-{NEXT.name}")
    return tmp_path


def install(source: Path, environment: Path) -> None:
    """Build the wheels of a tree, and install them with the dependencies of this environment."""
    wheels = environment / "wheels"
    build(source, wheels, time_s=int(time.time()))
    venv.create(environment, symlinks=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    # Path files in a folder that a path file names are not read, so the packages of the checkout stay out.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--quiet", "--python", environment / "bin" / "python"]
    options = ["--no-index", "--no-deps", "--ignore-installed"]
    subprocess.run([*pip, "install", *options, *wheels.glob("*.whl")], check=True)


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_a_rolling_upgrade_from_the_last_release_and_back_under_1000_producers(
    cluster: KraftCluster,
    gateway_connect: str,
    led_by_one: str,
    *,
    installed: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with two_nodes(tmp_path, gateway_connect, cluster, workers=2, installed=installed) as nodes:
        seen = await run(nodes, cluster, led_by_one, count=MANY, versions=[LAST, NEXT, LAST])
    with capsys.disabled():
        sys.stdout.write(f"\n{seen}\n")
