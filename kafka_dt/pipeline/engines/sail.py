"""Sail, on this machine: tables and reports are in directories of its disks.

Limits: it knows no type of a column of nulls alone, so that rules name the types of such columns.

Source: Sail, "Delta Lake"; the Delta transaction log protocol, "Delta Log Entries".
"""

from __future__ import annotations

import json
import re
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyarrow.parquet import write_table

from kafka_dt.files import replace_file
from kafka_dt.pipeline.errors import NoTable, OldTable
from kafka_dt.pipeline.local_paths import local_path, means_other
from kafka_dt.pipeline.table.old import JOURNAL
from kafka_dt.pipeline.table.schema import EVENT_SCHEMA, QUARANTINE_SCHEMA, completed
from kafka_dt.pipeline.table.table import EVENTS, QUARANTINE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from kafka_dt.pipeline.table import Table


_PLAIN: Final = re.compile(r"[A-Za-z0-9/._~@+=,-]+")
"""Paths in which it finds Delta tables: where an escape would be needed it finds no commits."""


def is_in_reach(place: str) -> bool:
    """Say whether Sail reads and writes at a path or URI: in directories of this machine with plain names."""
    path = local_path(place)
    return path is not None and not means_other(place) and _PLAIN.fullmatch(str(path.absolute())) is not None


class LocalFiles:
    """Files of this machine, for their owner alone."""

    def __init__(self, root: Path) -> None:
        self._path = root.absolute()
        self.root = f"file:{self._path}"

    def uri(self, name: str) -> str:
        """Give the path of a file or a directory, which needs no escapes."""
        return str(self._path / name)

    def exists(self, name: str = "") -> bool:
        """Say whether there is a file or a directory; without a name, the root."""
        return (self._path / name).exists()

    def make_root(self) -> None:
        """Make the root for its owner alone."""
        _make_private(self._path)

    def write_document(self, name: str, document: Mapping[str, object]) -> None:
        """Write a new file with a JSON object, so that no reader sees half of it."""
        replace_file(self._path / name, json.dumps(document))

    def delete(self, name: str) -> None:
        """Delete a file, or a directory with all that is in it; it is no error if there is none."""
        path = self._path / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


class SailEngine:
    """Sail as an `Engine`."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.runs_here = True

    def files(self, root: str) -> LocalFiles:
        """Give the files below a path, or a URI of this machine."""
        return LocalFiles(_path(root))

    def events(self, table: Table) -> DataFrame:
        """Read the events of a table as they are now."""
        return self._read(table, EVENTS, EVENT_SCHEMA)

    def quarantine(self, table: Table) -> DataFrame:
        """Read what is in quarantine now."""
        return self._read(table, QUARANTINE, QUARANTINE_SCHEMA)

    def written(self, uri: str, frame: DataFrame) -> DataFrame:
        """Write a frame to a directory as Parquet, and give it as it was written."""
        frame.write.mode("overwrite").parquet(uri)
        folder = Path(uri)
        if not any(folder.glob("*.parquet")):  # it writes no file if there is no row
            _make_private(folder)
            (folder / "part-0.parquet").touch(mode=0o600)
            write_table(frame.limit(0).toArrow(), folder / "part-0.parquet")
        # The files know better than the plan whether a number is long.
        return self.session.read.parquet(uri)

    def for_few_rows(self) -> AbstractContextManager[None]:
        """Do nothing: it is quick with few rows as it is."""
        return nullcontext()

    def _read(self, table: Table, name: str, schema: StructType) -> DataFrame:
        root = _path(table.path)
        if (root / JOURNAL).exists():
            raise OldTable(table.path)
        if _version(root / EVENTS) is None:
            raise NoTable(table.path)
        path = root / name
        if (version := _version(path)) is None:
            return self.session.createDataFrame([], schema)
        reader = self.session.read.format("delta").option("versionAsOf", version)
        return completed(reader.load(str(path)), schema)


def _make_private(folder: Path) -> None:
    """Make a directory, and those above it that are missing, for their owner alone."""
    for each in reversed([folder, *folder.parents]):
        each.mkdir(mode=0o700, exist_ok=True)


def _path(uri: str) -> Path:
    """Give the path of a path or a URI of this machine."""
    path = local_path(uri)
    if path is None:
        raise NoTable(uri)
    return path


def _version(table: Path) -> int | None:
    """Find the newest version of a Delta table; None if there is none."""
    try:
        names = [each.stem for each in (table / "_delta_log").iterdir() if each.suffix == ".json"]
    except FileNotFoundError:
        return None
    return max((int(each) for each in names if each.isdigit()), default=None)
