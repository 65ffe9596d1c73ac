"""Tables of kafka-dt 0.1: Parquet files, and a journal that says which of them count.

    old = OldFiles(Table("/data/audit").storage(spark))
    old.rows(spark, "events", EVENT_SCHEMA)       # what its readers saw
    old.done()                                    # {"files-0a-...": 7}, the last batch of each series

    events/date=2026-01-31/*.parquet, quarantine/*.parquet
    _journal/SERIES.NUMBER.prepared      a change that does not count yet: the files in `adds` are to be left out
    _journal/SERIES.NUMBER.done          one that counts: the files in `removes` are to be left out, if still there
    _journal/SERIES.NUMBER.cleared       one whose replaced files are gone

A series is a checkpoint with its id, or `compaction`. Only `kafka_dt/pipeline/conversion.py` uses this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from kafka_dt.pipeline.errors import TableBroken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from kafka_dt.pipeline.table.storage import Storage

JOURNAL: Final = "_journal"
_PREPARED: Final = "prepared"
_DONE: Final = "done"
_CLEARED: Final = "cleared"


class OldFiles:
    """The files of one old table, which no ingest changes."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def rows(self, spark: SparkSession, name: str, schema: StructType) -> DataFrame:
        """Read the rows of `events` or of `quarantine`; columns that they lack are null.

        A table into which no such row ever came has no directory for them.
        """
        if not self._storage.exists(name):
            return spark.createDataFrame([], schema)
        hidden = sorted(each.rpartition("/")[2] for each in self._hidden() if each.startswith(f"{name}/"))
        rows = spark.read.schema(schema).parquet(self._storage.uri(name))
        return rows.where(~F.col("_metadata.file_name").isin(hidden)) if hidden else rows

    def done(self) -> dict[str, int]:
        """Give the last number of each series whose change counts."""
        last: dict[str, int] = {}
        for state in (_DONE, _CLEARED):
            for name in self._entries(state):
                series, _, number = name.partition(".")
                last[series] = max(int(number), last.get(series, -1))
        return last

    def _hidden(self) -> set[str]:
        added = {place for entry in self._changes(_PREPARED) for _, place in entry["adds"]}
        return added.union(*(entry["removes"] for entry in self._changes(_DONE)))

    def _changes(self, state: str) -> Iterator[dict[str, Any]]:
        for name in self._entries(state):
            file = f"{JOURNAL}/{name}.{state}"
            document = self._storage.read_document(file)
            if not document.keys() >= {"adds", "removes"}:
                raise TableBroken(self._storage.uri(file), "it is no entry of the journal")
            yield document

    def _entries(self, state: str) -> list[str]:
        names = (each.removeprefix(f"{JOURNAL}/") for each in self._storage.names(JOURNAL))
        return [each.removesuffix(f".{state}") for each in names if each.endswith(f".{state}")]
