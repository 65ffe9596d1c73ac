"""A structured-streaming job that knows nothing of tokens: copies what comes into one topic to another, for ever.

Arguments: the brokers, the topic to read, the topic to write, a folder for checkpoints. Everything about logins comes
from the configuration that `spark-submit` is given, and from whoever has started Spark before.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession


def main(brokers: str, source: str, sink: str, checkpoints: str) -> None:
    """Copy until somebody stops it."""
    spark = SparkSession.builder.appName("copy").getOrCreate()
    kafka = {"kafka.bootstrap.servers": brokers}
    records = (
        spark.readStream.format("kafka")
        .options(**kafka, subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger="300")
        .load()
    )
    copied = records.select("key", "value", "partition").writeStream.format("kafka").options(**kafka, topic=sink)
    copied.option("checkpointLocation", checkpoints).trigger(processingTime="300 milliseconds").start()
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
