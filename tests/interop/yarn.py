"""A one-node YARN with Kerberos in a directory of its own, and Spark jobs on it.

    with Yarn(folder, kdc, java, classpath) as yarn:
        output = yarn.run_spark(job, arguments, configuration)

YARN is Hadoop's MiniYARNCluster (hadoop-client-minicluster), Spark is pyspark's own `spark-submit` and jars.

Limits: one job at a time, with one executor of half a gigabyte; files are local, there is no HDFS.

Source: Spark's documentation, "Running on YARN", "Kafka integration: security".
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import pyspark

from tests.interop.kdc import REALM, Kdc
from tests.support.java.jvm import QUICK_START, Java
from tests.support.java.maven import Classpath
from tests.support.java.programs import program
from tests.support.processes.process import ChildProcess
from tests.support.spark.quick_spark import INTERPRETED, QUICK_JVM

SOURCE = Path(__file__).with_name("SecureYarn.java")
PRINCIPAL = "yarn/localhost"
START_TIMEOUT_S = 120.0
JOB_TIMEOUT_S = 300.0

_LOGGING = """\
log4j.rootLogger=WARN, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.SimpleLayout
"""


class JobFailed(Exception):
    """A Spark job ended with an error; the message ends with the last lines it wrote."""


class Yarn:
    """One YARN.

    Args:
        directory: receives all its files.
        kdc: where its services' principal is made.
        java: what runs it, with a compiler.
        classpath: the jars of `tests.support.java.maven.YARN`.
    """

    def __init__(self, directory: Path, kdc: Kdc, java: Java, classpath: Classpath) -> None:
        self._directory = directory
        self._java_home = str(java.executable.resolve().parent.parent)
        self._kerberos = f"-Djava.security.krb5.conf={kdc.krb5_conf}"
        logging = directory / "log4j.properties"
        logging.write_text(_LOGGING)
        command = program(
            java,
            SOURCE,
            [str(directory), f"{PRINCIPAL}@{REALM}", str(kdc.keytab(PRINCIPAL))],
            classpath=classpath,
            heap_mb=512,
            properties={"java.security.krb5.conf": str(kdc.krb5_conf), "log4j.configuration": logging.as_uri()},
        )
        environment = {
            "JAVA_HOME": self._java_home,
            # Its old dependency injection writes classes at run time.
            "JDK_JAVA_OPTIONS": "--add-opens=java.base/java.lang=ALL-UNNAMED",
        }
        self._process = ChildProcess("YARN", command, directory / "yarn.log", environment)

    def run_spark(
        self, job: Path, arguments: Sequence[str], configuration: Mapping[str, str], jars: Classpath = ()
    ) -> str:
        """Run a PySpark program with `spark-submit` in client mode; gives what it wrote, raises JobFailed."""
        conf = {**self._configuration(jars), **configuration}
        options = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
        submit = str(Path(sys.executable).with_name("spark-submit"))
        output = self._directory / "spark.log"
        with output.open("w") as log:
            done = subprocess.run(
                [submit, "--master", "yarn", "--deploy-mode", "client", *options, str(job), *arguments],
                cwd=self._directory,
                env={
                    **os.environ,
                    "HADOOP_CONF_DIR": str(self._directory),
                    "JAVA_HOME": self._java_home,
                    "PYSPARK_PYTHON": sys.executable,
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=JOB_TIMEOUT_S,
                check=False,
            )
        text = output.read_text()
        if done.returncode:
            raise JobFailed(f"status {done.returncode}; {output} ends with:\n{text[-4000:]}")
        return text

    def _configuration(self, jars: Classpath) -> dict[str, str]:
        return {
            "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent}/jars/*",
            "spark.jars": ",".join(map(str, jars)),
            "spark.yarn.stagingDir": (self._directory / "staging").as_uri(),
            **INTERPRETED,
            "spark.driver.extraJavaOptions": f"{self._kerberos} {QUICK_JVM}",
            "spark.yarn.am.extraJavaOptions": f"{self._kerberos} {' '.join(QUICK_START)}",
            "spark.executor.extraJavaOptions": " ".join(QUICK_START),
            "spark.executorEnv.JAVA_HOME": self._java_home,
            "spark.yarn.appMasterEnv.JAVA_HOME": self._java_home,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "512m",
            "spark.yarn.am.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.executor.instances": "1",
            "spark.ui.enabled": "false",
        }

    def __enter__(self) -> Self:
        with self._process.starting() as process:
            process.wait_for("YARN is ready", START_TIMEOUT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()
