"""Files of a table wherever Hadoop has a file system: this machine's, HDFS, an object store.

    storage = Storage(spark, "hdfs://namenode/audit")
    storage.write_document("_journal/a.done", {...})    # whole or not at all
    storage.rename("_staging/part-0", "events/part-0")

All names are relative to the root. The calls go to Hadoop's API in the driver's JVM, a fraction of a millisecond each,
so nothing here is for what there are very many of.

Limits: where renaming copies, as object stores do, it is neither quick nor whole; use HDFS or a shared file system for
tables there. Only a local file system has the lock, and only there `sync` has anything to do: what HDFS has closed is
on several machines.

Source: org.apache.hadoop.fs.FileSystem; Hadoop, "Filesystem specification"; fsync(2).
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError, Py4JNetworkError

from kafka_dt.pipeline.errors import TableBroken, TableInUse
from kafka_dt.pipeline.session import umask

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

LOCK: Final = "_lock"
_LOCAL: Final = "file"
LOCK_WAIT_S: Final = 15.0
"""How long the JVM of a process that was killed may take to notice."""
_LOCK_POLL_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file."""

    name: str
    """Relative to the root of its storage."""
    size: int
    """In bytes."""


class Storage:
    """The files below a root: path or URI of a directory, which may not exist yet."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        context: Any = spark.sparkContext
        self._jvm: Any = context._jvm  # noqa: SLF001 - the only way to Hadoop's file systems
        path = self._jvm.org.apache.hadoop.fs.Path(root)
        self._files: Any = path.getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001
        self._root: Any = self._files.makeQualified(path)
        self.root = str(self._root.toString())
        """The URI of the root."""

    def uri(self, name: str) -> str:
        """Give the URI of a file or a directory."""
        return f"{self.root}/{name}"

    def exists(self, name: str = "") -> bool:
        """Say whether there is a file or a directory; without a name, the root."""
        return bool(self._files.exists(self._path(name)))

    def files(self, name: str) -> list[StoredFile]:
        """Give the files right in a directory, by name; none if there is no such directory."""
        return [StoredFile(f"{name}/{each.getPath().getName()}", each.getLen()) for each in self._list(name, "isFile")]

    def directories(self, name: str) -> list[str]:
        """Give the names of the directories right in a directory; none if there is no such directory."""
        return [f"{name}/{each.getPath().getName()}" for each in self._list(name, "isDirectory")]

    def count(self, name: str) -> int:
        """Count the files below a directory."""
        return int(self._files.getContentSummary(self._path(name)).getFileCount())

    def make_directory(self, name: str) -> None:
        """Make a directory and those above it."""
        self._files.mkdirs(self._path(name))

    def make_root(self) -> None:
        """Make the root for its owner alone, or as the session's umask says; one that is there gets the same mode.

        It keeps others out of all that is in it, whatever the umask of executors on other machines.
        """
        self._files.mkdirs(self._root)
        mode = f"{0o777 & ~umask(self._spark):o}"
        self._files.setPermission(self._root, self._jvm.org.apache.hadoop.fs.permission.FsPermission(mode))

    def rename(self, name: str, new_name: str) -> None:
        """Give a file another name, in one step; it is no error if that has been done already.

        Raises:
            TableBroken: there is a file of neither name, or the file system refuses.
        """
        source, target = self._path(name), self._path(new_name)
        if not self._files.exists(source):
            if not self._files.exists(target):
                raise TableBroken(self.uri(name), "it is gone")
            return
        self._files.mkdirs(target.getParent())
        if not self._files.rename(source, target):
            raise TableBroken(self.uri(name), f"it cannot be renamed to {self.uri(new_name)}")

    def delete(self, name: str) -> None:
        """Delete a file, or a directory with all that is in it; it is no error if there is none."""
        self._files.delete(self._path(name), True)

    def read_document(self, name: str) -> dict[str, Any]:
        """Read a file with a JSON object.

        Raises:
            TableBroken: it is none.
            FileNotFoundError: there is no such file.
        """
        text = self._read(name)
        try:
            document = json.loads(text)
        except ValueError as error:
            raise TableBroken(self.uri(name), "it is no JSON") from error
        if not isinstance(document, dict):
            raise TableBroken(self.uri(name), "it is no JSON object")
        return document

    def write_document(self, name: str, document: Mapping[str, object]) -> None:
        """Write a new file with a JSON object, so that no reader sees half of it, and keep it on the disk."""
        partial = f"{name}.partial"
        stream = self._files.create(self._path(partial), True)  # one that was left is overwritten
        try:
            stream.write(json.dumps(document).encode())
            stream.hsync()
        finally:
            stream.close()
        self.sync(partial)  # Hadoop's local file system only says that it does that
        self.rename(partial, name)
        self.sync(name)

    def sync(self, name: str) -> None:
        """See that a file, or a directory with all that is in it, is still there should the machine stop now."""
        if self._files.getScheme() != _LOCAL:
            return
        path = Path(self._path(name).toUri().getPath())
        for each in (*path.rglob("*"), path, path.parent):
            with suppress(FileNotFoundError):  # Spark tidies its checkpoint up meanwhile
                _sync(each)

    def lock(self) -> TableLock:
        """Keep others from writing, until the lock is released or this process has ended.

        The JVM holds it: it can go on for a moment after Python was killed.

        Raises:
            TableInUse: another one has it.
        """
        if self._files.getScheme() != _LOCAL:
            return TableLock(None)
        self._files.mkdirs(self._root)
        file = self._jvm.java.io.RandomAccessFile(self._path(LOCK).toUri().getPath(), "rw")
        deadline_s = time.monotonic() + LOCK_WAIT_S
        while (held := self._try_lock(file)) is None:
            if time.monotonic() > deadline_s:
                file.close()
                raise TableInUse(self.root)
            time.sleep(_LOCK_POLL_S)
        return TableLock(held)

    def _try_lock(self, file: Any) -> Any:
        try:
            return file.getChannel().tryLock()
        except Py4JJavaError as error:
            # Another thread of this JVM has it.
            if _is(error, "OverlappingFileLockException"):
                return None
            raise

    def _read(self, name: str) -> str:
        try:
            stream = self._files.open(self._path(name))
        except Py4JJavaError as error:
            if _is(error, "FileNotFoundException"):
                raise FileNotFoundError(self.uri(name)) from error
            raise
        try:
            return bytes(stream.readAllBytes()).decode(errors="replace")
        finally:
            stream.close()

    def _list(self, name: str, kind: str) -> list[Any]:
        path = self._path(name)
        if not self._files.exists(path):
            return []
        found = [each for each in self._files.listStatus(path) if getattr(each, kind)()]
        return sorted(found, key=lambda each: str(each.getPath().getName()))

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name) if name else self._root


def _is(error: Py4JJavaError, name: str) -> bool:
    """Say whether it is of a class of Java."""
    return str(error.java_exception.getClass().getSimpleName()) == name


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class TableLock:
    """Keeps others from writing to a table."""

    def __init__(self, held: Any) -> None:
        self._held = held

    def release(self) -> None:
        """Let others write again."""
        held, self._held = self._held, None
        if held is not None:
            with suppress(Py4JNetworkError):  # the JVM is gone, and its locks with it
                held.release()
                held.channel().close()
