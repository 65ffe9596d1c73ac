"""A structured-streaming job: copies what is in one topic to another and ends.

Arguments: a file with the options of source and sink as JSON, the topic to read, the topic to write, a folder for
checkpoints.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def main(options: Path, source: str, sink: str, checkpoints: str) -> None:
    """Copy once and stop."""
    spark = SparkSession.builder.appName("copy").getOrCreate()
    kafka = json.loads(options.read_text())
    records = (
        spark.readStream.format("kafka")
        .options(**kafka, subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger="300")
        .load()
    )
    copied = records.select("key", "value", "partition").writeStream.format("kafka").options(**kafka, topic=sink)
    copied.option("checkpointLocation", checkpoints).trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
