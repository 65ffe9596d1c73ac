"""How a worker process is started."""

from __future__ import annotations

import json
from pathlib import Path

from kafka_dt.app import WORKER_COMMAND
from tests.unit.processes.running_template import running_template


def test_a_worker_runs_nothing_of_the_directory_in_which_it_is_started(tmp_path: Path) -> None:
    for name in ("kafka_dt", "json"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('not the one that is installed')")
    brief = {
        "role": "worker",
        "properties": {"broker.id": "one"},
        "number": 0,
        "beat_seconds": 1,
        "memory": [],
    }
    with running_template(WORKER_COMMAND, folder=tmp_path) as template:
        worker = template.fork()
        assert worker.answer(json.dumps(brief).encode() + b"\n")[-1].startswith("broker.id: ")
        assert worker.wait() == 1


def test_a_worker_whose_supervisor_ends_before_it_has_told_the_brief_ends_as_well() -> None:
    with running_template(WORKER_COMMAND) as template:
        worker = template.fork()
        assert worker.answer(b"") == []
        assert worker.wait() == 0


def test_a_template_ends_if_it_cannot_import_what_it_is_told_beside_the_program() -> None:
    with running_template(WORKER_COMMAND) as template:
        worker = template.fork(modules="not_there")
        assert worker.first_line == ""
        assert worker.answer(b"") == []
        assert template.process.wait() == 1
