"""Sail as the engine of a report: who can reach it, when it ends, and what it reads and writes."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow
import pytest
from deltalake import write_deltalake
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator

from kafka_dt.cli.pipeline.session import EngineChoice, on_engine
from kafka_dt.pipeline.engines import Engine, SailEngine, is_in_reach
from kafka_dt.pipeline.errors import NoTable, OldTable, ReportFailed, SailFailed
from kafka_dt.pipeline.report.analysis import ReportSettings
from kafka_dt.pipeline.report.reporting import report
from kafka_dt.pipeline.table import Table
from kafka_dt.pipeline.table.old import JOURNAL
from kafka_dt.pipeline.table.schema import EVENT_SCHEMA
from tests.support.processes.waiting import eventually
from tests.support.spark.engines import sail_or_skip, succeeds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""pyspark's client may give back an answer that nothing refers to while it is closed."""
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
STARTS_AND_WAITS = """
import sys
from kafka_dt.pipeline.engines import sail_session
with sail_session():
    print("ready", flush=True)
    sys.stdin.read()
"""
WITHOUT_NETWORKS = 'echo 0 > /proc/sys/user/max_net_namespaces && exec "$@"'
"""Run in users of its own, whose limit it then is."""


@pytest.fixture
def sail() -> Iterator[SailEngine]:
    with sail_or_skip() as engine:
        yield engine


def servers(parent: int) -> list[int]:
    """Find the processes of Sail that a process has started."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii").split()
    return [int(each) for each in children if b"sail_server" in Path(f"/proc/{each}/cmdline").read_bytes()]


@pytest.mark.usefixtures("sail")
def test_no_other_user_reaches_sail_and_no_process_by_the_network() -> None:
    (server,) = servers(os.getpid())
    assert Path(f"/proc/{server}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()
    socket = Path(Path(f"/proc/{server}/cmdline").read_bytes().split(b"\0")[-3].decode())
    assert socket.is_socket()
    assert socket.parent.stat().st_mode & 0o077 == 0


@pytest.mark.usefixtures("sail")
def test_sail_ends_when_the_process_that_has_started_it_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTS_AND_WAITS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        (server,) = servers(process.pid)
        process.kill()
    eventually(lambda: not Path(f"/proc/{server}").exists(), 10)


def test_where_sail_may_have_no_network_of_its_own_a_report_says_so_or_takes_spark(tmp_path: Path) -> None:
    unshare, program = shutil.which("unshare"), Path(sys.executable).with_name("kafka-dt")
    command = [str(unshare), "--user", "--map-root-user", "sh", "-c", WITHOUT_NETWORKS, "sh"]
    if not succeeds(*command, "true"):
        pytest.skip("this system has no users of a process's own")
    command += [str(program), "pipeline", "report", "--table", str(tmp_path), "--to", str(tmp_path / "to")]
    refused = "this system does not let it have a network of its own"
    for engine, said in (
        ("sail", f"Error: Sail does not start: {refused}"),
        (
            "auto",
            f"Spark computes the report instead of Sail: {refused}: No space left on device\nError: Spark does not",
        ),
    ):
        # Without a Java Spark refuses at once.
        variables = {**os.environ, "JAVA_HOME": str(tmp_path)}
        done = subprocess.run(
            [*command, "--engine", engine], capture_output=True, text=True, env=variables, cwd=tmp_path, check=False
        )
        assert (done.returncode, done.stderr[: len(said)]) == (1, said)


def test_sail_runs_without_any_privilege_and_whatever_lies_where_it_is_started(tmp_path: Path) -> None:
    command = [str(shutil.which("setpriv")), "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    if not succeeds(*command, "unshare", "--user", "--net", "true"):
        pytest.skip("this system has no users of a process's own")
    for name in ("ctypes.py", "kafka_dt.py", "pysail.py"):
        (tmp_path / name).write_text("raise SystemExit('it was imported')", encoding="utf-8")
    command += [sys.executable, "-P", "-c", STARTS_AND_WAITS]
    done = subprocess.run(command, input="", capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ready\n", "")


def test_a_report_ends_at_once_and_says_so_when_sail_is_killed(sail: SailEngine, tmp_path: Path) -> None:
    (server,) = servers(os.getpid())
    add_events(Table(str(tmp_path / "table")), "a")
    settings, now = ReportSettings(), datetime.now(UTC)

    def kill(_step: str) -> None:
        os.kill(server, signal.SIGKILL)

    with pytest.raises(ReportFailed):
        report(sail, Table(str(tmp_path / "table")), tmp_path / "to", settings, progress=kill, now=now)


def fail_with_sail() -> None:
    with sail_or_skip():
        os.kill(servers(os.getpid())[-1], signal.SIGKILL)
        raise ReportFailed("it is gone")


def test_a_session_whose_sail_is_killed_says_how_it_ended() -> None:
    with pytest.raises(SailFailed, match="Sail's process was killed"):
        fail_with_sail()


def stand_still() -> None:
    with sail_or_skip(still_s=2.0) as sail:
        (server,) = servers(os.getpid())
        begun_s = time.monotonic()
        while time.monotonic() < begun_s + 3.0:
            assert sail.session.range(3_000_000).agg(F.sum(F.sqrt("id"))).collect()
        eventually(lambda: server not in servers(os.getpid()), 10)
        sail.session.range(3).count()


def test_a_session_whose_sail_stands_still_ends_and_says_so_but_not_one_whose_sail_works() -> None:
    with pytest.raises(SailFailed, match="Sail stood still"):
        stand_still()


def test_a_session_that_has_ended_leaves_a_later_one_its_threads() -> None:
    with sail_or_skip() as first:
        ended = weakref.ref(first.session)
    with sail_or_skip() as later:
        assert later.session.range(3).count() == 3
        threads = ExecutePlanResponseReattachableIterator._release_thread_pool_instance
        del first
        gc.collect()
        assert ended() is None
        assert ExecutePlanResponseReattachableIterator._release_thread_pool_instance is threads is not None


@pytest.mark.parametrize("choice", EngineChoice)
def test_where_sail_fails_spark_does_the_work_unless_sail_was_asked_for(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], choice: EngineChoice
) -> None:
    assert spark.version  # which runs already, so it is used

    def work(engine: Engine) -> int:
        if isinstance(engine, SailEngine):
            os.kill(servers(os.getpid())[-1], signal.SIGKILL)
            raise ReportFailed("it is gone")
        return engine.session.range(3).where(F.col("id") > 0).count()

    with pytest.raises(SailFailed) if choice is EngineChoice.SAIL else nullcontext():
        assert on_engine(work, name="test", choice=choice, master=None, conf={}, places=[]) == 2
    told = "Spark computes the report instead of Sail: Sail's process was killed, as it is when memory runs out"
    assert (told in capsys.readouterr().err) is (choice is EngineChoice.AUTO)


def test_a_table_is_read_as_it_was_and_with_columns_that_it_lacks(sail: SailEngine, tmp_path: Path) -> None:
    table = Table(str(tmp_path / "table"))
    with pytest.raises(NoTable):
        sail.events(table)
    add_events(table, "a", "b")
    events = sail.events(table)
    add_events(table, "c")
    assert sorted(row["id"] for row in events.collect()) == ["a", "b"]
    assert sail.events(table).where("owner is null").count() == 3
    assert events.dtypes == sail.session.createDataFrame([], EVENT_SCHEMA).select(events.columns).dtypes
    assert sail.quarantine(table).count() == 0
    (tmp_path / "table" / JOURNAL).mkdir()
    with pytest.raises(OldTable):
        sail.events(table)


def test_many_tokens_with_long_values_are_no_reason_to_refuse_a_report(sail: SailEngine) -> None:
    long = F.struct(F.repeat(F.lit("x"), 1_000).alias("text"), F.col("id").alias("number"))
    tokens = sail.session.range(20_000).select("id", long.alias("value"))
    newest = tokens.groupBy("id").agg(F.max_by("value", F.struct("id", "value")).alias("value"))
    assert newest.where(F.col("value.number") == F.col("id")).count() == 20_000


def test_no_join_has_parts_that_could_wait_for_each_other_for_ever(
    sail: SailEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a part is empty DataFusion may never end such a join: apache/datafusion, issue 21625."""
    numbers = sail.session.range(300_000).select((F.col("id") % 1_000).alias("key"), "id")
    numbers.join(numbers.groupBy("key").agg(F.max("id").alias("last")), "key").explain()
    plan = capsys.readouterr().out
    assert "HashJoinExec" in plan
    assert "Partitioned" not in plan


