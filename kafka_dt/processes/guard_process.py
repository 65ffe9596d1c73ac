"""End the workers that outlive their supervisor.

Run as a script with the standard library only: `python -I -S guard_process.py GRACE_SECONDS`. The supervisor writes
the process id of each worker to the standard input of this process, one id a line, and holds that pipe as long as it
lives. When the pipe closes, the supervisor has ended, whatever ended it. Workers then drain and end by themselves. A
worker that hangs or that is stopped (SIGSTOP) does not, and would keep the port from the next supervisor: after the
grace this process kills it.

PR_SET_PDEATHSIG in the workers gives those that work no time to drain (SIGKILL), or does not end those that hang (any
other signal). A thread in the worker stands still with its process.

Source: pidfd_open(2), pidfd_send_signal(2).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Collection, Iterable

_PARENT_FIELD = 1
"""Where /proc/PID/stat has the parent's process id, counted from behind the name of the program."""


def main(grace_s: float) -> None:
    """Wait for the end of the supervisor, and then for that of its workers.

    Args:
        grace_s: how long the workers may take to end by themselves.
    """
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a signal to all processes of the node is not the end of the workers
    supervisor = os.getppid()
    workers: set[int] = set()
    for line in sys.stdin:
        _forget(workers, _ended(workers, 0))
        with contextlib.suppress(OSError):  # it has ended already, or no more can be opened; the others are guarded
            workers.add(_child_of(supervisor, int(line)))
    deadline_s = time.monotonic() + grace_s
    while workers and (left_s := deadline_s - time.monotonic()) > 0:
        _forget(workers, _ended(workers, left_s))
    for worker in workers:
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            signal.pidfd_send_signal(worker, signal.SIGKILL)


def _child_of(supervisor: int, pid: int) -> int:
    """Open a worker.

    Raises:
        OSError: it has ended already, and its process id may name a stranger.
    """
    worker = os.pidfd_open(pid)
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - pathlib takes 1 MiB
            stat = file.read()
        if int(stat.rpartition(")")[2].split()[_PARENT_FIELD]) != supervisor:
            raise ProcessLookupError(pid)
    except OSError:
        os.close(worker)
        raise
    return worker


def _ended(workers: Collection[int], timeout_s: float) -> list[int]:
    """Wait until one of the workers has ended, or for the timeout; returns those that have."""
    poll = select.poll()
    for worker in workers:
        poll.register(worker, select.POLLIN)
    return [worker for worker, _ in poll.poll(timeout_s * 1000)]


def _forget(workers: set[int], ended: Iterable[int]) -> None:
    for worker in ended:
        workers.discard(worker)
        os.close(worker)


if __name__ == "__main__":
    main(float(sys.argv[1]))
