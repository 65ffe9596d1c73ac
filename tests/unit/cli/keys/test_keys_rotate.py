"""How far a rotation goes, and what rotating and retiring refuse, with nodes that only say what they have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from kafka_dt.cli import main
from kafka_dt.cli.keys.files import KeyFiles, KeysError, Stage
from kafka_dt.cli.keys.retire import Retirement
from kafka_dt.cli.keys.rotate import Rotated, Rotation
from kafka_dt.config import from_properties
from kafka_dt.stores import WorkerState
from kafka_dt.tokens import SecretKey

if TYPE_CHECKING:
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

CURRENT, PREVIOUS = "delegation.token.secret.key", "kafka.dt.secret.keys.previous"
NOW, NEW = "n" * 40, "x" * 40
NOW_ID, NEW_ID = SecretKey(NOW).id, SecretKey(NEW).id
NODE = WorkerState("host", 1, 0, 1001, NOW_ID, (NOW_ID,), seals=True, version="0.1")
NOWHERE = cast("ZooKeeperClient", None)


class Cluster:
    """The files of keys, and what nodes say of themselves."""

    def __init__(self, directory: Path) -> None:
        self.current, self.previous = directory / "current", directory / "previous"
        self.current.write_text(NOW)
        self.previous.write_text("")
        self.settings = {CURRENT: f"file:{self.current}", PREVIOUS: f"file:{self.previous}"}
        self.files = KeyFiles(from_properties(self.settings).settings)
        self.nodes = [NODE]

    async def live_workers(self, _client: ZooKeeperClient) -> list[WorkerState]:
        return self.nodes

    async def rotate(self, until: Stage = Stage.IDLE, given: str | None = None) -> Rotated:
        return await Rotation(NOWHERE, self.files, Console(stderr=True), 0.01).run(given, until)

    def call(self, *arguments: str) -> Result:
        overrides = [f"--override={name}={text}" for name, text in self.settings.items()]
        return CliRunner().invoke(main, ["keys", *arguments, "--override=zookeeper.connect=127.0.0.1:1", *overrides])


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    cluster = Cluster(tmp_path)
    monkeypatch.setattr("kafka_dt.cli.keys.nodes.live_workers", cluster.live_workers)
    return cluster


async def test_preparing_tells_who_lacks_the_key_and_said_again_waits_for_them(cluster: Cluster) -> None:
    assert await cluster.rotate(Stage.PREPARED, NEW) == Rotated(Stage.PREPARED, NEW_ID, 0, ("host (worker 0, pid 1)",))
    for _ in range(2):
        with pytest.raises(KeysError) as stopped:
            await cluster.rotate(Stage.PREPARED)
        assert f"the key {NEW_ID} is not accepted by host (worker 0, pid 1): see that" in str(stopped.value)
        assert f"restart it with {CURRENT} and {PREVIOUS} as file:" in str(stopped.value)
    cluster.nodes = [replace(NODE, keys=(NOW_ID, NEW_ID))]
    assert await cluster.rotate(Stage.PREPARED) == Rotated(Stage.PREPARED, NEW_ID, 1)
    assert cluster.files.read().stage is Stage.PREPARED


async def test_the_current_key_is_no_new_one_but_a_rotation_to_it_goes_on(cluster: Cluster) -> None:
    for until in Stage:
        with pytest.raises(KeysError, match=f"the new key is the current one already, {NOW_ID}: nothing is changed"):
            await cluster.rotate(until, NOW)
    assert (cluster.current.read_text(), cluster.previous.read_text()) == (NOW, "")
    cluster.files.prepare(NEW)
    cluster.files.activate(SecretKey(NEW))
    cluster.nodes = [replace(NODE, current_key=NEW_ID, keys=(NEW_ID, NOW_ID))]
    assert await cluster.rotate(given=NEW) == Rotated(Stage.IDLE, NEW_ID, 1)
    assert cluster.files.read().stage is Stage.IDLE


async def test_a_key_that_is_nowhere_is_retired_already(cluster: Cluster) -> None:
    assert await Retirement(NOWHERE, cluster.files, "0" * 16, 0.01).run() is None


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["rotate", "--prepare", "--activate"], "say one of them"),
        (["retire", "0" * 16, "--expire-nameless", "--keep-nameless"], "say one of them"),
        (["retire", "0" * 15], "`kafka-dt keys list` shows"),
        (["retire", "0" * 15 + "\n"], "`kafka-dt keys list` shows"),
        (["retire", "current"], "`kafka-dt keys list` shows"),
    ],
)
def test_what_cannot_be_meant_is_an_error_of_usage(cluster: Cluster, arguments: list[str], reason: str) -> None:
    result = cluster.call(*arguments)
    assert result.exit_code == 2
    assert reason in result.stderr
