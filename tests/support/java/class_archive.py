"""Archives of classes: one JVM reads and checks the classes of a program, the next ones take them from a file.

    file = archive_file("zookeeper", java, jars)
    write_archive(file, run)            # once for a Java and its jars; `run(option)` returns when the JVM has ended
    command = [java, *using(file), ...]

A JVM that cannot use the file, or finds none, goes on without it.

Source: JEP 350, "Dynamic CDS Archives".
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from tests.support.java.maven import cache_directory

WRITING_TIMEOUT_S: Final = 120.0
"""How long a server may take to write its classes when it ends."""


def archive_file(name: str, java: Path, jars: Iterable[Path]) -> Path:
    """Where the classes of a program are, or would be: another Java, or other jars, have another file."""
    known_by = [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in (java.resolve(), *jars)]
    return archive_folder() / f"{name}-{hashlib.sha256(repr(known_by).encode()).hexdigest()[:16]}.jsa"


def archive_folder() -> Path:
    """The folder of all archives, beside that of the jars."""
    return cache_directory().with_name("classes")


def using(file: Path) -> tuple[str, ...]:
    """The options of a JVM that takes its classes from a file; else it would complain on its standard output."""
    return f"-XX:SharedArchiveFile={file}", "-Xlog:disable", "-Xlog:all=error:stderr"


def write_archive(file: Path, run: Callable[[str], None]) -> None:
    """Let a JVM write its classes, unless one has done it before.

    Args:
        file: where they go; several processes may write it at the same time.
        run: starts a JVM with the option that it is given, and returns when the JVM has ended.
    """
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        written = Path(folder) / file.name
        run(f"-XX:ArchiveClassesAtExit={written}")
        # A Java that cannot write archives leaves an empty file, so that it is not asked again.
        written.touch()
        written.replace(file)
