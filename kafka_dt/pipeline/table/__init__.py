"""The table of audit events: where it keeps what, and how it is read.

    from kafka_dt.pipeline.table import Table

Read `table.py` first, then `schema.py`. `journal.py` changes the files of a table as a whole, `storage.py` reaches them
on any file system of Hadoop's, `parquet.py` writes and merges them.
"""

from kafka_dt.pipeline.table.table import Table

__all__ = ["Table"]
