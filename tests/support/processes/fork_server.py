"""`python -m tests.support.processes.fork_server DESCRIPTOR`: has imported kafka-dt, and forks the programs of tests.

Each message that comes on the socket asks for one `kafka-dt`: its arguments, environment and folder, in JSON. Three
descriptors come with it; the second and the third become the program's standard output and error. On the first one a
leash (`kafka_dt/zookeeper/embedded/leash.py`) tells its own process id, that of the program and, at the end, the exit
status of the program, a line each.

The server ends when the process of the tests ends, and what it has forked ends with it. `forked.py` is the tests' end.

Source: fork(2); unix(7), SCM_RIGHTS.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click

from kafka_dt.cli import main as kafka_dt
from kafka_dt.zookeeper.embedded import leash
from kafka_dt_protocol import APIS

NAME: Final = "kafka-dt"
LEFT_OUT: Final = "pipeline"
"""Its commands start a Spark, beside which their imports are nothing."""
REQUEST_BYTES: Final = 2**20
FIRST_OTHER: Final = 3
"""The descriptor behind standard input, output and error."""


def main(descriptor: int) -> int:
    """Fork a program at each request, until the tests end; returns in each leash as well, with a program's status."""
    import_module("kafka_dt.worker")
    _import_commands(kafka_dt)
    APIS.load_entities()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel forgets leashes that have ended
    server = os.getpid()
    with socket.socket(fileno=descriptor) as requests:
        while True:
            message, descriptors, _, _ = socket.recv_fds(requests, REQUEST_BYTES, FIRST_OTHER)
            if not message:
                return 0
            if os.fork() == 0:
                requests.close()
                return _be_leash(server, json.loads(message), descriptors)
            for each in descriptors:
                os.close(each)


def _import_commands(group: click.Group) -> None:
    context = click.Context(group)
    for name in group.list_commands(context):
        if name != LEFT_OUT:
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                _import_commands(command)


def _be_leash(server: int, request: dict[str, Any], descriptors: Sequence[int]) -> int:
    told, output, errors = descriptors
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.dup2(told, 1)
    os.dup2(errors, 2)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.stdout.write(f"{os.getpid()}\n")
    status = leash.main(server, partial(_be_program, request["arguments"], output))
    sys.stdout.write(f"{status}\n")
    return status


def _be_program(arguments: Sequence[str], output: int) -> None:
    """Be `kafka-dt` as if it had just been started; ends with SystemExit."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(output, 1)
    os.closerange(FIRST_OTHER, 1 + max(int(each.name) for each in Path("/proc/self/fd").iterdir()))
    Path("/proc/self/comm").write_text(NAME, encoding="ascii")
    sys.argv = [NAME, *arguments]
    kafka_dt(prog_name=NAME)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
