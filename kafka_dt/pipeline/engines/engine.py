"""The interface of an engine: what a report asks of it besides PySpark's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession

    from kafka_dt.pipeline.table import Table


class Files(Protocol):
    """The files below a root, a directory that may not exist yet; names are relative to it."""

    @property
    def root(self) -> str:
        """The URI of the root."""

    def uri(self, name: str) -> str:
        """Give the URI of a file or a directory."""

    def exists(self, name: str = "") -> bool:
        """Say whether there is a file or a directory; without a name, the root."""

    def make_root(self) -> None:
        """Make the root, for its owner alone unless the engine is told otherwise."""

    def write_document(self, name: str, document: Mapping[str, object]) -> None:
        """Write a new file with a JSON object, so that no reader sees half of it."""

    def delete(self, name: str) -> None:
        """Delete a file, or a directory with all that is in it; it is no error if there is none."""


class Engine(Protocol):
    """What runs the queries of a report."""

    @property
    def session(self) -> SparkSession:
        """Where queries begin."""

    @property
    def runs_here(self) -> bool:
        """Whether all that it reads and writes may be on a disk of this machine."""

    def files(self, root: str) -> Files:
        """Give the files below a path or URI."""

    def events(self, table: Table) -> DataFrame:
        """Read the events of a table as they are now.

        Raises:
            NoTable, OldTable: as `Table.events`.
        """

    def quarantine(self, table: Table) -> DataFrame:
        """Read what is in quarantine now.

        Raises:
            NoTable, OldTable: as `Table.quarantine`.
        """

    def written(self, uri: str, frame: DataFrame) -> DataFrame:
        """Write a frame to a directory as Parquet, and give it as it was written."""

    def for_few_rows(self) -> AbstractContextManager[None]:
        """Run the queries of a block as suits a few rows."""
