"""The table of audit events: where it keeps what, and how it is read.

    from kafka_dt.pipeline.table import Table

Read `table.py` first, then `schema.py`. `delta.py` is one Delta table, `storage.py` reaches small files on any file
system of Hadoop's; `old.py` reads tables of earlier releases.
"""

from kafka_dt.pipeline.table.table import Table

__all__ = ["Table"]
