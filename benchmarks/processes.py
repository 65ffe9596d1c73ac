"""The CPU time and memory of processes, read from /proc.

    tree = ProcessTree(pid)
    before = tree.cpu_seconds()
    ...
    tree.cpu_seconds() - before
    tree.memory().pss_mib

Limits: Linux. CPU time is counted in ticks of 10 ms, so only differences over seconds mean something; that of a
process which has ended counts only once its parent has waited for it.
Source: proc_pid_stat(5), proc_pid_smaps(5).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_PROC: Final = Path("/proc")
# Positions in /proc/<pid>/stat after the name in parentheses.
_PARENT, _UTIME, _STIME, _CUTIME, _CSTIME = 1, 11, 12, 13, 14


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory that a process tree has in use."""

    pss_mib: float
    """Proportional set size: a page that n processes share counts 1/n in each, so the sum over a tree is true."""
    rss_mib: float
    """Resident set size; what processes share is counted in each."""


@dataclass(frozen=True, slots=True)
class ProcessTree:
    """A process and all its descendants, as they are at each call."""

    pid: int

    def cpu_seconds(self) -> float:
        """User and system time since the start, of all that live and of all that were waited for."""
        ticks = 0
        for pid in self.pids():
            if fields := _stat(pid):
                ticks += sum(int(fields[position]) for position in (_UTIME, _STIME, _CUTIME, _CSTIME))
        return ticks / _TICKS_PER_SECOND

    def memory(self) -> Memory:
        """Memory in use now."""
        pss = rss = 0
        for pid in self.pids():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                sizes = dict(_sizes((_PROC / str(pid) / "smaps_rollup").read_text()))
                pss += sizes["Pss"]
                rss += sizes["Rss"]
        return Memory(pss / 1024, rss / 1024)

    def pids(self) -> list[int]:
        """List the process and its descendants."""
        children: dict[int, list[int]] = {}
        for path in _PROC.glob("[0-9]*"):
            if fields := _stat(int(path.name)):
                children.setdefault(int(fields[_PARENT]), []).append(int(path.name))
        found = [self.pid]
        for pid in found:  # grows while it is walked
            found += children.get(pid, [])
        return found


def _stat(pid: int) -> list[str]:
    """Read the fields after the name, which may hold anything; none when the process is gone."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _sizes(rollup: str) -> Iterator[tuple[str, int]]:
    """Names and KiB of the lines `Pss:  1234 kB`."""
    for line in rollup.splitlines()[1:]:
        name, _, rest = line.partition(":")
        yield name, int(rest.split()[0])
