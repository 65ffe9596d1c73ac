"""What a node counts and measures: each metric declared once, and the memory that the workers write the numbers to.

Read `counts.py` and `gauges.py` first: the two tables; `node.py` has the few metrics of a node as a whole.
`declaration.py` says what a row holds. `memory.py` is the memory of a node, which its workers write and the process of
`kafka_dt/monitoring/` reads. Code that counts is given a `Counts`:

    counts.logins.add("PLAIN", "ok")
    counts.request_seconds.observe(0.002, ApiKey.METADATA)

Nothing here knows Prometheus, HTTP or the parts of a node.
"""

from kafka_dt.metrics.counts import Counts
from kafka_dt.metrics.gauges import Gauges
from kafka_dt.metrics.memory import MetricsMemory, WorkerPhase

__all__ = ["Counts", "Gauges", "MetricsMemory", "WorkerPhase"]
