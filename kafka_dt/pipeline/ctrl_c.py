"""Have Ctrl-C end Spark's JVM and the command that has started it, and tell it as `KeyboardInterrupt`.

    with heeding_ctrl_c() as ctrl_c, spark_session("report", ctrl_c=ctrl_c) as spark:
        ...

The JVM does not see Ctrl-C: pyspark has it ignore SIGINT. Python does, perhaps in the midst of a call to the JVM whose
answer the next call would take for its own, while other threads wait for calls of theirs. With the JVM ended, all calls
fail, and none does what was not asked for.

Afterwards the process is to end: it logs nothing more, and its other threads print nothing.

Limits: a program that `spark-submit` runs has not started its JVM, and leaves its end to `spark-submit`.

Source: pyspark.java_gateway; pyspark.SparkContext, whose own handler calls the JVM.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_dt.pipeline.jvm import Jvm


class CtrlC:
    """What Ctrl-C does while Spark runs.

    Args:
        heeded: whether it does something; False where the process ignores it.
    """

    def __init__(self, *, heeded: bool) -> None:
        self._heeded = heeded
        self.jvm: Jvm | None = None
        """The JVM to end; None before it has started, or if this process has not started it."""
        self.came = False

    def heed(self) -> None:
        """Take Ctrl-C over, from pyspark if need be: a new SparkContext takes it."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._handle if self._heeded else signal.SIG_IGN)

    def _handle(self, _number: int, _frame: object) -> None:
        again, self.came = self.came, True
        _mute()
        if self.jvm is not None:
            self.jvm.kill() if again else self.jvm.end()
        raise KeyboardInterrupt


def _mute() -> None:
    """Keep from stderr how calls to the JVM fail: py4j logs it, pyspark warns, and their threads print tracebacks."""
    logging.disable()
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda _unraisable: None
    threading.excepthook = lambda _arguments: None
    sys.stderr = cast("TextIO", _OfMainThread(sys.stderr))


class _OfMainThread:
    """A stream to which only the main thread writes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, or do nothing in another thread."""
        return self._stream.write(text) if threading.current_thread() is threading.main_thread() else len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def heeding_ctrl_c() -> Iterator[CtrlC]:
    """Have Ctrl-C end the JVM during a block of the main thread, unless this process ignores Ctrl-C.

    Raises:
        KeyboardInterrupt: Ctrl-C came, whatever the block has raised for it.
    """
    before = signal.getsignal(signal.SIGINT)
    ctrl_c = CtrlC(heeded=before is not signal.SIG_IGN)
    ctrl_c.heed()
    try:
        yield ctrl_c
    except BaseException as error:
        if ctrl_c.came and not isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
    if ctrl_c.came:
        raise KeyboardInterrupt
