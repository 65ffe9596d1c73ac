"""The memory of what was told, which a report and a watch may share."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from kafka_dt.pipeline.alerts import Memory
from tests.support.findings import MONDAY

ADDS = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from kafka_dt.pipeline.alerts import Memory
memory = Memory.of(Path(sys.argv[1]))
for number in range(40):
    memory.add("webhook", [f"{sys.argv[2]}-{number}"], datetime(2026, 3, 2, tzinfo=UTC))
"""


def test_two_that_share_it_keep_what_the_other_has_told(tmp_path: Path) -> None:
    path = tmp_path / "alerts.json"
    report, watch = Memory.of(path), Memory.of(path)
    report.add("webhook", ["f1"], MONDAY)
    watch.add("webhook", ["f2"], MONDAY)
    watch.add("email", ["f1"], MONDAY)
    found = Memory.of(path)
    assert all(found.knows(*each) for each in (("webhook", "f1"), ("webhook", "f2"), ("email", "f1")))
    assert watch.knows("webhook", "f1")


def test_processes_that_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "alerts.json"
    processes = [subprocess.Popen([sys.executable, "-c", ADDS, str(path), name]) for name in ("a", "b")]
    assert [process.wait(60) for process in processes] == [0, 0]
    found = Memory.of(path)
    assert all(found.knows("webhook", f"{name}-{number}") for name in ("a", "b") for number in range(40))


def test_what_one_forgets_does_not_come_back_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "alerts.json"
    Memory.of(path).add("webhook", ["old", "still"], MONDAY)
    later = MONDAY + timedelta(days=400)
    memory = Memory.of(path)
    memory.keep(["still"], later)
    memory.add("webhook", ["new"], later)
    found = Memory.of(path)
    assert [found.knows("webhook", each) for each in ("old", "still", "new")] == [False, True, True]
