"""Start the JVM of Spark, pass on to stderr what it prints, and end it.

    jvm = Jvm.launch(conf)
    SparkContext(conf=conf, gateway=jvm.gateway)
    jvm.end()

While the JVM starts, Ivy prints how it looks for the jars: twenty lines on stdout and stderr, also when it finds all of
them in its cache. So what the JVM prints by then is shown only if it does not start. Downloads are one line. What it
prints later is passed on line by line.

A JVM ends by itself soon after its Python, as its stdin ends then.

Source: pyspark.java_gateway; org.apache.spark.util.MavenUtils (Ivy's lines).
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import threading
import time
import traceback
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from kafka_dt.pipeline.errors import SparkNotStarted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkConf

NEEDED: Final = "it needs Java 17 or newer, in JAVA_HOME or on PATH"
_DOWNLOAD: Final = re.compile(rb"^Ivy Default Cache set to: (.+)$(?s:.*?)^downloading (\w+://[^/\s]+)", re.MULTILINE)
_FAILURE: Final = re.compile(r'^Exception in thread "main" [\w.$]+: (?P<reason>.+)', re.MULTILINE)
_UNRESOLVED: Final = "unresolved dependency"
_NO_JARS: Final = "; name a mirror in spark.jars.ivySettings, or the jars themselves in spark.jars"
_READ_BYTES: Final = 65_536
_LOOK_S: Final = 0.01
_PATIENCE_S: Final = 10.0
"""How long a JVM may take to end in order."""


@dataclass(frozen=True, slots=True)
class Jvm:
    """A JVM that this process has started."""

    gateway: Any
    """py4j's way into it."""

    @classmethod
    def launch(cls, conf: SparkConf) -> Jvm:
        """Start it.

        Args:
            conf: settings of Spark.

        Raises:
            SparkNotStarted: it ended at once; stderr has what it printed.
        """
        printed = _Printed()
        try:
            with printed.inlet() as inlet:
                gateway = launch_gateway(conf, {"stdout": inlet, "stderr": inlet})  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as error:
            raise SparkNotStarted(f"its JVM ended at once{_why(printed.show())}") from error
        except BaseException as error:
            _end_launched(error)
            if isinstance(error, Exception):
                printed.show()
            raise
        printed.drop()
        return cls(gateway)

    def end(self) -> None:
        """End it, in order if it does so in time."""
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it at once; it leaves its temporary files."""
        self._process.kill()

    @property
    def _process(self) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = self.gateway.proc
        return process


def _end_launched(error: BaseException) -> None:
    """End a JVM that pyspark was starting when an error came; pyspark does not give it away before it has started."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        process = frame.f_locals.get("proc")
        if isinstance(process, subprocess.Popen):
            process.terminate()


def _why(printed: str) -> str:
    """Say why a JVM ended that has printed this, and what to do."""
    failure = _FAILURE.search(printed)
    if failure is None:
        return f"; {NEEDED}"
    return f": {failure['reason']}{_NO_JARS if _UNRESOLVED in failure['reason'] else ''}"


class _Printed:
    """What a JVM prints; it is kept until the JVM has started, and passed on from then on."""

    def __init__(self) -> None:
        self._outlet, self._inlet = os.pipe()
        self._kept = bytearray()
        self._begun_line = b""
        self._passes_on = False
        self._lock = threading.Lock()
        """Is held while something is read and dealt with."""
        self._thread = threading.Thread(target=self._read, name="output of the JVM", daemon=True)
        self._thread.start()

    @contextmanager
    def inlet(self) -> Iterator[int]:
        """Give the file descriptor to which a JVM is to print, which it starts with in a block."""
        try:
            yield self._inlet
        finally:
            os.close(self._inlet)  # the JVM has it alone, so that its end is the end of the output

    def drop(self) -> None:
        """Forget all that was printed by now, and pass on what comes."""
        while True:
            with self._lock:
                if not self._thread.is_alive() or not _has_more(self._outlet, 0):
                    self._passes_on = True
                    return
            time.sleep(_LOOK_S)

    def show(self) -> str:
        """Show all that a JVM printed before it ended, and return it."""
        self._thread.join(_PATIENCE_S)  # a program that it has started may live on
        _show(self._kept)
        return self._kept.decode(errors="replace")

    def _pass_on(self, read: bytes) -> None:
        """Show whole lines: what this process says itself begins a line of its own."""
        lines, end, begun = read.rpartition(b"\n")
        if end:
            _show(self._begun_line + lines + end)
            self._begun_line = begun
        elif len(self._begun_line) > _READ_BYTES:
            _show(self._begun_line + begun)
            self._begun_line = b""
        else:
            self._begun_line += begun

    def _read(self) -> None:
        told = False
        while _has_more(self._outlet):
            with self._lock:
                read = os.read(self._outlet, _READ_BYTES)
                if not read:
                    os.close(self._outlet)
                    _show(self._begun_line)
                    return
                if self._passes_on:
                    self._pass_on(read)
                    continue
                self._kept += read
                if not told and (match := _DOWNLOAD.search(self._kept)):
                    cache, server = (each.decode(errors="replace") for each in match.groups())
                    _show(f"Spark's jars are not in {cache}; they are downloaded from {server}\n".encode())
                    told = True


def _has_more(descriptor: int, timeout_ms: int | None = None) -> bool:
    """Say whether something can be read, or the end was reached; without a timeout it waits for that."""
    poll = select.poll()  # unlike select(2), for any number of open files
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(timeout_ms))


def _show(printed: bytes | bytearray) -> None:
    # A JVM whose output is not read stands still, so the reading goes on also where stderr is closed.
    with suppress(OSError, ValueError):
        sys.stderr.write(printed.decode(errors="replace"))
        sys.stderr.flush()
