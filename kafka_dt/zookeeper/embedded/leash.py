"""Keep a server process on a leash: it never outlives the process that asked for it.

Run as a script with the standard library only: `python -I -S leash.py PARENT_PID COMMAND ...`. It prints the pid of the
command, waits, and exits with the command's status. Three ends are covered:

- the parent ends in any way, SIGKILL included: a pidfd of the parent becomes readable, the command gets SIGTERM and,
  if that does not help, SIGKILL;
- the leash gets SIGTERM or SIGINT: the same;
- the leash itself is killed: the kernel sends SIGKILL to the command (PR_SET_PDEATHSIG).

PR_SET_PDEATHSIG alone, set in the parent, would not do: the kernel sends that signal when the *thread* that forked
ends, and the parent starts servers from worker threads; code run between fork and exec in a process with threads can
also deadlock. This process has one thread, so both objections are gone. A pipe from the parent would not do
either: every process forked from the parent would hold it open.

Source: prctl(2) PR_SET_PDEATHSIG, pidfd_open(2).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
from collections.abc import Callable
from functools import partial

PR_SET_PDEATHSIG = 1
GRACE_MS = 10_000
STOPPING = (signal.SIGTERM, signal.SIGINT)
CANNOT_EXECUTE = 127


def main(parent_pid: int, become: Callable[[], object]) -> int:
    """Run a command until it ends or its reason to live does.

    Args:
        parent_pid: the process whose end is also the command's.
        become: called in the command's process, makes it the command; does not return, unless it cannot.

    Returns:
        The command's exit status; 128 and the signal's number when it was killed.
    """
    wake_up, _ = _signals_as_bytes()
    parent = os.pidfd_open(parent_pid)
    if os.getppid() != parent_pid:  # ended before the pidfd was there, which may now name a stranger
        return 0
    child_pid = _start(become)
    child = os.pidfd_open(child_pid)
    sys.stdout.write(f"{child_pid}\n")
    sys.stdout.flush()
    if child not in _readable([parent, child, wake_up], None):
        os.kill(child_pid, signal.SIGTERM)
        if not _readable([child], GRACE_MS):
            os.kill(child_pid, signal.SIGKILL)
    _, status = os.waitpid(child_pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _signals_as_bytes() -> tuple[int, int]:
    """Make SIGTERM and SIGINT readable on a pipe, so that one poll waits for everything."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    for number in STOPPING:
        signal.signal(number, lambda _number, _frame: None)
    return reading, writing


def _start(become: Callable[[], object]) -> int:
    own_pid = os.getpid()
    libc = ctypes.CDLL(None, use_errno=True)
    # A signal that comes before the command is there is to end it, not to meet the handlers of the leash.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    child_pid = os.fork()
    if child_pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return child_pid
    for number in STOPPING:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == own_pid:  # else the leash ended before the kernel was told
        os.dup2(2, 1)  # standard output belongs to the leash
        become()
    os._exit(CANNOT_EXECUTE)


def _execute(command: list[str]) -> None:
    """Become a program; returns if it cannot be executed."""
    with contextlib.suppress(OSError):
        os.execv(command[0], command)  # noqa: S606 - no shell is the point


def _readable(descriptors: list[int], timeout_ms: int | None) -> list[int]:
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in poll.poll(timeout_ms)]


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), partial(_execute, sys.argv[2:])))
