"""A Spark job that reads every token of a ZooKeeper: how many tokens each owner has, and how many are sealed.

    python -m benchmarks.inventory_job localhost:2181 file:/path/to/secret.key

`scenarios/pipeline_tokens.py` runs it; it prints one JSON object.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from rich.console import Console

from kafka_dt.pipeline.session import spark_session
from kafka_dt.pipeline.tokens_source import read_tokens


def main(connect: str, secret_key: str) -> None:
    """Read and count."""
    with spark_session("inventory") as spark:
        tokens = read_tokens(spark, {"zookeeper.connect": connect, "secret.key": secret_key})
        rows = tokens.groupBy("owner").agg(F.count("*").alias("tokens"), F.count_if("sealed").alias("sealed"))
        counted = {row["owner"]: (row["tokens"], row["sealed"]) for row in rows.collect()}
    Console().print_json(json.dumps({"owners": counted, "tokens": sum(tokens for tokens, _ in counted.values())}))


if __name__ == "__main__":
    main(*sys.argv[1:])
