"""Forbid core dumps: a dump of a process that crashes holds its keys, tokens and passwords.

    forbid_core_dumps()     # first of all; child processes inherit it

The limit of a core file is 1 byte, not 0. Linux writes no file that is smaller than a page, and where `core_pattern` is
a program (systemd-coredump, apport), Linux ignores every limit but this one. Debuggers and profilers of the same user
still work: /proc of the process belongs to that user as before.

Limits: what runs in Spark's JVM and executors is started by Spark; set the limit there (`ulimit -c`, `LimitCORE=`).

Source: core(5); getrlimit(2); prctl(2), PR_SET_DUMPABLE; Linux, fs/coredump.c, "core limits are irrelevant to pipes".
"""

from __future__ import annotations

import ctypes
import resource
from typing import Final

_NONE: Final = 1
_PR_SET_DUMPABLE: Final = 4


def forbid_core_dumps() -> None:
    """Have this process, and those that it starts, leave no core dump.

    Raises:
        OSError: Linux refuses.
    """
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (_NONE, _NONE))
    except (ValueError, OSError):
        # A limit of 0 that we may not raise: no file is written, but a program would get the dump.
        _forbid_by_attribute()


def _forbid_by_attribute() -> None:
    """Say that memory must not be dumped; not inherited, and /proc of the process then belongs to root."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "core dumps cannot be forbidden")
