"""What computes a report: Spark, or Sail on one machine. Both take the same queries, as PySpark makes them.

    with sail_session() as session:
        report(SailEngine(session), Table("/data/audit"), ...)

Read `engine.py` first, the interface of both; then `spark.py` and `sail.py`. `sail_session.py` starts Sail in a process
of its own, which runs `sail_server.py`.
"""

from kafka_dt.pipeline.engines.engine import Engine, Files
from kafka_dt.pipeline.engines.sail import SailEngine, is_in_reach
from kafka_dt.pipeline.engines.sail_session import sail_session
from kafka_dt.pipeline.engines.spark import SparkEngine

__all__ = ["Engine", "Files", "SailEngine", "SparkEngine", "is_in_reach", "sail_session"]
