"""Fixtures of the tests on a real Spark: one session in this process, which all of them share.

Where there is no Java they are skipped; with CI in the environment that is a failure. Data is tiny, and two shuffle
partitions are enough for it: what a test costs is Spark's overhead of each job, so jobs are counted here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka_dt.pipeline.session import spark_session
from tests.interop.conftest import unavailable
from tests.support.java.jvm import Java, JavaMissing, find_java
from tests.support.java.maven import DELTA, ResolutionFailed, resolve
from tests.support.spark.quick_spark import QUICK_SPARK, keep_classes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMEOUT_S = 900
"""One run of Spark tells all stories of a module, beside other tests on two cores."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.spark)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(TIMEOUT_S))
            # pyspark leaves the sockets that results come by to the garbage collector.
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.fixture(scope="session")
def spark_java() -> Java:
    """A Java that runs Spark, with Spark's classes at hand."""
    try:
        java = find_java()
    except JavaMissing as missing:
        unavailable(missing)
    keep_classes(java)
    return java


@pytest.fixture(scope="session")
def delta_jars(spark_java: Java) -> str:
    """The jars of Delta Lake, as `spark.jars` takes them."""
    try:
        return ",".join(map(str, resolve(DELTA, spark_java)))
    except (ResolutionFailed, FileNotFoundError) as failure:
        unavailable(failure)


@pytest.fixture(scope="session")
def spark(spark_java: Java, delta_jars: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A Spark on two threads, as the commands start it; what it keeps is below the run's temporary folder."""
    os.environ.setdefault("JAVA_HOME", str(spark_java.executable.resolve().parent.parent))
    folder = tmp_path_factory.mktemp("spark")
    conf = {
        **QUICK_SPARK,
        "spark.driver.memory": "768m",
        "spark.jars": delta_jars,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
    }
    with spark_session("tests", master="local[2]", conf=conf, delta=True) as session:
        yield session
