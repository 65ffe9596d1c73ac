"""Two ingests write to one table at once, on a real HDFS and on a disk, and are killed again and again."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from kafka_dt.audit.encoding import encode
from kafka_dt.pipeline.errors import NoTable
from kafka_dt.pipeline.table import Table
from tests.integration.pipeline.hdfs import running_hdfs
from tests.interop.conftest import unavailable
from tests.support.java.jvm import Java
from tests.support.java.maven import YARN, ResolutionFailed, resolve
from tests.support.processes.process import ChildProcess
from tests.support.processes.waiting import eventually
from tests.support.spark.audit_lines import events, write_file
from tests.support.spark.quick_spark import QUICK_SPARK, options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILLS: Final = 4
FILES: Final = 8
"""How many each writer gets before it is killed."""
TIMEOUT_S: Final = 180.0
WRITERS: Final = ("left", "right")


@pytest.fixture(params=["hdfs", "disk"])
def root(request: pytest.FixtureRequest, spark_java: Java, tmp_path: Path) -> Iterator[str]:
    """Where the table is made: the URI of an HDFS, or a directory."""
    if request.param == "disk":
        yield str(tmp_path)
        return
    if not spark_java.has_compiler:
        unavailable(f"{spark_java.executable} has no compiler, HDFS is started from source")
    try:
        classpath = resolve(YARN, spark_java)
    except (ResolutionFailed, FileNotFoundError) as failure:
        unavailable(failure)
    (folder := tmp_path / "hdfs").mkdir()
    with running_hdfs(spark_java, classpath, folder) as uri:
        yield uri


def stored_in(spark: SparkSession, table: str) -> int:
    """How many events a table has, if there is one."""
    with suppress(NoTable):
        return Table(table).events(spark).count()
    return 0


def wait_for_more(spark: SparkSession, table: str, before: int) -> None:
    """Wait until a table has more events than before."""
    eventually(lambda: stored_in(spark, table) > before, TIMEOUT_S)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_two_killed_writers_lose_nothing_and_double_nothing(
    spark: SparkSession, spark_java: Java, delta_jars: str, root: str, tmp_path: Path
) -> None:
    files = KILLS * (FILES + 1)
    made = events(2 * files + 1)

    def write(numbers: range) -> None:
        """Write files for both; each event but the first comes by both, or twice by one."""
        for number in numbers:
            for shift, writer in enumerate(WRITERS):
                few = made[2 * number + shift : 2 * number + shift + 2]
                write_file(tmp_path / writer, f"audit-{number}", [*map(encode, few), f"{writer} {number}\n".encode()])

    chance = random.Random(7)  # noqa: S311 - when to kill
    table = f"{root}/audit"
    home = str(spark_java.executable.resolve().parent.parent)

    def started(writer: str, when: str) -> ChildProcess:
        command = [str(Path(sys.executable).with_name("kafka-dt")), "pipeline", "ingest", when, "--output=json"]
        command += ["--table", table, "--from", str(tmp_path / writer), "--compact-at=6"]
        command += ["--master=local[1]", f"--conf=spark.jars={delta_jars}", *options(QUICK_SPARK)]
        return ChildProcess(writer, command, tmp_path / f"{writer}.log", {"JAVA_HOME": home})

    for kill in range(KILLS):
        before = stored_in(spark, table)
        write(range(kill, kill + 1))
        with ExitStack() as stack:
            running = [stack.enter_context(started(writer, "--interval=100ms")) for writer in WRITERS]
            wait_for_more(spark, table, before)
            for number in range(KILLS + kill * FILES, KILLS + (kill + 1) * FILES):
                time.sleep(chance.uniform(0.2, 2.0))
                write(range(number, number + 1))
            for ingest in running:
                assert ingest.pid is not None
                os.kill(ingest.pid, signal.SIGKILL)
                ingest.wait(TIMEOUT_S)
    with ExitStack() as stack:
        running = [stack.enter_context(started(writer, "--once")) for writer in WRITERS]
        for ingest in running:
            assert ingest.wait(TIMEOUT_S) == 0, ingest.output()
            assert json.loads(re.findall(r"^{.*}$", ingest.output(), re.MULTILINE)[-1])["interrupted"] is False
    found = Table(table)
    assert Counter(row.id for row in found.events(spark).collect()) == Counter(each.id for each in made)
    wanted = Counter(f"{writer} {number}" for writer in WRITERS for number in range(files))
    assert Counter(row.raw for row in found.quarantine(spark).collect()) == wanted
