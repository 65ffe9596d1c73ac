"""A standalone Spark cluster: a master and a worker as processes, started from pyspark's own jars.

    with SparkCluster(java, jars, folder) as cluster:
        cluster.master                   # "spark://127.0.0.1:41237"
        cluster.submit(program, "ingest", "--table", ...)
        cluster.executors()              # the folders of executors that the worker has started

Executors are processes that the worker starts: what they know of the driver's code is what the driver sends them.

Source: Spark, "Standalone Mode".
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Final, Self

import pyspark

from tests.support.java.jvm import Java
from tests.support.processes.process import ChildProcess
from tests.support.spark.quick_spark import INTERPRETED, QUICK_JVM

START_TIMEOUT_S: Final = 120.0
SUBMIT_TIMEOUT_S: Final = 240.0
_HOST: Final = "127.0.0.1"


class SparkCluster:
    """One master, one worker with one core.

    Args:
        java: what runs them.
        jars: of Delta Lake, as `spark.jars` takes them.
        folder: receives logs and the work of the executors.
    """

    def __init__(self, java: Java, jars: str, folder: Path) -> None:
        self.folder = folder
        self._jars = jars
        self.master = ""
        package = Path(pyspark.__file__).parent
        self._class = str(package / "bin" / "spark-class")
        self._environment = {
            "JAVA_HOME": str(java.executable.resolve().parent.parent),
            "SPARK_HOME": str(package),
            "SPARK_LOCAL_IP": _HOST,
            "SPARK_DAEMON_MEMORY": "128m",
            "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM,
            "PYSPARK_PYTHON": sys.executable,
        }
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            arguments = ("--host", _HOST, "--port", "0", "--webui-port", "0")
            master = stack.enter_context(self._daemon("master", "deploy.master.Master", *arguments))
            self.master = master.wait_for(r"Starting Spark master at (spark://\S+)", START_TIMEOUT_S)[1]
            size = ("--cores", "1", "--memory", "640m", "--work-dir", str(self.folder / "work"))
            worker = stack.enter_context(self._daemon("worker", "deploy.worker.Worker", *arguments, *size, self.master))
            worker.wait_for("Successfully registered with master", START_TIMEOUT_S)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def submit(self, program: Path, *arguments: str) -> str:
        """Run a program with `spark-submit` to its end; gives what it wrote to its standard output."""
        configuration = {
            **INTERPRETED,
            "spark.driver.host": _HOST,
            "spark.driver.bindAddress": _HOST,
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": QUICK_JVM,
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": QUICK_JVM,
            "spark.ui.enabled": "false",
            "spark.jars": self._jars,
            "spark.sql.shuffle.partitions": "1",
        }
        options = [part for name, value in configuration.items() for part in ("--conf", f"{name}={value}")]
        command = [self._class, "org.apache.spark.deploy.SparkSubmit", "--master", self.master, *options]
        done = subprocess.run(
            [*command, str(program), *arguments],
            cwd=self.folder,
            env={**os.environ, **self._environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SUBMIT_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
        return done.stdout

    def executors(self) -> list[Path]:
        """The folders of all executors there were."""
        return sorted((self.folder / "work").glob("app-*/*/"))

    def _daemon(self, name: str, main: str, *arguments: str) -> ChildProcess:
        command = [self._class, f"org.apache.spark.{main}", *arguments]
        return ChildProcess(name, command, self.folder / f"{name}.log", self._environment)
