"""The process in which Sail runs: out of reach of all other processes but the one that has started it.

    python -P sail_server.py SOCKET SECONDS

Sail listens on a TCP port and authenticates no client, and a client may run any Python. So this process leaves the
machine's network for one of its own (a network namespace, with nothing but a loopback device), where no other process
can connect. It relays the socket at the path SOCKET, which is for the owner of its directory alone, to that port.

It writes `ready` on stdout when it takes connections, or one line that says why it cannot. It ends when stdin does, and
deletes the directory of the socket, should its parent have had no time for that. It ends with the status `STOOD_STILL`
when it has used next to no processor time for SECONDS: a query of Sail has hung before, and the report would then hang,
too. It is run as a file, because an import of its package starts threads, with which a process may not leave; and with
`-P`, because no module of the directory in which it is started is ours.

Limits: no object stores and nothing else that a process reaches by the network (mounted file systems are the kernel's),
and Linux alone.

Source: unshare(2), user_namespaces(7), network_namespaces(7), netdevice(7), proc_pid_oom_score_adj(5); Spark Connect
has no authentication.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import shutil
import socket
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

_CLONE_NEWUSER: Final = 0x10000000
_CLONE_NEWNET: Final = 0x40000000
_SIOCSIFFLAGS: Final = 0x8914
_IFF_UP: Final = 0x1
_IFREQ: Final = "16sH22x"
"""The name of a device and its flags, in 40 bytes."""
_CHUNK: Final = 1 << 18
_LOOPBACK: Final = "127.0.0.1"
_FIRST_TO_GO: Final = "1000"
_NEXT_TO_NONE: Final = 0.002
"""The share of a processor that a process may use which only waits."""
_LOOKS: Final = 10
"""How many looks in a row have to find the process idle: one that was suspended finds itself idle once."""
STOOD_STILL: Final = 75
"""The status with which the process ends when it stands still (EX_TEMPFAIL in sysexits.h)."""


def main(path: str, still_s: float) -> None:
    """Serve the socket at a path until stdin ends, or until this process has stood still for so many seconds."""
    try:
        _leave_network()
    except OSError as error:
        sys.stdout.write(f"this system does not let it have a network of its own: {error.strerror}\n")
        return
    # Imported here: its threads would keep this process from leaving the network.
    from pysail.spark import SparkConnectServer  # noqa: PLC0415

    # It takes as much memory as a table needs. Where that is too much, the kernel ends this process and no other.
    with suppress(OSError):  # a sandbox may not let it say so
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")
    server = SparkConnectServer(_LOOPBACK, 0)
    server.start(background=True)
    _, port = server.listening_address
    asyncio.run(_relay(path, port, still_s))


def _leave_network() -> None:
    """Move this process, which has one thread, into a network of its own; one without rights needs users of its own."""
    user, group = os.geteuid(), os.getegid()
    try:
        _unshare(_CLONE_NEWNET)
    except PermissionError:
        _unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            Path("/proc/self", name).write_text(text, encoding="ascii")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack(_IFREQ, b"lo", _IFF_UP))


def _unshare(flags: int) -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


async def _relay(path: str, port: int, still_s: float) -> None:
    """Relay connections to a Unix socket to a TCP port until stdin ends, or this process stands still."""

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other_reader, other_writer = await asyncio.open_connection(_LOOPBACK, port)
        await asyncio.gather(_copy(reader, other_writer), _copy(other_reader, writer))

    async with await asyncio.start_unix_server(relay, path):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        end = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
        still, used_s, look_s = 0, time.process_time(), still_s / _LOOKS
        while still < _LOOKS and not (await asyncio.wait({end}, timeout=look_s))[0]:
            before_s, used_s = used_s, time.process_time()
            still = still + 1 if used_s - before_s < look_s * _NEXT_TO_NONE else 0
        shutil.rmtree(Path(path).parent, ignore_errors=True)
        # Nothing is kept, so nothing needs an orderly end; what is under way would delay it.
        os._exit(0 if end.done() else STOOD_STILL)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy what comes until its end, or until the other side has gone."""
    try:
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
