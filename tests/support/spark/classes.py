"""`python -m tests.support.spark.classes OPTION`: a small ingest and a small query, in a JVM with OPTION.

Source: JEP 350, "Dynamic CDS Archives".
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit.encoding import encode
from kafka_dt.pipeline.session import spark_session
from tests.support.java.jvm import QUICK_START, find_java
from tests.support.java.maven import DELTA, resolve
from tests.support.spark.audit_lines import events, write_file
from tests.support.spark.ingests import Ingests
from tests.support.spark.quick_spark import INTERPRETED


def main(option: str) -> None:
    """Do what most tests do; with `-XX:ArchiveClassesAtExit=FILE` the JVM writes its classes when it ends."""
    java_options = " ".join((*QUICK_START, option))
    conf = {
        **INTERPRETED,
        "spark.jars": ",".join(map(str, resolve(DELTA, find_java()))),
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.extraJavaOptions": java_options,
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        spark_session(
            "classes", master="local[1]", conf={**conf, "spark.sql.warehouse.dir": folder}, delta=True
        ) as spark,
    ):
        _ingest(spark, Path(folder))
        gateway: Any = spark.sparkContext._gateway
    gateway.proc.stdin.close()  # which ends it
    gateway.proc.wait()


def _ingest(spark: SparkSession, folder: Path) -> None:
    ingests = Ingests(spark, folder)
    write_file(ingests.source, "first", [*map(encode, events(3)), b"broken\n"])
    ingests.run()
    made = ingests.table.events(spark)
    newest = F.row_number().over(Window.partitionBy("type").orderBy(F.desc("time")))
    made.withColumn("rank", newest).join(made.groupBy("type").count(), "type", "left").orderBy("id").limit(5).collect()


if __name__ == "__main__":
    main(*sys.argv[1:])
