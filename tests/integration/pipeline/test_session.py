"""What a session of Spark is set to, on a real one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from py4j.java_gateway import JVMView
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.session import for_few_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode", "spark.sql.shuffle.partitions")


def test_making_columns_looks_for_no_class_in_the_jars(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = spark.range(3), spark.range(3)
    looked_for = []
    found = JVMView.__getattr__

    def look(jvm: JVMView, name: str) -> Any:
        looked_for.append(name)
        return found(jvm, name)

    monkeypatch.setattr(JVMView, "__getattr__", look)
    rows = one.withColumn("more", F.col("id") + F.lit(1))
    in_order = Window.partitionBy("more").orderBy("id").rowsBetween(-1, 0)
    every = F.transform(F.array("id", "more"), lambda each: -each)
    rows.join(F.broadcast(other), "id").withColumn("sum", F.sum("id").over(in_order)).select(every, F.isnull("id"))
    assert looked_for == []


def test_settings_for_few_rows_end_with_their_block(spark: SparkSession) -> None:
    before = {name: spark.conf.get(name) for name in SETTINGS}
    with for_few_rows(spark):
        assert [spark.conf.get(name) for name in SETTINGS] == ["false", "NO_CODEGEN", "1"]
    assert {name: spark.conf.get(name) for name in SETTINGS} == before
