"""What the figures were measured on: cores, memory, kernel, disk and versions, without a name of the machine.

Also how many connections it lets one process have.
"""

from __future__ import annotations

import datetime
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

from tests.support.java.jvm import Java

_SYNCS: Final = 100
_SPARE_FILES: Final = 500
"""Of a server or of the load generator: what is open besides connections."""


def describe(folder: Path, java: Java, root: Path) -> dict[str, Any]:
    """Describe a run.

    Args:
        folder: on the disk that ZooKeeper writes to.
        java: what runs the broker, ZooKeeper and the load.
        root: the source tree, for its revision.
    """
    return {
        "begun": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "revision": _revision(root),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "protocol": _form_of_the_protocol(),
        "java": java.version,
        "fsync_ms": round(_fsync_ms(folder), 3),
    }


def connections_that_fit(wanted: int) -> int:
    """Give the number of connections that are wanted, or fewer where a process may not have so many files open."""
    return min(wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - _SPARE_FILES)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return " ".join(line.partition(":")[2].split())
    return platform.machine()


def _revision(root: Path) -> str:
    """Name the commit, with a plus sign when the tree has other changes; empty outside a checkout."""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty=+", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


def _form_of_the_protocol() -> str:
    """Tell whether nodes that start now run the protocol `compiled` or `interpreted`."""
    command = [str(Path(sys.executable).with_name("kafka-dt")), "--version"]
    version = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return version.rpartition("(")[2].rstrip(")\n")


def _fsync_ms(folder: Path) -> float:
    """Measure the median time of making one small append durable, which is what bounds ZooKeeper."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(_SYNCS):
            file.write(b"x" * 512)
            file.flush()
            begun = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - begun)
    return median(times) * 1000
