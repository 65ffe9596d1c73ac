"""The ingest: audit events from files or a topic into the table, each exactly once.

    counts = Ingest(spark, Table("/data/audit"), FileSource("/var/log/kafka-dt/audit"), now_ms=now_ms).run()

Read `ingest.py` first: the stream. `batches.py` does one batch of it, `lines.py` says what is an event, `sources.py`
where lines come from.
"""

from kafka_dt.pipeline.ingest.ingest import Ingest
from kafka_dt.pipeline.ingest.rules import Counts, Rules
from kafka_dt.pipeline.ingest.sources import FileSource, LineSource, TopicSource

__all__ = ["Counts", "FileSource", "Ingest", "LineSource", "Rules", "TopicSource"]
