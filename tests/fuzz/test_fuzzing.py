"""Fuzzing as tests: the seeds of every target, and a run of every target under atheris."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

SECONDS = 120 if os.environ.get("KAFKA_DT_TEST_SOAK") else 1
"""How long each target is fuzzed; all of them take less than ten seconds in `make test`."""
ROOT = Path(__file__).parents[2]

# The tests' programs do without hypothesis; what is fuzzed here are modules of tests, some of which import it.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

needs_atheris = pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None,
    reason="atheris has no wheel for this platform and Python; requirements.lock names those that it has",
)


@pytest.mark.parametrize("name", TARGETS)
def test_every_seed_keeps_the_sentence_of_its_target(name: str) -> None:
    target = TARGETS[name]
    checked = 0
    for seed in target.seeds():
        target.check(seed)
        checked += 1
    assert checked, "a target without seeds finds little"


@needs_atheris
@pytest.mark.parametrize("name", TARGETS)
def test_no_fuzzed_input_breaks_the_sentence_of_its_target(name: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", name, "--seconds", str(SECONDS)],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=SECONDS + 120,
        check=False,
    )
    assert run.returncode == 0, f"{run.stdout[-2000:]}\n{run.stderr[-6000:]}"
    assert "stat::number_of_executed_units" in run.stderr, run.stderr[-2000:]


@needs_atheris
def test_an_input_that_breaks_a_sentence_fails_the_run_and_is_kept(tmp_path: Path) -> None:
    findings = tmp_path / "findings"
    broken = "from tests.fuzz import frames, __main__ as fuzz; frames.check = lambda data: 1 / 0; fuzz.main()"
    run = subprocess.run(
        [sys.executable, "-c", broken, "frames", "--seconds", "10", "--findings", str(findings)],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )
    assert run.returncode != 0
    assert "ZeroDivisionError" in run.stdout + run.stderr
    # On a machine that stands still meanwhile, libFuzzer may find that the input took too long, and name it for that.
    assert [*findings.glob("frames-crash-*"), *findings.glob("frames-timeout-*")], run.stdout + run.stderr
