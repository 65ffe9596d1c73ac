"""A program for `spark-submit`: says where the executors of a session of the pipeline have the package from."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from kafka_dt.pipeline.session import spark_session


def main() -> None:
    """Ask one executor."""

    def asked(_number: int) -> dict[str, str]:
        import kafka_dt.bulk.engine  # noqa: PLC0415 - looked for where it runs

        return {"folder": str(Path.cwd()), "file": str(kafka_dt.bulk.engine.__file__)}

    with spark_session("asking") as spark:
        (found,) = spark.sparkContext.parallelize([0], 1).map(asked).collect()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
