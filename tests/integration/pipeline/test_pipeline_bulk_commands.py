"""`kafka-dt pipeline seal|unseal|rotate|verify|expire`: what they print, refuse, and survive."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result
from py4j.protocol import Py4JError

from kafka_dt.cli import main
from kafka_dt.pipeline.bulk import jobs as bulk_shares
from kafka_dt.stores import WorkerState
from kafka_dt.zookeeper.sealing.sealed import open_sealed
from kafka_dt.zookeeper.znodes.own import WorkerZnode
from tests.support.java.properties import write_properties
from tests.support.processes.waiting import eventually
from tests.support.spark.quick_spark import QUICK_SPARK, options
from tests.support.zookeeper.sealable import FOREIGN_KEY, NEW_KEY, OLD_KEY
from tests.support.zookeeper.sealed_cluster import NEW, OLD, SealedCluster, recent, sealed_cluster

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from tests.support.java.jvm import Java

PROGRAM = str(Path(sys.executable).with_name("kafka-dt"))
MANY = 300
SMALL = ("--master=local[2]", *options(QUICK_SPARK))

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's, of collect()


@pytest.fixture
def cluster(zookeeper_connect: str, tmp_path: Path) -> Iterator[SealedCluster]:
    with sealed_cluster(zookeeper_connect, tmp_path) as made:
        yield made


def ask(cluster: SealedCluster, *arguments: str) -> Result:
    """Run a command on the session of the tests, to its end."""
    done = CliRunner().invoke(main, ["pipeline", *arguments, "--config", str(cluster.configuration)])
    assert not [secret for secret in (NEW, OLD) if secret in done.output]
    return done


def summary(cluster: SealedCluster, *arguments: str, status: int = 0) -> dict[str, Any]:
    done = ask(cluster, *arguments, "--output", "json")
    assert done.exit_code == status, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def counts(summary: dict[str, Any]) -> tuple[int, int, int, int]:
    return summary["changed"], summary["unchanged"], summary["gone"], summary["failed"]


def processes() -> Iterator[tuple[int, int, int]]:
    """The id, the parent and the session of every process."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent, _, session = stat.read_text().rpartition(") ")[2].split()[:4]
            if state != "Z":
                yield int(stat.parent.name), int(parent), int(session)


def session_members(leader: int) -> list[int]:
    """The processes that live in the session of a process that began one."""
    return [process for process, _, session in processes() if session == leader]


def children(of: int) -> list[int]:
    return [process for process, parent, _ in processes() if parent == of]


def keep_busy(context: SparkContext) -> None:
    """Occupy both cores until the job is cancelled."""
    with pytest.raises(Py4JError):
        context.parallelize(range(2), 2).foreach(lambda _: time.sleep(60))


@pytest.mark.usefixtures("spark")
def test_the_summary_is_the_command_lines(cluster: SealedCluster) -> None:
    cluster.znodes.write([recent(number) for number in range(5)])
    cluster.znodes.write([recent(number) for number in range(5, 8)], FOREIGN_KEY)
    cluster.znodes.write([recent(number) for number in range(8, 10)], OLD_KEY)
    distributed = summary(cluster, "verify", status=1)
    command = ["keys", "verify", "--config", str(cluster.configuration), "--output", "json"]
    alone = json.loads(CliRunner().invoke(main, command).stdout)
    assert {**distributed, "seconds": 0} == {**alone, "seconds": 0}
    assert counts(distributed) == (0, 7, 0, 3)
    table = ask(cluster, "verify")
    assert table.exit_code == 1
    assert "valid         7\n" in table.stdout
    assert "  3 x its MAC fits none of the secret keys: token-0000" in table.stdout
    assert "Failed: 3 tokens of 10" in table.stderr
    assert counts(summary(cluster, "rotate", "--dry-run", status=1)) == (2, 5, 0, 3)
    assert counts(summary(cluster, "rotate", status=1)) == (2, 5, 0, 3)
    assert counts(summary(cluster, "seal", "--rate", "1000", status=1)) == (5, 2, 0, 3)
    assert counts(summary(cluster, "unseal", "--parallelism", "3", status=1)) == (7, 0, 0, 3)


