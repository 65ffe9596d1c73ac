"""`kafka-dt` without its start: a process that has imported the program forks itself for each command.

    python quick_commands.py SOCKET                      the process, until its standard input ends
    python -I -S quick_commands.py SOCKET PROGRAM ...    a command: arguments, output and exit status of kafka-dt

A page of the manual has a dozen commands, and each would import the program for 0.3 s of CPU time. Servers and Spark
are started as usual, so that signals reach them. The tests of the commands start the real program.

A command hands its arguments, folder, variables and open files to the process.
"""

from __future__ import annotations

import array
import json
import os
import socket
import sys

AS_USUAL = frozenset({"pipeline", "run", "serve", "zookeeper"})
_LENGTH = 4


def call(address: str, program: str, arguments: list[str]) -> int:
    """Have the process run a command; gives its exit status."""
    if AS_USUAL.intersection(arguments[:1]):
        os.execv(program, [program, *arguments])  # noqa: S606 - the command itself
    umask = os.umask(0)
    os.umask(umask)
    folder = os.getcwd()  # noqa: PTH109 - pathlib would be imported for it
    request = json.dumps([arguments, folder, dict(os.environ), umask]).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        files = array.array("i", [0, 1, 2])
        length = len(request).to_bytes(_LENGTH, "big")
        connection.sendmsg([length], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
        connection.sendall(request)
        return int(connection.recv(_LENGTH) or b"70")


def serve(address: str) -> None:
    """Run commands, each in a child, until the standard input ends."""
    import select  # noqa: PLC0415 - the client starts sooner without these
    import signal  # noqa: PLC0415
    from importlib import import_module  # noqa: PLC0415

    for module in ("kafka_dt.cli.token.commands", "kafka_dt.cli.token.revoke", "kafka_dt.cli.keys", "kafka_dt.app"):
        import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        while sys.stdin not in select.select([sys.stdin, listener], [], [])[0]:
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    listener.close()
                    _run(connection)


def _run(connection: socket.socket) -> None:
    """Be the command of a client, and end."""
    length, files, *_ = socket.recv_fds(connection, _LENGTH, 3)
    request = b""
    while len(request) < int.from_bytes(length, "big"):
        request += connection.recv(1 << 16)
    arguments, folder, variables, umask = json.loads(request)
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.chdir(folder)
    os.umask(umask)
    os.environ.clear()
    os.environ.update(variables)
    from kafka_dt.cli import main  # noqa: PLC0415 - imported before the fork

    status = 1
    try:
        main(arguments, "kafka-dt")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        connection.sendall(str(status).encode())
        os._exit(0)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(sys.argv[1])
    else:
        sys.exit(call(sys.argv[1], sys.argv[2], sys.argv[3:]))
