"""The wall clock that tests of faults move: it moves for a running program, and no other clock does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.processes.wall_clock import NoCompiler, WallClock

PROGRAM = """\
import datetime, time
while True:
    input()
    time.sleep(0.001)
    print(time.time(), time.time_ns() / 1e9, datetime.datetime.now().timestamp(), time.monotonic(), flush=True)
"""
NEAR_S = 20.0


def test_a_moved_wall_clock_is_off_by_what_it_was_told_and_the_monotonic_one_is_not(tmp_path: Path) -> None:
    try:
        clock = WallClock(tmp_path)
    except NoCompiler as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))
    environment = {**os.environ, **clock.environment}
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        for off_s in (0, 2_400, -60, 0):
            clock.move(off_s)
            print(file=program.stdin, flush=True)
            *wall, monotonic = map(float, program.stdout.readline().split())
            assert wall == pytest.approx([time.time() + off_s] * 3, abs=NEAR_S)
            assert monotonic == pytest.approx(time.monotonic(), abs=NEAR_S)
        program.terminate()