@pytest.mark.usefixtures("spark")
def test_expire_tells_owners_and_asks_before_it_ends_all(cluster: SealedCluster) -> None:
    cluster.znodes.write([recent(number, owner=f"owner-{number % 3}") for number in range(9)])
    cluster.znodes.put("garbage", b"{")
    asked = ask(cluster, "expire")
    assert (asked.exit_code, "say --all" in asked.stderr) == (2, True)
    wanted = summary(cluster, "expire", "--owner", "User:owner-1", "--dry-run")
    assert (wanted["byOwner"], wanted["notReadable"]) == ({"User:owner-1": 3}, 1)
    table = ask(cluster, "expire", "--owner", "User:owner-1", "--yes")
    assert table.exit_code == 0
    assert table.stdout.startswith("User:owner-1: 3\nended         3\nnot meant     6\n")
    assert "Not readable, so left alone: 1 token" in table.stderr
    assert counts(summary(cluster, "expire", "--all", status=1)) == (6, 0, 0, 1)
    assert cluster.znodes.ids() == {"garbage"}


@pytest.mark.usefixtures("spark")
def test_nothing_is_sealed_with_a_key_that_a_node_does_not_accept(cluster: SealedCluster) -> None:
    cluster.znodes.write([recent(number) for number in range(3)])
    before = cluster.znodes.data()
    behind = WorkerState("node-1", 7, 0, 1001, OLD_KEY.id, (OLD_KEY.id,), True, "0.1")
    cluster.znodes.kazoo.create(WorkerZnode.path("x"), WorkerZnode.encode(behind), ephemeral=True, makepath=True)
    for action in ("seal", "rotate"):
        refused = ask(cluster, action)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert f"{NEW_KEY.id}, is not accepted by node-1 (worker 0, pid 7)" in " ".join(refused.stderr.split())
    assert cluster.znodes.data() == before
    assert counts(summary(cluster, "verify")) == (0, 3, 0, 0)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"delegation.token.secret.key": NEW}, "delegation.token.secret.key: is a secret"),
        ({"kafka.dt.zookeeper.digest": f"kafka:{NEW}"}, "kafka.dt.zookeeper.digest: is a secret"),
        ({"delegation.token.secret.key": ""}, "delegation.token.secret.key: is needed"),
        ({"zookeeper.connect": ""}, "zookeeper.connect: is needed"),
    ],
)
def test_settings_that_cannot_travel_are_told_before_spark_starts(
    cluster: SealedCluster, overrides: dict[str, str], message: str
) -> None:
    cluster.configuration = write_properties(cluster.folder / "other.properties", {**cluster.properties, **overrides})
    refused = ask(cluster, "verify")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.startswith(f"Error: {message}")
    assert refused.stderr.count("\n") == 1


@pytest.mark.usefixtures("spark")
def test_zookeeper_out_of_reach_is_told_in_one_line(cluster: SealedCluster) -> None:
    unreachable = ("--override", "zookeeper.connect=127.0.0.1:1", "--override", "zookeeper.connection.timeout.ms=300")
    refused = ask(cluster, "verify", *unreachable)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.startswith("Error: cannot connect to ZooKeeper")


@pytest.mark.usefixtures("spark")
def test_ctrl_c_ends_it_in_order_and_the_next_run_does_the_rest(
    cluster: SealedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_shares, "TOKENS_A_PARTITION", 50)
    monkeypatch.setattr(bulk_shares, "FEWEST_A_PARTITION", 50)
    cluster.znodes.write([recent(number) for number in range(MANY)])

    def interrupt() -> None:
        eventually(lambda: cluster.znodes.sealed() > 0, within_s=60)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        done = summary(cluster, "seal", "--rate", "100", "--parallelism", "1", status=130)
    finally:
        thread.join()
    assert done["interrupted"]
    assert 0 < done["changed"] == cluster.znodes.sealed() < MANY
    rest = summary(cluster, "seal")
    assert counts(rest) == (MANY - done["changed"], done["changed"], 0, 0)


@pytest.mark.usefixtures("spark")
def test_the_second_ctrl_c_ends_it_at_once(cluster: SealedCluster) -> None:
    cluster.znodes.write([recent(number) for number in range(MANY)])

    def interrupt_twice() -> None:
        eventually(lambda: cluster.znodes.sealed() > 0, within_s=60)
        # Two of a kind could become one; either says the same.
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=interrupt_twice)
    thread.start()
    try:
        done = summary(cluster, "seal", "--rate", "10", "--parallelism", "1", status=130)
    finally:
        thread.join()
    # What the partition did until then is not known here.
    assert (done["interrupted"], done["changed"], done["failed"]) == (True, 0, 0)
    assert 0 < cluster.znodes.sealed() < MANY // 2
    assert counts(summary(cluster, "verify")) == (0, MANY, 0, 0)


