"""Run a job to its end, and measure its time, CPU and memory.

    cost = run_job([sys.executable, "-m", "kafka_dt.cli", ...], folder / "ingest.log")

The job is a process with children: Python, Spark's JVM, and Spark's Python workers. Their memory is looked at twice a
second, so a peak that lasts less than that may be missed; CPU time is that of the last look, half a second short at
most.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.processes import ProcessTree
from tests.support.processes.process import ProcessFailed

PIPELINE: Final = (sys.executable, "-c", "from kafka_dt.cli import main; main(prog_name='kafka-dt')", "pipeline")
"""`kafka-dt pipeline`, as a user runs it."""

_LOOK_S: Final = 0.5
_LOG_END: Final = 2_000


@dataclass(frozen=True, slots=True)
class JobCost:
    """The cost of a job."""

    seconds: float
    cpu_seconds: float
    peak_pss_mib: float
    peak_rss_mib: float


def run_job(command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> JobCost:
    """Run a job to its end.

    Args:
        command: the program and its arguments.
        log: receives what it writes.
        environment: its variables; None = those of this process.

    Raises:
        ProcessFailed: it failed; says what it wrote last.
    """
    begun = time.monotonic()
    cpu = pss = rss = 0.0
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment
        ) as process,
    ):
        tree = ProcessTree(process.pid)
        ended = False
        while not ended:
            # Before the wait: /proc shows nothing about a process that has ended.
            memory, cpu = tree.memory(), max(cpu, tree.cpu_seconds())
            pss, rss = max(pss, memory.pss_mib), max(rss, memory.rss_mib)
            ended = _ends_within(process, _LOOK_S)
    seconds = time.monotonic() - begun
    if process.returncode:
        raise ProcessFailed(f"{command[0]} ended with {process.returncode}: {log.read_text()[-_LOG_END:]}")
    return JobCost(seconds, cpu, pss, rss)


def _ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
