"""The judge of detection reads what the report writes: a small month, the real commands, and every finding judged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.detection.company.company import CompanyPlan, write_company
from benchmarks.detection.running import judged
from benchmarks.detection.watching import watched
from kafka_dt.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Py4J leaves its sockets to the garbage collector."""
PLAN = CompanyPlan(seed=11, days=6, events=4_000, owners=30, incidents=19, look_alikes=5)


def run_here(command: Sequence[str], _log: Path) -> None:
    """Run a command in this process, whose Spark is there already."""
    result = CliRunner().invoke(main, ["pipeline", *command], catch_exceptions=False)
    assert result.exit_code == 0, result.output


@pytest.mark.soak
@pytest.mark.usefixtures("spark")
def test_every_finding_of_a_report_is_right_or_wrong_and_the_watch_is_judged_too(tmp_path: Path) -> None:
    month = tmp_path / "month"
    write_company(month, PLAN)
    judgement = judged(month, run_here)
    counts = json.loads((month / "report" / "report.json").read_text())["finding_counts"]
    assert judgement.right.total() + len(judgement.wrong) == sum(each["count"] for each in counts)
    assert judgement.found, "no incident of a whole company was found"
    assert len(judgement.incidents) >= 12
    stored = json.loads((month / "judgement.json").read_text())
    assert stored["precision"] == judgement.precision
    assert watched(month).found, "no incident of a whole company was seen by the watch"
