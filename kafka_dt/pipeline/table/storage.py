"""Small files wherever Hadoop has a file system: this machine's, HDFS, an object store.

    storage = Storage(spark, "hdfs://namenode/audit")
    storage.write_document("_checkpoints/files-0a/limits/7.json", {...})    # whole or not at all
    storage.sync("events")                                                # on the disk, where that is this machine's

All names are relative to the root. The calls go to Hadoop's API in the driver's JVM, a fraction of a millisecond each,
so nothing here is for what there are very many of. What rows are in is Delta Lake's or Spark's to write.

Source: org.apache.hadoop.fs.FileSystem; Hadoop, "Filesystem specification"; java.nio.channels.FileLock;
io.delta.storage.HDFSLogStore (what it does on a local disk); fsync(2).
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError, Py4JNetworkError

from kafka_dt.pipeline.errors import TableBroken
from kafka_dt.pipeline.session import umask

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

_LOCAL: Final = "file"
_LOCK: Final = ".lock"
_LOCK_POLL_S: Final = 0.05


class Storage:
    """The files below a root: path or URI of a directory, which may not exist yet."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        context: Any = spark.sparkContext
        self._jvm: Any = context._jvm  # noqa: SLF001 - the only way to Hadoop's file systems
        self._configuration: Any = context._jsc.hadoopConfiguration()  # noqa: SLF001
        path = self._jvm.org.apache.hadoop.fs.Path(root)
        self._files: Any = path.getFileSystem(self._configuration)
        self._root: Any = self._files.makeQualified(path)
        self.root = str(self._root.toString())
        """The URI of the root."""

    @property
    def is_local(self) -> bool:
        """Whether it is a directory of this machine; a mounted one counts as such."""
        return bool(self._files.getScheme() == _LOCAL)

    def uri(self, name: str) -> str:
        """Give the URI of a file or a directory."""
        return f"{self.root}/{name}"

    def exists(self, name: str = "") -> bool:
        """Say whether there is a file or a directory; without a name, the root."""
        return bool(self._files.exists(self._path(name)))

    def names(self, name: str) -> list[str]:
        """Give the names of what is right in a directory, sorted; none if there is no such directory."""
        path = self._path(name)
        if not self._files.exists(path):
            return []
        return sorted(f"{name}/{each.getPath().getName()}" for each in self._files.listStatus(path))

    def make_root(self) -> None:
        """Make the root for its owner alone, or as the session's umask says; one that is there gets the same mode.

        It keeps others out of all that is in it, whatever the umask of executors on other machines.
        """
        self._files.mkdirs(self._root)
        mode = f"{0o777 & ~umask(self._spark):o}"
        self._files.setPermission(self._root, self._jvm.org.apache.hadoop.fs.permission.FsPermission(mode))

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until no other process of this machine has its turn here, and have it; elsewhere begin at once.

        On a disk of this machine a rename replaces a file that is there, so that of two commits one would be lost. The
        JVM holds the lock: it can go on for a moment after Python was killed.
        """
        if not self.is_local:
            yield
            return
        self._files.mkdirs(self._root.getParent())
        file = self._jvm.java.io.RandomAccessFile(f"{self._root.toUri().getPath()}{_LOCK}", "rw")
        try:
            while not self._try_lock(file):
                time.sleep(_LOCK_POLL_S)
            yield
        finally:
            with suppress(Py4JNetworkError):  # the JVM is gone, and its locks with it
                file.close()

    def copy_to(self, name: str, other: Storage, new_name: str) -> None:
        """Copy a file, or a directory with all that is in it, to where there is none yet."""
        copy = self._jvm.org.apache.hadoop.fs.FileUtil.copy
        copy(self._files, self._path(name), other._files, other._path(new_name), False, self._configuration)

    def delete(self, name: str) -> None:
        """Delete a file, or a directory with all that is in it; it is no error if there is none."""
        self._files.delete(self._path(name), True)

    def rename_to(self, other: Storage) -> bool:
        """Give the root the name of another one, which is not there, in the same file system; False if it cannot."""
        return bool(self._files.rename(self._root, other._root))

    def read_document(self, name: str) -> dict[str, Any]:
        """Read a file with a JSON object.

        Raises:
            TableBroken: it is none.
            FileNotFoundError: there is no such file.
        """
        text = self.read_text(name)
        try:
            document = json.loads(text)
        except ValueError as error:
            raise TableBroken(self.uri(name), "it is no JSON") from error
        if not isinstance(document, dict):
            raise TableBroken(self.uri(name), "it is no JSON object")
        return document

    def read_text(self, name: str) -> str:
        """Read a file.

        Raises:
            FileNotFoundError: there is no such file.
        """
        try:
            stream = self._files.open(self._path(name))
        except Py4JJavaError as error:
            if str(error.java_exception.getClass().getSimpleName()) == "FileNotFoundException":
                raise FileNotFoundError(self.uri(name)) from error
            raise
        try:
            return bytes(stream.readAllBytes()).decode(errors="replace")
        finally:
            stream.close()

    def write_document(self, name: str, document: Mapping[str, object]) -> None:
        """Write a new file with a JSON object, so that no reader sees half of it."""
        self.write_text(name, json.dumps(document))

    def write_text(self, name: str, text: str) -> None:
        """Write a new file, as `write_document` does."""
        partial = self._path(f"{name}.partial")
        stream = self._files.create(partial, True)  # one that was left is overwritten
        try:
            stream.write(text.encode())
            stream.hsync()  # Hadoop's local file system only says that it does so: see `sync`
        finally:
            stream.close()
        self._files.rename(partial, self._path(name))

    def sync(self, name: str, since_s: float = 0.0) -> None:
        """See that a file, or a directory with all that is in it, is still there should the machine stop now.

        Args:
            name: what to keep.
            since_s: of a directory, only what has changed since then, in seconds since 1970.
        """
        if not self.is_local:
            return  # what HDFS or an object store has closed is on several machines
        path = Path(self._path(name).toUri().getPath())
        for each in (*path.rglob("*"), path, path.parent):
            with suppress(FileNotFoundError):  # Spark tidies its checkpoint up meanwhile
                if each.stat().st_mtime >= since_s:
                    _sync(each)

    def _try_lock(self, file: Any) -> bool:
        try:
            return file.getChannel().tryLock() is not None
        except Py4JJavaError as error:
            # Another thread of this JVM has it.
            if str(error.java_exception.getClass().getSimpleName()) == "OverlappingFileLockException":
                return False
            raise

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name) if name else self._root


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
