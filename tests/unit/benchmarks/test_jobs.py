from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.jobs import run_job
from tests.support.processes.process import ProcessFailed

# Works in a child of its own, so that the tree is looked at, for longer than the time between two looks.
PROGRAM = """
import subprocess, sys
child = "import time; held = bytearray(48 << 20)\\nwhile time.process_time() < 1.2: sum(held[:10000])"
subprocess.run([sys.executable, "-c", child], check=True)
print("done")
"""


def test_a_job_costs_what_its_children_cost(tmp_path: Path) -> None:
    cost = run_job([sys.executable, "-c", PROGRAM], tmp_path / "log")
    assert (tmp_path / "log").read_text() == "done\n"
    assert cost.seconds > cost.cpu_seconds > 0.3
    assert 48 < cost.peak_pss_mib <= cost.peak_rss_mib


def test_a_job_that_fails_says_what_it_wrote(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match="no such table"):
        run_job([sys.executable, "-c", "raise SystemExit('no such table')"], tmp_path / "log")
