"""Ingest and watch are killed a hundred times at random: no event is lost or doubled, and each finding is told.

Each file has tokens that a principal tries to renew without the right to: each token is a finding of the watch, and the
principal is one.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from kafka_dt.audit import AuditEvent, EventType, Outcome
from kafka_dt.audit.encoding import encode
from tests.support.java.jvm import Java
from tests.support.processes.process import ChildProcess
from tests.support.spark.audit_lines import LOGIN, stored_ids, write_file
from tests.support.spark.quick_spark import QUICK_SPARK, options

ROUNDS: Final = 50
"""In each of them both are killed."""
LONGEST_S: Final = 15.0
"""How long they live at most: a start takes some seconds, a batch about one."""
TIMEOUT_S: Final = 180.0
MALLORY: Final = "User:mallory"


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_both_go_on_as_if_nothing_had_been(spark_java: Java, delta_jars: str, tmp_path: Path) -> None:
    chance = random.Random(11)  # noqa: S311 - when to kill
    nodes, told = tmp_path / "nodes", tmp_path / "alerts.jsonl"
    common = ["--table", str(tmp_path / "table"), "--from", str(nodes), "--master=local[1]"]
    common += [f"--conf=spark.jars={delta_jars}", *options(QUICK_SPARK)]
    home = str(spark_java.executable.resolve().parent.parent)
    more = {"ingest": [], "watch": ["--to", str(tmp_path / "watch"), f"--alert=file:{told}", "--alert-on=low"]}

    def started(name: str, *when: str) -> ChildProcess:
        command = [str(Path(sys.executable).with_name("kafka-dt")), "pipeline", name, *when, *common, *more[name]]
        return ChildProcess(name, command, tmp_path / f"{name}.log", {"JAVA_HOME": home})

    made: list[AuditEvent] = []
    for number in range(ROUNDS):
        with ExitStack() as stack:
            running = [stack.enter_context(started(name, "--interval=200ms")) for name in more]
            until_s = time.monotonic() + chance.uniform(0.5, LONGEST_S)
            while time.monotonic() < until_s:
                few = list(tries(len(made), 3))
                write_file(nodes, f"audit-{number}-{len(made)}", map(encode, few))
                made += few
                time.sleep(chance.uniform(0.2, 2.0))
            for process in running:
                assert process.pid is not None
                os.kill(process.pid, signal.SIGKILL)
                process.wait(TIMEOUT_S)
    for name in more:
        with started(name, "--once") as process:
            assert process.wait(TIMEOUT_S) == 0, process.output()

    assert stored_ids(tmp_path / "table") == {each.id: 1 for each in made}
    findings = [finding for line in told.read_text().splitlines() for finding in json.loads(line)["case"]["timeline"]]
    subjects = {each.token_id for each in made} | {MALLORY}
    assert {finding["subject"] for finding in findings} == subjects
    assert len({finding["finding"] for finding in findings}) == len(subjects)


def tries(first: int, count: int) -> list[AuditEvent]:
    """Renewals of tokens by a principal that has their HMACs and may not renew them."""
    now_ms = time.time_ns() // 1_000_000
    return [
        replace(
            LOGIN,
            id=f"00c0ffee-{first + index}",
            time=now_ms,
            type=EventType.TOKEN_RENEWED,
            outcome=Outcome.REFUSED,
            reason="DELEGATION_TOKEN_OWNER_MISMATCH",
            principal=MALLORY,
            owner=f"User:o{first + index}",
            token_id=f"t{first + index}",
        )
        for index in range(count)
    ]
