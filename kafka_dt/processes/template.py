"""The template of the workers: a process that has imported the program, and that forks a worker at each request.

    with forked_template(run_worker) as template:     # first of all; the supervisor goes on in the block
        ...

    shared = become_worker(int(sys.argv[-1]))   # or in a process of its own; returns in each worker
    brief = sys.stdin.readline()                # in a worker: from the supervisor

Imports take more than a second of processor time and most of the memory of a node. One process pays it: the supervisor,
which forks the template before it reads its configuration, and so shares the memory with it and with the workers. A
template that replaces another one is a process of its own and imports again, because by then the supervisor has a loop
and secrets. The template has no event loop, thread or session, and no secret but the keys of TLS session tickets, which
the workers have in common: a worker's brief goes from the supervisor to the worker.

The template has a socket to the supervisor (`forking.py`). Each request on it names modules that the template is to
import first, and brings descriptors: two ends of pipes that become the worker's standard input and output, and what
the workers share. The worker then writes its process id, as its first line. The template forks twice, so a worker has
no parent; the supervisor adopts it, as `PR_SET_CHILD_SUBREAPER` says. So the supervisor waits for its workers, and they
go on if the template dies.

Limits: the workers of a node have one address layout and one seed of Python's hashes, those of their template.

Source: fork(2); mallopt(3), M_ARENA_MAX; prctl(2), PR_SET_CHILD_SUBREAPER; unix(7), SCM_RIGHTS; gc.freeze in the manual
of Python.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import importlib
import logging
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

TEMPLATE_NAME: Final = "worker-template"
WORKER_NAME: Final = "kafka-dt-worker"
"""What `ps` and `top` call the processes: 15 characters at most (/proc/PID/comm)."""
_STOPPING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_M_ARENA_MAX: Final = -8
_ADOPTION_LOOK_S: Final = 0.001
_STANDARD: Final = 2
"""How many descriptors of a request become the standard ones of the worker."""
_REQUEST_BYTES: Final = 4096
_REQUEST_DESCRIPTORS: Final = 64
_FIRST_OTHER: Final = 3
"""The descriptor behind standard input, output and error."""


@dataclass(frozen=True, slots=True)
class ForkedTemplate:
    """A template, as the process that has forked it sees it."""

    pid: int
    requests: socket.socket
    """The template ends when this is closed."""


@contextmanager
def forked_template(run_worker: Callable[[Sequence[int]], int]) -> Iterator[ForkedTemplate]:
    """Fork a template from this process, which has imported the program and has no loop, thread or secret yet.

    Args:
        run_worker: what each worker does: from the descriptors that the workers share to its exit status.
    """
    _freeze()
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            pid = os.fork()
            if pid == 0:
                _live_as_template(theirs, run_worker)
        yield ForkedTemplate(pid, ours)


def become_worker(descriptor: int) -> Sequence[int]:
    """Fork workers and return in each of them; exit when the supervisor has ended. Call it in the only thread.

    Args:
        descriptor: of the socket to the supervisor.

    Returns:
        In a worker: the descriptors of what the workers share, in the supervisor's order.
    """
    _name(TEMPLATE_NAME)
    _use_one_arena()
    # A signal to all processes of the node ends the template by the supervisor, which ends first.
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in _STOPPING}
    with socket.socket(fileno=descriptor) as requests:
        while True:
            message, descriptors, _, _ = socket.recv_fds(requests, _REQUEST_BYTES, _REQUEST_DESCRIPTORS)
            if not message:
                sys.exit(0)
            for module in message.decode().split():
                importlib.import_module(module)
            _freeze()
            if _forked(descriptors):
                break
    _take_over(descriptors[:_STANDARD], handlers)
    return descriptors[_STANDARD:]


def _freeze() -> None:
    """Keep the collector from objects that are loaded: a page that it writes to is shared no more."""
    gc.collect()
    gc.freeze()


def _use_one_arena() -> None:
    """Have all threads of the workers allocate in one arena of malloc, where glibc is the C library.

    By default each thread has an arena of its own, and no other thread uses what it has freed: 2 MiB a worker. The
    threads rarely meet at the arena's lock, because small blocks come from caches of each thread.
    """
    with suppress(AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def _live_as_template(requests: socket.socket, run_worker: Callable[[Sequence[int]], int]) -> NoReturn:
    """Be the template, and then a worker, to the end of the process: nothing of the caller's goes on here."""
    status = 1
    try:
        os.setsid()  # Ctrl-C in a terminal reaches the supervisor alone
        status = run_worker(become_worker(_leave_descriptors(requests)))
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - it is shown here, for no caller is left
        traceback.print_exc()
    finally:
        try:
            with suppress(OSError):  # the supervisor has ended
                sys.stdout.flush()
            logging.shutdown()  # it writes how many lines were held back; os._exit runs nothing of atexit
        finally:
            os._exit(status)


def _leave_descriptors(kept: socket.socket) -> int:
    """Close what this process has open but a socket and standard error; returns the descriptor of the socket."""
    descriptor = fcntl.fcntl(kept.detach(), fcntl.F_DUPFD_CLOEXEC, _FIRST_OTHER)
    # RLIMIT_NOFILE is no end of the descriptors: it may be below one that is open, or a thousand million above it.
    are_open = {int(link.name) for link in Path("/proc/self/fd").iterdir()}
    for each in are_open - {*range(_FIRST_OTHER), descriptor}:
        with suppress(OSError):  # that of the list is closed already
            os.close(each)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(_STANDARD):
        os.dup2(nothing, standard)
    if nothing >= _STANDARD:
        os.close(nothing)
    # Those of the supervisor may be None, and a terminal's would be read in another way than a pipe's.
    sys.stdin, sys.stdout = (os.fdopen(standard, mode, encoding="utf-8") for standard, mode in enumerate("rw"))
    return descriptor


def _forked(descriptors: Sequence[int]) -> bool:
    """Fork a worker without a parent; True in the worker, False in the template, which keeps nothing of it."""
    output = descriptors[1]
    template = os.getpid()
    try:
        between = os.fork()
        if between == 0:
            between = os.getpid()
            if os.fork() == 0:
                _wait_for_adoption(between)
                return True
            os._exit(0)
        os.waitpid(between, 0)
    except OSError as error:
        os.write(output, f"no worker can be forked: {error.strerror}\n".encode())
        if os.getpid() != template:
            os._exit(1)
    for descriptor in descriptors:
        os.close(descriptor)
    return False


def _wait_for_adoption(parent: int) -> None:
    """Wait until the parent has ended, so that the supervisor is the parent when it hears of this process."""
    while os.getppid() == parent:
        time.sleep(_ADOPTION_LOOK_S)


def _take_over(descriptors: Sequence[int], handlers: Mapping[signal.Signals, Any]) -> None:
    """Make this process the worker of a request, and tell the supervisor its process id."""
    os.setsid()  # Ctrl-C in a terminal reaches the supervisor alone, which then tells the workers
    for standard, descriptor in enumerate(descriptors):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    _name(WORKER_NAME)
    sys.stdout.write(f"{os.getpid()}\n")
    sys.stdout.flush()


def _name(name: str) -> None:
    Path("/proc/self/comm").write_text(name, encoding="ascii")
