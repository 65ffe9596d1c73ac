"""PySpark programs with `spark-submit` on this machine, to their end or until they are stopped; also the manual's.

    spark = SparkSubmit(java, jars, folder)
    output = spark.run(program, arguments, configuration)
    with spark.running(program, arguments, configuration, master=CLUSTER) as job:
        job.wait_for("ready", timeout_s=30)

    submitted = documented(block)                 # a spark-submit command, taken apart
    spark.write(program_of("docs/spark.md", "job.py"))

Everything that Spark writes is below the folder: logs of driver and executors, checkpoints, the event log, plain.

Source: Spark's documentation, "Submitting applications"; org.apache.spark.deploy.LocalSparkCluster.
"""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyspark

from tests.support.docs.documents import Block, blocks
from tests.support.java.jvm import Java
from tests.support.java.maven import Classpath
from tests.support.processes.process import ChildProcess
from tests.support.spark.quick_spark import INTERPRETED, QUICK_JVM

LOCAL: Final = "local[1]"
CLUSTER: Final = "local-cluster[1,1,512]"
"""A standalone cluster: master and worker are threads of the driver, the one executor is a process of its own."""
RUN_TIMEOUT_S: Final = 200.0

_SETTINGS_OF: Final = {"--principal": "spark.kerberos.principal", "--keytab": "spark.kerberos.keytab"}


class JobFailed(Exception):
    """A program ended with an error; the message ends with the last lines it wrote."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """A `spark-submit` command."""

    configuration: dict[str, str]
    program: str
    arguments: list[str]


def documented(block: Block) -> Submitted:
    """Take apart the one command of a shell block; `--master` and `--packages` are the test's business."""
    words = shlex.split(block.text.replace("\\\n", " "))
    assert words.pop(0) == "spark-submit", block
    configuration = {}
    while words[0].startswith("--"):
        option, value = words.pop(0), words.pop(0)
        if option == "--conf":
            key, _, value = value.partition("=")
            configuration[key] = value
        elif option in _SETTINGS_OF:
            configuration[_SETTINGS_OF[option]] = value
    return Submitted(configuration, words[0], words[1:])


def program_of(document: str, name: str) -> Block:
    """The Python program of a page whose docstring begins with its file's name."""
    (found,) = (block for block in blocks(document, "python") if block.text.startswith(f'"""{name} '))
    return found


class SparkSubmit:
    """Runs programs.

    Args:
        java: what runs Spark.
        jars: of the Kafka source and sink.
        folder: receives everything that is written.
    """

    def __init__(self, java: Java, jars: Classpath, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._environment = {
            "JAVA_HOME": str(java.executable.resolve().parent.parent),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(_home(folder / "spark-home")),
            # Executors too live for seconds.
            "JDK_JAVA_OPTIONS": QUICK_JVM,
        }
        (folder / "events").mkdir()
        self._configuration = {
            "spark.jars": ",".join(map(str, jars)),
            "spark.ui.enabled": "false",
            **INTERPRETED,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": (folder / "events").as_uri(),
        }

    def write(self, program: Block, name: str) -> Path:
        """Put a program of the manual into a file."""
        file = self.folder / name
        file.write_text(program.text)
        return file

    def run(
        self,
        program: Path,
        arguments: Sequence[str] = (),
        configuration: Mapping[str, str] | None = None,
        *,
        master: str = LOCAL,
        before: Sequence[str] = (),
    ) -> str:
        """Run a program to its end; gives what it wrote, raises JobFailed."""
        with self.running(program, arguments, configuration, master=master, before=before) as job:
            try:
                status = job.wait(RUN_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                raise JobFailed(str(job.failure(f"has not ended within {RUN_TIMEOUT_S:g} s"))) from None
            if status:
                raise JobFailed(str(job.failure(f"ended with status {status}")))
            return job.output()

    @contextlib.contextmanager
    def running(
        self,
        program: Path,
        arguments: Sequence[str] = (),
        configuration: Mapping[str, str] | None = None,
        *,
        master: str = LOCAL,
        before: Sequence[str] = (),
    ) -> Iterator[ChildProcess]:
        """Start a program; it is stopped at the end of the block.

        `before`: the words of a command that is given the command of `spark-submit`, and runs it.
        """
        conf = {**self._configuration, **(configuration or {})}
        options = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
        submit = str(Path(sys.executable).with_name("spark-submit"))
        command = [*before, submit, "--master", master, *options, str(program), *arguments]
        log = self.folder / "spark.log"
        with ChildProcess("spark-submit", command, log, self._environment, self.folder) as job:
            yield job

    def written(self) -> Iterator[tuple[Path, bytes]]:
        """Every file below the folder, and what is in it; the jars are not."""
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and path.suffix != ".jar":
                yield path, path.read_bytes()


def _home(folder: Path) -> Path:
    """A SPARK_HOME of its own: a worker writes into it."""
    folder.mkdir()
    package = Path(pyspark.__file__).parent
    for name in ("bin", "jars", "python"):
        (folder / name).symlink_to(package / name)
    return folder
