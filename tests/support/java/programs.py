"""Java programs of this tree: compiled once for a Java and its jars, and kept beside the archives of classes.

    command = program(java, Path("ToolRunner.java"), classpath=jars)

Limits: a program of one file is in no package.
Source: the main class of the module jdk.compiler, which is `javac`.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.support.java.class_archive import archive_folder
from tests.support.java.jvm import QUICK_START, Java
from tests.support.java.maven import Classpath

COMPILER: Final = "jdk.compiler/com.sun.tools.javac.Main"


class CompilationFailed(Exception):
    """The compiler's words."""


def program(
    java: Java,
    source: Path,
    arguments: Iterable[str] = (),
    *,
    classpath: Classpath,
    heap_mb: int = 128,
    properties: Mapping[str, str] | None = None,
) -> list[str]:
    """Give the command line of a program of one file; raises CompilationFailed."""
    jars = (*classpath, compiled(source.stem, [source], java, classpath))
    return java.command(source.stem, arguments, classpath=jars, heap_mb=heap_mb, properties=properties)


def compiled(
    name: str, sources: Sequence[Path], java: Java, classpath: Classpath = (), options: Sequence[str] = ()
) -> Path:
    """Compile a program, unless that has been done; gives the folder of its classes.

    Args:
        name: of the program.
        sources: its files.
        java: what compiles it.
        classpath: the jars that it needs.
        options: further ones of the compiler.

    Raises:
        CompilationFailed: there is no compiler, or it refuses the program.
    """
    known_by = [str(each) for each in (java.executable.resolve(), java.version, *classpath, *options)]
    digest = hashlib.sha256(repr([*known_by, *(source.read_bytes() for source in sources)]).encode())
    folder = archive_folder() / f"{name}-{digest.hexdigest()[:16]}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            made = Path(scratch) / "classes"
            arguments = ("-d", made, *(("-cp", ":".join(map(str, classpath))) if classpath else ()), *options, *sources)
            command = [str(java.executable), *QUICK_START, "--module", COMPILER, *map(str, arguments)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise CompilationFailed(f"{name}: {done.stderr}")
            with suppress(OSError):  # another process was quicker
                made.rename(folder)
    return folder
