"""An unmodified structured-streaming job of Spark 4.0 reads and writes through the gateway with a token."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from kafka_dt.client import DelegationToken
from tests.support.gateway import Gateway
from tests.support.java import Java
from tests.support.maven import SPARK_KAFKA, Bundle, Classpath
from tests.support.records_client import ReadBack, RecordsClient

pytestmark = pytest.mark.soak

JOB: Final = Path(__file__).parents[2] / "support" / "spark_stream_job.py"
JOB_TIMEOUT_S: Final = 200.0
COUNT: Final = 1_000


class Spark:
    """Runs the job with `spark-submit` on one thread."""

    def __init__(self, java: Java, jars: Classpath, folder: Path) -> None:
        self._java_home = str(java.executable.resolve().parent.parent)
        self._jars = jars
        self._folder = folder

    def copy(self, source: str, sink: str, options: dict[str, str]) -> None:
        """Copy what is in a topic to another."""
        file = self._folder / "options.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps(options))
        configuration = {
            "spark.jars": ",".join(map(str, self._jars)),
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "512m",
        }
        command = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[1]"]
        command += [part for name, text in configuration.items() for part in ("--conf", f"{name}={text}")]
        command += [str(JOB), str(file), source, sink, str(self._folder / "checkpoints")]
        log = self._folder / "spark.log"
        with log.open("w") as output:
            done = subprocess.run(
                command,
                cwd=self._folder,
                env={**os.environ, "JAVA_HOME": self._java_home, "PYSPARK_PYTHON": sys.executable},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=JOB_TIMEOUT_S,
                check=False,
            )
        assert done.returncode == 0, log.read_text()[-4000:]


@pytest.fixture
def spark(java: Java, classpath_of: Callable[[Bundle], Classpath], tmp_path: Path) -> Spark:
    return Spark(java, classpath_of(SPARK_KAFKA), tmp_path)


def test_a_streaming_job_copies_a_topic(
    gateway: Gateway,
    alice: DelegationToken,
    make_topic: Callable[..., str],
    records: RecordsClient,
    spark: Spark,
) -> None:
    source, sink = make_topic(1, 2), make_topic(2, 1)
    client = gateway.settings(alice, "java")
    records.send(client, source, COUNT)
    spark.copy(source, sink, gateway.settings(alice, "spark"))
    assert records.read(client, sink, COUNT) == ReadBack.of(COUNT, partitions=2)
