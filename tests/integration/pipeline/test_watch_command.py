"""`kafka-dt pipeline watch --once`: its exit status, and what it leaves for the next run."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from kafka_dt.audit import EventType, Outcome
from kafka_dt.audit.encoding import encode
from kafka_dt.cli import main
from tests.support.processes.ports import free_ports
from tests.support.spark.audit_lines import LOGIN, write_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Py4J leaves its sockets to the garbage collector."""


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Path:
    """A folder whose `logs` tell that a principal asked for a renewal that it may not have."""
    assert spark.version  # which runs already, so the command uses it
    theft = replace(
        LOGIN,
        time=time.time_ns() // 1_000_000 - 60_000,
        type=EventType.TOKEN_RENEWED,
        outcome=Outcome.REFUSED,
        reason="DELEGATION_TOKEN_OWNER_MISMATCH",
        principal="User:mallory",
    )
    write_file(tmp_path / "logs", "audit-1", [encode(theft)])
    return tmp_path


def watch(folder: Path, alert: str, *options: str) -> Result:
    given = ["--table", str(folder / "table"), "--from", str(folder / "logs"), "--to", str(folder / "to")]
    return CliRunner().invoke(main, ["pipeline", "watch", *given, "--once", "--alert", alert, *options])


def test_an_alert_that_was_not_taken_is_status_1_and_the_next_run_sends_it(folder: Path) -> None:
    away = f"webhook:http://127.0.0.1:{free_ports(1)}/hook"
    for _ in range(2):  # the second run has no event to read
        result = watch(folder, away)
        assert result.exit_code == 1
        assert "webhook 127.0.0.1 did not take 1 alert" in result.stderr
        assert result.stderr.endswith("Error: Alerts were not taken, or tokens not ended; the next run tries again.\n")
    taken = watch(folder, f"file:{folder}/alerts.jsonl")
    assert taken.exit_code == 0, taken.output
    assert len((folder / "alerts.jsonl").read_text().splitlines()) == 1


def test_a_token_that_could_not_be_ended_is_status_1(folder: Path) -> None:
    login = folder / "responder.properties"
    login.write_text(f"bootstrap.servers=127.0.0.1:{free_ports(1)}\nrequest.timeout.ms=1000\n")
    respond = ["--respond", "revoke", "--only", "foreign_renewal", "--at-most", "5/h", "--respond-config", str(login)]
    result = watch(folder, f"file:{folder}/alerts.jsonl", *respond)
    assert result.exit_code == 1, result.output
    assert "failed: token" in result.stderr


def test_with_nothing_left_it_is_status_0_and_any_user_can_read_the_metrics(folder: Path) -> None:
    before = os.umask(0o077)
    try:
        result = watch(folder, f"file:{folder}/alerts.jsonl", "--metrics", str(folder / "cases.prom"))
    finally:
        os.umask(before)
    assert result.exit_code == 0, result.output
    assert (folder / "cases.prom").stat().st_mode & 0o777 == 0o644