def test_ctrl_c_ends_the_wait_for_executors(cluster: SealedCluster, spark: SparkSession) -> None:
    context = spark.sparkContext
    tracker = context.statusTracker()
    busy = threading.Thread(target=keep_busy, args=(context,))

    def interrupt() -> None:
        eventually(lambda: len(tracker.getActiveJobsIds()) > 1, within_s=60)
        os.kill(os.getpid(), signal.SIGINT)

    # That of the tests' Spark would end the JVM, which other tests need.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    busy.start()
    eventually(lambda: bool(tracker.getActiveJobsIds()), within_s=60)
    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    try:
        ended = ask(cluster, "verify")
    finally:
        interrupting.join()
        busy.join()
        signal.signal(signal.SIGINT, before)
    assert (ended.exit_code, ended.stdout) == (130, "")
    assert "Traceback" not in ended.stderr


@pytest.fixture
def rotation(cluster: SealedCluster, spark_java: Java) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `rotate` in a session of its own, and gives it when it has changed some of many tokens."""
    cluster.znodes.write([recent(number) for number in range(MANY)], OLD_KEY)
    before = cluster.znodes.data()
    started: list[subprocess.Popen[str]] = []

    def start(*options: str, **environment: str) -> subprocess.Popen[str]:
        command = [PROGRAM, "pipeline", "rotate", "--config", str(cluster.configuration), "--rate", "60", *SMALL]
        process = subprocess.Popen(
            [*command, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "JAVA_HOME": str(spark_java.executable.resolve().parents[1]), **environment},
            start_new_session=True,
        )
        started.append(process)
        eventually(lambda: cluster.znodes.data() != before, within_s=90)
        return process

    yield start
    for process in started:
        for member in session_members(process.pid):
            os.kill(member, signal.SIGKILL)
        process.communicate(timeout=60)


def rotated(cluster: SealedCluster) -> int:
    return sum(open_sealed([NEW_KEY, OLD_KEY], data).key == NEW_KEY for data in cluster.znodes.data().values())


@pytest.mark.usefixtures("spark")
def test_killed_in_the_middle_it_finishes_when_it_is_run_again_and_no_log_has_a_secret(
    cluster: SealedCluster, rotation: Callable[..., subprocess.Popen[str]]
) -> None:
    (events := cluster.folder / "events").mkdir()
    log = {"enabled": "true", "compress": "false", "dir": events.as_uri()}
    options = [f"--conf=spark.eventLog.{name}={value}" for name, value in log.items()]
    key = "--override=delegation.token.secret.key=env:THE_CURRENT_KEY"
    process = rotation(*options, key, THE_CURRENT_KEY=NEW)
    process.kill()
    stdout, stderr = process.communicate(timeout=60)
    # Executors and their Python end with the driver.
    eventually(lambda: not session_members(process.pid), within_s=30)
    assert 0 < (done := rotated(cluster)) < MANY
    logged = "".join(file.read_text() for file in events.rglob("*") if file.is_file())
    assert "kafka-dt rotate: a partition of the tokens" in logged
    assert not [secret for secret in (NEW, OLD) if secret in logged + stdout + stderr]
    assert counts(summary(cluster, "rotate")) == (MANY - done, done, 0, 0)
    assert counts(summary(cluster, "verify")) == (0, MANY, 0, 0)


@pytest.mark.soak
def test_a_spark_that_ends_under_it_is_told_in_one_line(
    cluster: SealedCluster, rotation: Callable[..., subprocess.Popen[str]]
) -> None:
    process = rotation("--output=json")
    (jvm,) = children(process.pid)
    os.kill(jvm, signal.SIGKILL)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 1
    assert json.loads(stdout)["total"] == MANY
    assert "Error: Spark could not work on a partition (its JVM has ended); run it again to go on\n" in stderr
    assert 0 < rotated(cluster) < MANY


def test_without_settings_a_command_says_what_it_needs() -> None:
    done = CliRunner().invoke(main, ["pipeline", "verify"])
    assert (done.exit_code, "Missing option '--config'" in done.stderr) == (2, True)
