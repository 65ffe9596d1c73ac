"""A worker of the supervisor's tests: as small as can be, and told by its brief how to behave.

The brief's `folder` receives one file for each start, named by worker number and process id, that holds the brief.
`refuse` is a reason not to start; a `stubborn` worker does not drain.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType

from kafka_dt.server.workers import READY


def main() -> None:
    brief = json.loads(sys.stdin.readline())
    folder = Path(brief["folder"])
    (folder / f"unfinished.{os.getpid()}").write_text(json.dumps(brief))
    (folder / f"unfinished.{os.getpid()}").rename(folder / f"{brief['number']}.{os.getpid()}")
    if brief.get("refuse"):
        sys.stdout.write(brief["refuse"] + "\n")
        sys.exit(1)

    def drain(_number: int, _frame: FrameType | None) -> None:
        (folder / f"drained.{os.getpid()}").touch()
        sys.exit(0)

    if not brief.get("stubborn"):
        signal.signal(signal.SIGTERM, drain)
    sys.stdout.write(READY + "\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
