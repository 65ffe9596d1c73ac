"""Ctrl-C in the commands on Spark: one line and status 130 at any moment; and no JVM outlives its command."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from kafka_dt.audit.encoding import encode
from kafka_dt.pipeline.report.signs import SIGNS
from tests.support.java.jvm import Java
from tests.support.processes.waiting import eventually
from tests.support.spark.audit_lines import events, write_file
from tests.support.spark.ingests import Ingests
from tests.support.spark.quick_spark import QUICK_SPARK, options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMEOUT_S: Final = 120.0
SMALL: Final = ("--master=local[1]", *options(QUICK_SPARK | {"spark.sql.shuffle.partitions": "1"}))
LINE: Final = "Error: interrupted; the table is as it was; run it again to make the report"


class Report:
    """A `kafka-dt pipeline report` in a session of its own, as in a terminal."""

    def __init__(self, command: list[str], folder: Path, java_home: str) -> None:
        self.to = folder / "report"
        self._log = folder / "report.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--to", str(self.to)],
                env={**os.environ, "JAVA_HOME": java_home},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=folder,
            )

    def commands(self) -> list[str]:
        """The command lines of the processes of its session that are alive."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                state, _parent, _group, session = stat.read_text().rpartition(") ")[2].split()[:4]
                command = stat.with_name("cmdline").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(session) == self.process.pid and state != "Z":
                found.append(command)
        return found

    def starts_spark(self) -> bool:
        """Whether there is a JVM that Spark starts in."""
        return any("SparkSubmit" in command for command in self.commands())

    def looks_for_signs(self) -> bool:
        """Whether a sign has written something."""
        return any((self.to / "parquet" / "_work" / sign.kind).exists() for sign in SIGNS)

    def wait_for(self, moment: Callable[[Report], bool]) -> None:
        eventually(lambda: moment(self) or self.process.poll() is not None, TIMEOUT_S)
        assert self.process.poll() is None, self.output()

    def output(self) -> str:
        return self._log.read_text()


@pytest.fixture
def report(spark: SparkSession, spark_java: Java, delta_jars: str, tmp_path: Path) -> Iterator[Report]:
    """One that has just begun, of a small table; it heeds Ctrl-C also where a script runs these tests."""
    ingests = Ingests(spark, tmp_path)
    write_file(ingests.source, "first", map(encode, events(9)))
    ingests.run()
    program = str(Path(sys.executable).with_name("kafka-dt"))
    command = [program, "pipeline", "report", "--table", ingests.table.path, *SMALL, f"--conf=spark.jars={delta_jars}"]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    report = Report(command, tmp_path, str(spark_java.executable.resolve().parent.parent))
    signal.signal(signal.SIGINT, before)
    yield report
    if report.process.poll() is None:
        os.killpg(report.process.pid, signal.SIGKILL)
        report.process.wait()


@pytest.mark.parametrize("moment", [Report.starts_spark, pytest.param(Report.looks_for_signs, marks=pytest.mark.soak)])
def test_ctrl_c_is_one_line_and_status_130(report: Report, moment: Callable[[Report], bool]) -> None:
    report.wait_for(moment)
    os.killpg(report.process.pid, signal.SIGINT)
    assert report.process.wait(TIMEOUT_S) == 130, report.output()
    eventually(lambda: not report.commands(), TIMEOUT_S)
    *progress, last = report.output().splitlines()
    assert last == LINE
    assert all(re.fullmatch(r"[A-Z][a-z]+( [a-z]+)+", line) for line in progress), report.output()


def test_the_jvm_of_a_command_that_is_killed_ends(report: Report) -> None:
    report.wait_for(Report.starts_spark)
    report.process.kill()
    report.process.wait()
    eventually(lambda: not report.commands(), TIMEOUT_S)