def test_a_filter_on_the_days_of_instants_is_no_reason_to_refuse_a_report(sail: SailEngine, tmp_path: Path) -> None:
    """From the least and the largest instant DataFusion estimated that it keeps more rows than there are."""
    begin_s = int(BEGIN.timestamp()) + 22 * 3_600
    came = F.timestamp_seconds(F.col("id") * 3_600 + begin_s)
    hours = sail.session.range(60).select(came.alias("came"), (came + F.expr("INTERVAL 1 HOUR")).alias("until"))
    spans = sail.written(str(tmp_path / "spans"), hours)
    assert spans.where(F.to_date("until") > F.to_date("came")).count() == 3


def test_what_is_written_is_read_back_also_without_a_row(sail: SailEngine, tmp_path: Path) -> None:
    rows = sail.session.sql("select * from values (1, 'x'), (2, 'y') as rows(number, text)")
    files = sail.files(f"file:{tmp_path}/today")
    files.make_root()
    assert (tmp_path / "today").stat().st_mode & 0o777 == 0o700
    assert sail.written(files.uri("some"), rows).count() == 2
    nothing = sail.written(files.uri("none"), rows.where("number > 2"))
    assert (nothing.count(), nothing.columns) == (0, ["number", "text"])
    files.delete("some")
    assert (files.exists("some"), files.exists("none"), files.exists()) == (False, True, True)


def add_events(table: Table, *ids: str) -> None:
    """Add events with few columns, as a Delta table of another writer has them."""
    columns = {"id": list(ids), "time": [BEGIN] * len(ids), "date": [BEGIN.date()] * len(ids)}
    write_deltalake(f"{table.path}/events", pyarrow.table(columns), mode="append")


@pytest.mark.parametrize(
    ("place", "reached"),
    [("/data/audit-1", True), ("file:///data/audit", True), ("/data/a table", False), ("hdfs://n/data", False)],
)
def test_sail_is_asked_for_directories_of_this_machine_with_plain_names(place: str, reached: bool) -> None:
    assert is_in_reach(place) is reached
