"""A Spark job that knows nothing of tokens: writes ten records to a topic and reads them back.

Arguments: the broker, the topic. Everything about logins comes from the configuration that `spark-submit` is given.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession


def main(broker: str, topic: str) -> None:
    """Write, read, and say what was read."""
    spark = SparkSession.builder.appName("ten records").getOrCreate()
    rows = spark.range(10).selectExpr("cast(id as string) as key", "concat('value-', id) as value")
    rows.write.format("kafka").option("kafka.bootstrap.servers", broker).option("topic", topic).save()
    records = spark.read.format("kafka").option("kafka.bootstrap.servers", broker).option("subscribe", topic).load()
    values = sorted(row.value.decode() for row in records.select("value").collect())
    sys.stdout.write(f"read back: {' '.join(values)}\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
