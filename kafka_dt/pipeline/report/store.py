"""Keep the results of analyses in the Parquet output, from which later analyses read them.

    store = Store(SparkEngine(spark), "/reports/parquet")
    store.begin()
    usage = store.keep(ParquetOutput.USAGE, logins_by_place(events))
    rows = store.work("rows", usage.join(...))      # until `clear_work`

A frame that was kept is a plain read of files: it is computed once, takes no memory, and the plan of what is made of
it does not contain its own. (Spark's cache does the first only: plans of a dozen steps grow beyond any memory.)

Source: Spark SQL, "Parquet files"
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from kafka_dt.pipeline.errors import OutputTaken

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.engines import Engine

    WriteAndRead = Callable[[str, DataFrame], DataFrame]
    """`Store.work`: writes a frame under a name, and gives it as it was written."""

_MARK: Final = "_made_by_kafka_dt"
"""Marks the folders beside it as a report's, which may be replaced."""
_WORK: Final = "_work"
"""The folder of temporary results; readers of Parquet ignore names that begin with `_`."""


class ParquetOutput(StrEnum):
    """The Parquet outputs of a report, a folder for each."""

    ACTIVITY = "activity"
    USAGE = "usage"
    TOKENS = "tokens"
    ALIVE = "alive"
    ATTENTION = "attention"
    FINDINGS = "findings"
    BLAST_RADIUS = "blast_radius"
    REACHABLE_LOGINS = "reachable_logins"


class Store:
    """The output of one report, in a directory that a path or URI names."""

    def __init__(self, engine: Engine, root: str) -> None:
        self.engine = engine
        self._files = engine.files(root)
        self.root = self._files.root
        """The URI of the directory."""

    def begin(self) -> None:
        """Delete what an earlier report has left; other things in the directory stay.

        Raises:
            OutputTaken: it has a directory of the name of an output, and no report has made it.
        """
        if not self._files.exists(_MARK):
            if taken := [name.value for name in ParquetOutput if self._files.exists(name)]:
                raise OutputTaken(self.root, taken)
            if not self._files.exists():
                self._files.make_root()
            self._files.write_document(_MARK, {"made_by": "kafka-dt pipeline report"})
        for name in (_WORK, *ParquetOutput):
            self._files.delete(name)

    def keep(self, name: str, frame: DataFrame) -> DataFrame:
        """Write an output, and give it as it was written."""
        return self.engine.written(self._files.uri(name), frame)

    def work(self, name: str, frame: DataFrame) -> DataFrame:
        """Write something that is needed until `clear_work`, and give it as it was written."""
        return self.keep(f"{_WORK}/{name}", frame)

    def clear_work(self) -> None:
        """Delete the temporary results."""
        self._files.delete(_WORK)
