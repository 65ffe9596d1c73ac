"""Start Sail in a process of its own, and give a session of Spark Connect on it.

    with sail_session() as spark:
        ...

Meanwhile `pyspark.sql.functions` makes columns for Spark Connect in this process, so no other Spark may be in use. When
this process ends, Sail ends with it, however that comes about. Ctrl-C reaches this process alone.

Source: Spark Connect, `pyspark.sql.connect.client.ChannelBuilder`; Sail, "Configuration".
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from kafka_dt.pipeline.engines.sail_server import STOOD_STILL
from kafka_dt.pipeline.errors import ReportFailed, SailFailed, SailNotStarted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grpc import Channel
    from pyspark.sql import SparkSession

_SERVER: Final = Path(__file__).with_name("sail_server.py")
_NEEDED: Final = ("pysail", "grpc", "grpc_status", "pandas")
_SOCKET: Final = "sail.sock"
_SOCKETS_HERE: Final = re.compile(r"[A-Za-z0-9/._+=-]{1,70}")
"""Directories for temporary files in which the path of a socket is neither too long nor an URI with escapes."""
_READY: Final = "ready"
_END_S: Final = 5.0
_DYING_S: Final = 3.0
"""How long its process may outlive its connections: a report that fails waits so long to know."""
_STILL_S: Final = 600.0
"""A report does nothing else for so long, such as writing its page, without asking Sail."""
_CONNECT_MODE: Final = "SPARK_CONNECT_MODE_ENABLED"
"""In the environment it makes pyspark's functions those of Spark Connect."""
_PRIVATE: Final = 0o077
_SESSION: Final = MappingProxyType(
    {
        "spark.sql.session.timeZone": "UTC",
        # As for Spark: it doubles what it costs to make a column. pyspark asks once and keeps the answer.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }
)
_SETTINGS: Final = MappingProxyType(
    {
        "RUST_LOG": "off",
        # A pool with a bound counts the rows of a batch once for each token in it: it refuses reports that take little.
        "SAIL_RUNTIME__MEMORY_POOL__TYPE": "unbounded",
        # Parts of a hash join wait for each other, and one that is empty ends before: then the query waits for ever.
        "SAIL_EXECUTION__DEFAULT_PARALLELISM": "1",
        # From the least and the largest value of a column it estimates how many rows a filter keeps. Where the filter
        # compares days of instants, that may be more than all, and it refuses the query.
        "SAIL_EXECUTION__COLLECT_STATISTICS": "false",
    }
)
"""Sail's settings; those of the environment go before."""


@contextmanager
def sail_session(*, still_s: float = _STILL_S) -> Iterator[SparkSession]:
    """Give a session on a Sail of this machine, which ends with the block.

    Args:
        still_s: for how many seconds Sail may use next to no processor time before it is taken to stand still.

    Raises:
        SailNotStarted: the system does not allow what it needs, or a package is missing.
        SailFailed: a report failed in the block, by an error of Sail or because its process has ended or stood still.
    """
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        raise SailNotStarted(f"{missing[0]} is not installed")
    if not _SOCKETS_HERE.fullmatch(place := tempfile.gettempdir()):
        raise SailNotStarted(
            f"{place}, the directory for temporary files, is too long for a socket or has odd characters"
        )
    path = Path(tempfile.mkdtemp(prefix="kafka-dt-sail-"), _SOCKET)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, path.parent, ignore_errors=True)
        stack.enter_context(_server(path, still_s))
        stack.enter_context(_connect_mode())
        spark = _connected(path)
        stack.callback(_stop, spark)
        for setting, value in _SESSION.items():
            spark.conf.set(setting, value)
        yield spark


@contextmanager
def _server(path: Path, still_s: float) -> Iterator[None]:
    """Run Sail behind a socket."""
    with subprocess.Popen(  # noqa: S603 - the command is ours
        [sys.executable, "-P", str(_SERVER), str(path), str(still_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**_SETTINGS, **os.environ},
        text=True,
        start_new_session=True,
        umask=_PRIVATE,
    ) as process:
        assert process.stdout is not None  # noqa: S101 - for mypy
        try:
            if (answer := process.stdout.readline().strip()) != _READY:
                raise SailNotStarted(answer or "its process has ended")
            try:
                yield
            except ReportFailed as error:
                raise SailFailed(_way_of_its_end(process) or error.reason) from error
            except _failures() as error:
                raise SailFailed(_way_of_its_end(process) or str(error).partition("\n")[0]) from error
        finally:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None  # noqa: S101 - for mypy
    with suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _failures() -> tuple[type[Exception], ...]:
    """Give the errors with which a session fails before and after its queries."""
    from grpc import RpcError  # noqa: PLC0415 - an extra
    from pyarrow import ArrowException  # noqa: PLC0415 - as above
    from pyspark.errors import PySparkException  # noqa: PLC0415 - as above

    return PySparkException, RpcError, ArrowException


def _way_of_its_end(process: subprocess.Popen[str]) -> str | None:
    """Say how Sail's process has ended; None if it has not."""
    try:
        status = process.wait(_DYING_S)
    except subprocess.TimeoutExpired:
        return None
    if status == -signal.SIGKILL:
        return "Sail's process was killed, as it is when memory runs out"
    if status == STOOD_STILL:
        return "Sail stood still: it used next to no processor time for too long"
    way = f"by signal {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
    return f"Sail's process has ended {way}"


@contextmanager
def _connect_mode() -> Iterator[None]:
    """Have pyspark's functions be those of Spark Connect during a block."""
    before = os.environ.get(_CONNECT_MODE)
    os.environ[_CONNECT_MODE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_CONNECT_MODE]


def _stop(session: Any) -> None:
    session.stop()
    # pyspark closes the client once more when the session is collected, and thereby the threads of a later session.
    session.client.close = lambda: None


def _connected(path: Path) -> SparkSession:
    # Imported here: they import grpc and pandas, which take half a second.
    from pyspark.sql.connect.client import ChannelBuilder  # noqa: PLC0415
    from pyspark.sql.connect.session import SparkSession as ConnectSession  # noqa: PLC0415

    class UnixSocket(ChannelBuilder):
        """Connects to a Unix socket, which `sc://` cannot name."""

        @property
        def host(self) -> str:
            return str(path)

        def toChannel(self) -> Channel:  # noqa: N802 - pyspark's name
            return self._insecure_channel(f"unix:{path}")

    # By itself gRPC names the path as the host, which Sail's HTTP/2 refuses.
    channel: Any = UnixSocket([("grpc.default_authority", "localhost")])
    session: Any = ConnectSession.builder.channelBuilder(channel).create()
    # A server that has gone does not come back; pyspark would try for ten minutes.
    session.client.set_retry_policies([])
    session.release_session_on_close = False
    return cast("SparkSession", session)
