"""`kafka-dt pipeline ingest` as a process: killed in the middle of its work, ended in order, run again."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from click.testing import CliRunner

from kafka_dt.audit.encoding import encode
from kafka_dt.cli import main
from tests.support.java.jvm import Java
from tests.support.processes.process import ChildProcess
from tests.support.processes.waiting import eventually
from tests.support.spark.audit_lines import DAY_MS, NOON_MS, events, stored, stored_ids, write_file
from tests.support.spark.quick_spark import QUICK_SPARK, options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMEOUT_S: Final = 120.0
SMALL: Final = ("--master=local[1]", *options(QUICK_SPARK | {"spark.sql.shuffle.partitions": "1"}))
KILLED: Final = 128 + signal.SIGKILL
"""The status that the leash of a killed process ends with."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where files come to, with one of three events and a line that is none."""
    folder = tmp_path / "nodes"
    write_file(folder, "first", [*map(encode, events(3)), b"broken\n"])
    return folder


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


@pytest.fixture
def started(
    spark_java: Java, delta_jars: str, tmp_path: Path, folder: Path, table: Path
) -> Callable[..., ChildProcess]:
    """Makes a process of the ingest: the command itself, or one that is killed at a step."""
    home = str(spark_java.executable.resolve().parent.parent)

    def make(*options: str, killed_at: str | None = None) -> ChildProcess:
        program = [str(Path(sys.executable).with_name("kafka-dt")), "pipeline"]
        if killed_at is not None:
            program = [sys.executable, "-m", "tests.integration.pipeline.killed_ingest", killed_at]
        command = [*program, "ingest", "--table", str(table), "--from", str(folder), "--output=json", *SMALL]
        command += [f"--conf=spark.jars={delta_jars}", *options]
        return ChildProcess("ingest", command, tmp_path / "ingest.log", {"JAVA_HOME": home})

    return make


@pytest.mark.soak
@pytest.mark.parametrize(
    ("step", "there"),
    [
        pytest.param("4", 0, id="between the commits of quarantine and events"),
        pytest.param("writing", 0, id="while Spark writes"),
        pytest.param("5", 3, id="before Spark notes that the batch is done"),
    ],
)
def test_a_killed_ingest_goes_on_as_if_nothing_had_been(
    started: Callable[..., ChildProcess], folder: Path, table: Path, step: str, there: int
) -> None:
    with started("--once", killed_at=step) as ingest:
        assert ingest.wait(TIMEOUT_S) == KILLED, ingest.output()
    assert len(stored_ids(table)) == there

    with started("--interval=200ms") as ingest:
        eventually(lambda: len(stored_ids(table)) == 3, TIMEOUT_S)
        write_file(folder, "second", map(encode, events(2, first=3)))
        eventually(lambda: len(stored_ids(table)) == 5, TIMEOUT_S)
        assert ingest.pid is not None
        os.kill(ingest.pid, signal.SIGINT)
        assert ingest.wait(TIMEOUT_S) == 130, ingest.output()
        output = ingest.output()

    assert stored_ids(table) == {each.id: 1 for each in events(5)}
    assert [row["reason"] for row in stored(table, "quarantine")] == ["not_json"]
    result = json.loads(re.findall(r"^{.*}$", output, re.MULTILINE)[-1])
    assert result.items() >= {"events": 5 - there, "duplicates": 0, "interrupted": True}.items()
    assert "Traceback" not in output


def test_strict_ends_with_status_3_and_the_late_line_says_how_to_ingest_an_older_directory(
    spark: SparkSession, folder: Path, table: Path
) -> None:
    assert spark.version  # which runs already, so the command uses it
    command = ["pipeline", "ingest", "--once", "--strict", "--table", str(table), "--from", str(folder)]
    assert CliRunner().invoke(main, [*command, "--late-after", "off"]).exit_code == 3
    write_file(folder, "old", map(encode, events(2, first=3, time_ms=NOON_MS - 30 * DAY_MS)))
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 3
    assert "2 events in quarantine came more than --late-after behind the newest event" in result.stdout
    assert "To ingest an older directory on purpose, add --late-after off." in result.stdout
    assert CliRunner().invoke(main, command).exit_code == 0


def test_a_cluster_id_is_for_files_and_merged_files_stay_for_an_hour_at_least(tmp_path: Path) -> None:
    command = ["pipeline", "ingest", "--table", str(tmp_path)]
    result = CliRunner().invoke(main, [*command, "--from-topic", "audit", "--cluster-id", "east"])
    assert (result.exit_code, "a topic has the id of its Kafka cluster" in result.stderr) == (2, True)
    result = CliRunner().invoke(main, [*command, "--from", str(tmp_path), "--keep-replaced", "59m"])
    assert (result.exit_code, "1h is the least" in result.stderr) == (2, True)
