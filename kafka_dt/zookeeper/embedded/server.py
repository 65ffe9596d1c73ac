"""A real ZooKeeper server as a child process: for `kafka-dt run`, `kafka-dt zookeeper` and the tests.

Used as `with EmbeddedZooKeeper(data_dir) as zookeeper: connect(zookeeper.address)`. The methods block (about a
second for a start), so asyncio code calls them in a thread; `exited` is the one to await. Writes are durable: the
server syncs its log before it answers. Everything it writes is in the data directory: its configuration
(`zookeeper.properties`), its log (`zookeeper.log`), and `data/`, whose old snapshots are purged every hour.
It listens on 127.0.0.1, and it never outlives this process (see `leash.py`). Its data directory is its user's alone.

With a `login` it serves that login alone: SASL DIGEST-MD5 with that name and password comes before every request, so
the znodes of older data directories, `/` and `/zookeeper` among them, are closed as well. Without one any user of the
machine can read and write everything, which suits tests. The command `srvr` is answered in either case (ZooKeeper
cannot switch it off) and tells its version and some counters.

Source: org.apache.zookeeper.server.ZooKeeperServerMain, org.apache.zookeeper.server.AuthenticationHelper
(`enforce.auth.*`), "ZooKeeper Administrator's Guide".
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shlex
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from kafka_dt.files import replace_file
from kafka_dt.jaas import LoginModule
from kafka_dt.zookeeper.connection.settings import DIGEST_LOGIN_MODULE
from kafka_dt.zookeeper.embedded.java import find_java, server_class_path
from kafka_dt.zookeeper.errors import (
    DataDirInUse,
    DataDirOpen,
    EmbeddedZooKeeperError,
    LoginNeeded,
    PortTaken,
    StartFailed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_dt.zookeeper.connection.settings import ZooKeeperLogin

HOST = "127.0.0.1"
START_TIMEOUT_S = 60.0
LOCK_TIMEOUT_S = 5.0
POLL_S = 0.05
LEASH = Path(__file__).with_name("leash.py")

# A small heap grows on demand; the serial collector needs the least memory and threads for one small server.
JAVA_OPTIONS = (
    "-XX:+UseSerialGC",
    "-Xms32m",
    "-Djava.awt.headless=true",
    "-Dzookeeper.jmx.log4j.disable=true",
)

HEAP_MB = 512

ENFORCED_LOGIN = {
    "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
    "enforce.auth.enabled": "true",
    "enforce.auth.schemes": "sasl",
}
"""Closes every connection that asks for anything before it has logged in."""

LOG_CONFIGURATION = """\
status=error
appender.file.type=RollingFile
appender.file.name=file
appender.file.fileName={log}
appender.file.filePattern={log}.%i
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=%d{{ISO8601}} %-5p %c{{1}}: %m%n
appender.file.policies.type=SizeBasedTriggeringPolicy
appender.file.policies.size=10MB
appender.file.strategy.type=DefaultRolloverStrategy
appender.file.strategy.max=2
rootLogger.level=info
rootLogger.appenderRef.file.ref=file
"""


class EmbeddedZooKeeper:
    """One ZooKeeper server on 127.0.0.1.

    Args:
        data_dir: where it keeps everything; made when missing. Started again on the same directory, it has its data.
        port: TCP port for clients; 0 = a free one.
        java: the `java` to run; None = the one that `find_java` finds.
        login: the SASL login that it demands of clients; None = it serves every client.
        tick_time_ms: ZooKeeper's unit of time; sessions last between 2 and 20 ticks.
        properties: further lines for its configuration, over the ones set here.
        system_properties: Java system properties, for what its configuration cannot say.
        heap_mb: how far the heap grows; a million tokens need more than the default.
        java_options: further options of its JVM, over the ones set here.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int = 0,
        java: Path | None = None,
        login: ZooKeeperLogin | None = None,
        tick_time_ms: int = 2000,
        properties: Mapping[str, str] | None = None,
        system_properties: Mapping[str, str] | None = None,
        heap_mb: int = HEAP_MB,
        java_options: Sequence[str] = (),
    ) -> None:
        self.data_dir = data_dir.absolute()
        self.port = port
        self._java = java
        self._login = login
        self._properties = {
            "tickTime": str(tick_time_ms),
            "clientPortAddress": HOST,
            "maxClientCnxns": "0",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "srvr",
            "autopurge.snapRetainCount": "3",
            "autopurge.purgeInterval": "1",
            **(ENFORCED_LOGIN if login else {}),
            **(properties or {}),
        }
        self._system_properties = dict(system_properties or {})
        if login:
            self._system_properties["java.security.auth.login.config"] = str(self._jaas)
        self._heap_mb = heap_mb
        self._java_options = tuple(java_options)
        self._log_offset = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.server_pid: int | None = None
        """Process id of the server itself while it runs."""

    @property
    def address(self) -> str:
        """Where clients connect, as `zookeeper.connect` wants it."""
        return f"{HOST}:{self.port}"

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self.data_dir / "zookeeper.log"

    @property
    def _jaas(self) -> Path:
        """The server's list of users: one."""
        return self.data_dir / "zookeeper.jaas"

    @property
    def running(self) -> bool:
        """True from the start until the server process ends."""
        return self._process is not None and self._process.poll() is None

    def start(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Start the server and wait until it answers.

        Raises:
            JavaNotFound, JarsNotFound: it cannot be run here.
            PortTaken, DataDirInUse: another program is in the way.
            DataDirOpen: other users of the machine could read the data directory.
            LoginNeeded: it was started with a login before, and has none now.
            StartFailed: it ended, or did not answer in time.
        """
        if self.running:
            return
        self.stop()  # what is left of one that ended by itself
        java = self._java or find_java()
        class_path = server_class_path()
        self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        require_private(self.data_dir)
        if self._login is None and self._jaas.exists():
            raise LoginNeeded(self.data_dir)
        lock = _lock(self.data_dir)
        try:
            self.port = _free_port(self.port)
            self._process = self._spawn(java, class_path, lock)
        finally:
            os.close(lock)  # the server has inherited it and holds it as long as it lives
        try:
            self._wait_until_it_answers(time.monotonic() + timeout_s)
        except EmbeddedZooKeeperError:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the server and wait for its end; every write that it acknowledged is on disk."""
        process, self._process, self.server_pid = self._process, None, None
        if process is None:
            return
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def kill(self) -> None:
        """End the server with SIGKILL, as a crash would: for tests of the recovery."""
        if self.server_pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.server_pid, signal.SIGKILL)
        self.stop()

    async def exited(self) -> None:
        """Wait until the server process has ended, by itself or through `stop`."""
        if self._process is None:
            return
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        descriptor = os.pidfd_open(self._process.pid)
        loop.add_reader(descriptor, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _spawn(self, java: Path, class_path: str, lock: int) -> subprocess.Popen[bytes]:
        configuration = self._write_configuration()
        self._log_offset = self.log.stat().st_size if self.log.exists() else 0
        command = [
            str(java),
            *JAVA_OPTIONS,
            f"-Xmx{self._heap_mb}m",
            *self._java_options,
            f"-Dlog4j2.configurationFile={self.data_dir / 'log4j2.properties'}",
            *(f"-D{name}={value}" for name, value in self._system_properties.items()),
            "-cp",
            class_path,
            "org.apache.zookeeper.server.ZooKeeperServerMain",
            str(configuration),
        ]
        with (self.data_dir / "zookeeper.out").open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and script
                [sys.executable, "-I", "-S", str(LEASH), str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
                pass_fds=(lock,),
                start_new_session=True,  # Ctrl-C in a terminal is for us: ZooKeeper goes last
            )
        line = process.stdout.readline() if process.stdout is not None else b""
        self.server_pid = int(line) if line else None
        return process

    def _write_configuration(self) -> Path:
        if self._login:
            users = LoginModule(DIGEST_LOGIN_MODULE, {f"user_{self._login.username}": self._login.password})
            replace_file(self._jaas, f"Server {{ {users.line} }};\n")
        path = self.data_dir / "zookeeper.properties"
        lines = {"dataDir": str(self.data_dir / "data"), "clientPort": str(self.port), **self._properties}
        replace_file(path, "".join(f"{name}={value}\n" for name, value in lines.items()))
        replace_file(self.data_dir / "log4j2.properties", LOG_CONFIGURATION.format(log=self.log))
        return path

    def _wait_until_it_answers(self, deadline: float) -> None:
        while not _answers(self.port):
            if not self.running:
                raise self._failure()
            if time.monotonic() > deadline:
                raise StartFailed("no answer in time", self.log)
            time.sleep(POLL_S)
        if not self.running:  # then it was a stranger who answered
            raise self._failure()

    def _failure(self) -> EmbeddedZooKeeperError:
        written = self.log.read_bytes()[self._log_offset :] if self.log.exists() else b""
        if b"Address already in use" in written:
            return PortTaken(self.port)
        output = (self.data_dir / "zookeeper.out").read_text(errors="replace").splitlines()
        return StartFailed(output[0] if output else "the process ended", self.log)


def require_private(directory: Path) -> None:
    """See that a directory is this user's alone; DataDirOpen if other users can look into it, or own it."""
    state = directory.stat()
    if state.st_uid != os.geteuid():
        raise DataDirOpen(directory, "another user owns", "choose another directory with --data-dir")
    if stat.S_IMODE(state.st_mode) & 0o077:
        raise DataDirOpen(directory, "other users of this machine can open", f"chmod 700 {shlex.quote(str(directory))}")


def _lock(data_dir: Path) -> int:
    """Take the lock of the data directory; a server that is just ending gets a moment."""
    descriptor = os.open(data_dir / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise DataDirInUse(data_dir) from None
            time.sleep(POLL_S)
        else:
            return descriptor


def _free_port(port: int) -> int:
    """Check that a port can be bound, or choose one; ZooKeeper itself cannot tell which it got."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError:
            raise PortTaken(port) from None
        return int(listener.getsockname()[1])


def _answers(port: int) -> bool:
    """Ask the server for its state; before it serves requests it says so, or does not listen."""
    try:
        with socket.create_connection((HOST, port), timeout=1.0) as connection:
            connection.sendall(b"srvr")
            return b"Zxid:" in _read_all(connection)
    except OSError:
        return False


def _read_all(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(4096):
        parts.append(part)
    return b"".join(parts)
