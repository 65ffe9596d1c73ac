"""A program for `spark-submit`: reads the tokens of a ZooKeeper, and seals again what an older key has sealed.

It says, too, where the executors have the package from.

Arguments: `server.properties` of a node, a folder for Spark's event log.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from kafka_dt.config import read_properties
from kafka_dt.pipeline.bulk.job import JobKind
from kafka_dt.pipeline.bulk.jobs import run_bulk
from kafka_dt.pipeline.session import spark_session
from kafka_dt.pipeline.tokens_source import read_tokens


def main(configuration: str, events: str) -> None:
    """Do it, and say what was found and done."""
    settings = read_properties(Path(configuration))
    log = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": Path(events).as_uri(),
        "spark.eventLog.compress": "false",
    }
    with spark_session("tokens", conf=log) as spark:
        rows = read_tokens(spark, settings).select("token_id", "sealed_by").collect()
        rotated = run_bulk(spark, JobKind.ROTATE, settings)
        (code,) = spark.sparkContext.parallelize([0], 1).mapPartitions(whose_code).collect()
    found = {
        "sealed_by": {row.token_id: row.sealed_by for row in rows},
        "rotated": {outcome.value: count for outcome, count in rotated.summary.counts.items()},
        "code": code,
    }
    sys.stdout.write(json.dumps(found) + "\n")


def whose_code(_numbers: Iterable[int]) -> list[dict[str, str]]:
    """Say where an executor works, and where it has the package from."""
    import kafka_dt.bulk.engine  # noqa: PLC0415 - looked for where it runs

    return [{"folder": str(Path.cwd()), "file": str(kafka_dt.bulk.engine.__file__)}]


if __name__ == "__main__":
    main(*sys.argv[1:])
