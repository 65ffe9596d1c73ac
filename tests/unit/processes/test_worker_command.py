"""How a worker process is started."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from kafka_dt.app import WORKER_COMMAND


def test_a_worker_runs_nothing_of_the_directory_in_which_it_is_started(tmp_path: Path) -> None:
    for name in ("kafka_dt", "json"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('not the one that is installed')")
    brief = {"properties": {"broker.id": "one"}, "number": 0, "log_level": 20, "log_lines": 100, "beat_seconds": 1}
    worker = subprocess.run(
        WORKER_COMMAND, cwd=tmp_path, input=json.dumps(brief) + "\n", capture_output=True, text=True, check=False
    )
    assert worker.stdout.splitlines()[-1].startswith("broker.id: "), worker.stderr
    assert worker.returncode == 1
