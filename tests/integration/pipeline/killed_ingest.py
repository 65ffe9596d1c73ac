"""`kafka-dt pipeline ARGUMENTS` as a process that is killed with SIGKILL at a step of its work.

    python -m tests.integration.pipeline.killed_ingest writing ingest --table ...   while Spark writes a batch's files
    python -m tests.integration.pipeline.killed_ingest 4 ingest --table ...         before its fourth change

Nothing of the process gets to know of it: neither Python nor, at first, Spark's JVM, which goes on for a moment.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from kafka_dt.cli.pipeline import pipeline
from tests.support.spark.ingests import CHANGES

_WRITING: Final = "writing"
_POLL_S: Final = 0.001


def main(step: str, *arguments: str) -> None:
    """Run the command until it is killed."""
    if step == _WRITING:
        table = Path(arguments[arguments.index("--table") + 1])
        threading.Thread(target=_kill_when_written, args=(table / "events",), daemon=True).start()
    else:
        _kill_before(int(step))
    pipeline(list(arguments))


def _kill_when_written(events: Path) -> None:
    """Wait until a task of Spark has begun a file."""
    while not list(events.glob("*.parquet")):
        time.sleep(_POLL_S)
    os.kill(os.getpid(), signal.SIGKILL)


def _kill_before(number: int) -> None:
    done = 0

    def wrapped(method: Callable[..., Any]) -> Callable[..., Any]:
        def change(*arguments: Any) -> Any:
            nonlocal done
            done += 1
            if done >= number:
                os.kill(os.getpid(), signal.SIGKILL)
            return method(*arguments)

        return change

    for kind, names in CHANGES.items():
        for name in names:
            setattr(kind, name, wrapped(getattr(kind, name)))


if __name__ == "__main__":
    main(*sys.argv[1:])
