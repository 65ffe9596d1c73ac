"""Start Sail in a process of its own, and give a session of Spark Connect on it.

    with sail_session() as spark:
        ...

Meanwhile `pyspark.sql.functions` makes columns for Spark Connect in this process, so no other Spark may be in use. When
this process ends, Sail ends with it, however that comes about. Ctrl-C reaches this process alone.

Source: Spark Connect, `pyspark.sql.connect.client.ChannelBuilder`; Sail, "Configuration".
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from kafka_dt.pipeline.errors import SailNotStarted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grpc import Channel
    from pyspark.sql import SparkSession

_SOCKET: Final = "sail.sock"
_READY: Final = "ready"
_END_S: Final = 5.0
_CONNECT_MODE: Final = "SPARK_CONNECT_MODE_ENABLED"
"""In the environment it makes pyspark's functions those of Spark Connect."""
_PRIVATE: Final = 0o077
_MEMORY_SHARE: Final = 0.6
"""What Sail may take of the machine's memory before it puts rows aside on the disk, or gives up."""


@contextmanager
def sail_session() -> Iterator[SparkSession]:
    """Give a session on a Sail of this machine, which ends with the block.

    Raises:
        SailNotStarted: the system does not allow what it needs, or a package is missing.
    """
    if sys.platform != "linux" or find_spec("pysail") is None:
        raise SailNotStarted("pysail is not installed")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafka-dt-sail-")))
        stack.enter_context(_server(folder / _SOCKET))
        stack.enter_context(_connect_mode())
        spark = _connected(folder / _SOCKET)
        stack.callback(spark.stop)
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        yield spark


@contextmanager
def _server(path: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "kafka_dt.pipeline.engines.sail_server", str(path)]
    process = subprocess.Popen(  # noqa: S603 - the command is ours
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | _settings(),
        text=True,
        start_new_session=True,
        umask=_PRIVATE,
    )
    with process:
        assert process.stdin is not None  # noqa: S101 - for mypy
        assert process.stdout is not None  # noqa: S101 - for mypy
        try:
            if (answer := process.stdout.readline().strip()) != _READY:
                raise SailNotStarted(answer or "its process has ended")
            yield
        finally:
            process.stdin.close()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _settings() -> dict[str, str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "RUST_LOG": os.environ.get("RUST_LOG", "off"),
        "SAIL_RUNTIME__MEMORY_POOL__TYPE": "greedy",
        "SAIL_RUNTIME__MEMORY_POOL__GREEDY__MAX_SIZE": str(int(memory * _MEMORY_SHARE)),
    }


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
    return cast("SparkSession", session)
