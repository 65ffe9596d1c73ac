"""A run with failed tests ends with their names and reasons: continuous integration shows the last lines only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LONG_REASON = """\
def test_fails():
    log = "".join(f"line {number}\\n" for number in range(100))
    assert not log, f"the node failed for {'x' * 80}\\n{log}"
"""
FAKE_PYTHON = """\
#!/bin/sh
case "$*" in
    *--ignore*/pipeline) echo "FAILED tests/integration/test_a.py::test_one - first"; exit 1 ;;
    *tests/unit) sleep 0.2; echo "FAILED tests/unit/test_b.py::test_two - second"; seq 100; exit 1 ;;
esac
"""


def lines_of(*command: str | Path) -> list[str]:
    """Run a command that fails, and give the lines that it has printed."""
    ran = subprocess.run(
        [*map(str, command)],
        env={**os.environ, "CI": "true", "MAKEFLAGS": "", "PYTHONPATH": ""},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ran.returncode != 0
    return ran.stdout.splitlines()


def test_pytest_ends_with_each_failed_test_and_the_first_line_of_its_reason(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "test_long_reason.py").write_text(LONG_REASON)
    options = ("-c", ROOT / "pyproject.toml", "--rootdir", tmp_path, "-p", "no:cacheprovider")
    *_, failed, counts = lines_of(sys.executable, "-m", "pytest", *options, tmp_path)
    assert failed.startswith("FAILED ")
    assert failed.endswith(f"test_fails - AssertionError: the node failed for {'x' * 80}")
    assert "1 failed" in counts


def test_make_test_ends_with_the_failed_tests_of_all_parts(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(FAKE_PYTHON)
    python.chmod(0o755)
    (tmp_path / "Makefile").symlink_to(ROOT / "Makefile")
    (tmp_path / "protocol").mkdir()
    for needed in ("requirements.lock", "pyproject.toml", "protocol/pyproject.toml", "ready"):
        (tmp_path / needed).touch()
    lines = lines_of("make", "-C", tmp_path, "READY=ready", f"BIN={tmp_path}", "test")
    assert [line for line in lines[-6:] if line.startswith("FAILED")] == [
        "FAILED tests/integration/test_a.py::test_one - first",
        "FAILED tests/unit/test_b.py::test_two - second",
    ]
