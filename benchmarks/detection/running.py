"""Runs the report on a month, as a user does, and judges what it found.

    judgement = judged(folder)      # folder/events, folder/truth.jsonl; leaves folder/judgement.json

The table and the report stay in the folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.detection.judging import Judgement, findings_of, judge
from benchmarks.detection.stories import EVENTS, TRUTH, load_stories
from benchmarks.jobs import PIPELINE, run_job

Run = Callable[[Sequence[str], Path], None]
"""Runs a command of `kafka-dt pipeline`; the file receives what it prints."""


def as_user(command: Sequence[str], log: Path) -> None:
    """Run a command in a process of its own.

    Raises:
        ProcessFailed: it failed.
    """
    run_job([*PIPELINE, *command], log)


def judged(folder: Path, run: Run = as_user) -> Judgement:
    """Ingest the events of a folder, report on them with all defaults, and compare the findings with the truth."""
    table, report = folder / "table", folder / "report"
    run(["ingest", "--once", "--from", str(folder / EVENTS), "--table", str(table)], folder / "ingest.log")
    run(["report", "--table", str(table), "--to", str(report)], folder / "report.log")
    judgement = judge(findings_of(report), load_stories(folder / TRUTH))
    (folder / "judgement.json").write_text(json.dumps(judgement.as_json(), indent=2) + "\n", encoding="ascii")
    return judgement
