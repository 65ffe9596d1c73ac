"""The template of the workers: a process that has imported the program, and that forks a worker at each request.

    APIS.load_entities()
    become_worker(int(sys.argv[-1]))   # returns in each worker; the template itself stays in it
    brief = sys.stdin.readline()       # in a worker: from the supervisor

Imports take more than a second of processor time. The template pays it once, and the workers share the memory of what
it has imported. The template has no event loop, thread, session or secret: a worker's brief goes from the supervisor
to the worker.

The template has a socket to the supervisor (`forking.py`). Each request on it brings the two ends of pipes that become
the worker's standard input and output. The worker then writes its process id, as its first line. The
template forks twice, so a worker has no parent; the supervisor adopts it, as `PR_SET_CHILD_SUBREAPER` says. So the
supervisor waits for its workers as before, and they go on if the template dies.

Limits: the workers of a node have one address layout and one seed of Python's hashes, those of their template.

Source: fork(2); prctl(2), PR_SET_CHILD_SUBREAPER; unix(7), SCM_RIGHTS; gc.freeze in the manual of Python.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

TEMPLATE_NAME: Final = "worker-template"
WORKER_NAME: Final = "kafka-dt-worker"
"""What `ps` and `top` call the processes: 15 characters at most (/proc/PID/comm)."""
_STOPPING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_ADOPTION_LOOK_S: Final = 0.001


def become_worker(descriptor: int) -> None:
    """Fork workers and return in each of them; exit when the supervisor has ended. Call it in the only thread.

    Args:
        descriptor: of the socket to the supervisor.
    """
    _name(TEMPLATE_NAME)
    # A signal to all processes of the node ends the template by the supervisor, which ends first.
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in _STOPPING}
    # The collector writes to each object that it looks at, and a page that is written to is shared no more.
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=descriptor) as requests:
        while True:
            message, descriptors, _, _ = socket.recv_fds(requests, 1, 2)
            if not message:
                sys.exit(0)
            if _forked(descriptors):
                break
    _take_over(descriptors, handlers)


def _forked(descriptors: Sequence[int]) -> bool:
    """Fork a worker without a parent; True in the worker, False in the template, which keeps nothing of it."""
    _, output = descriptors
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
