"""A wall clock that a test moves under a running program; its other clocks and its sleeps stay as they are.

    clock = WallClock(folder)                     # raises NoCompiler
    with Node(..., environment=clock.environment) as node:
        clock.move(2_400)                         # the node's wall clock is 40 minutes ahead, from now on
        clock.move(0)

The dynamic linker loads a library of ours into the program and into the programs that it starts. libfaketime does more,
and too much: with it Python's time.sleep() fails with EINVAL now and then. Limits: Linux with a C compiler; a program
that asks libc for the time, which Java and static programs do not always do.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_suffix(".c")
_OFF_S = struct.Struct("=q")


class NoCompiler(Exception):
    """There is no C compiler to make the library with."""


class WallClock:
    """The wall clock of one program; at first it is right.

    Args:
        folder: receives the library and the file that says how far the clock is off.
    """

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which(os.environ.get("CC", "cc"))
        if compiler is None:
            raise NoCompiler("a clock is moved by a library in C: install a compiler, or name one with CC")
        folder.mkdir(parents=True, exist_ok=True)
        library, self._file = folder / "wall_clock.so", folder / "off-s"
        subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-Wall", "-o", library, SOURCE], check=True)
        self._file.write_bytes(_OFF_S.pack(0))
        self.environment = {"LD_PRELOAD": str(library), "KAFKA_DT_TEST_WALL_CLOCK": str(self._file)}
        """The variables of a program that is to have this clock."""

    def move(self, off_s: int) -> None:
        """Let the clock be off by so many seconds, or right with 0."""
        with self._file.open("r+b") as file:  # in place: the program has this file in its memory
            file.write(_OFF_S.pack(off_s))
