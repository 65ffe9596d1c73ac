"""What `spark-submit` runs: the commands of `kafka-dt pipeline`.

    spark-submit --master yarn "$(kafka-dt pipeline script)" ingest --table hdfs:///audit --from hdfs:///audit-log

The interpreter that it runs with has kafka-dt installed.

Source: Spark 4.0, "Submitting Applications".
"""

from __future__ import annotations

from kafka_dt.cli.pipeline import pipeline

if __name__ == "__main__":
    pipeline(prog_name="kafka-dt pipeline")
