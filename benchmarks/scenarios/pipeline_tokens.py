"""Work on every token with Spark: a million plain ones in a ZooKeeper, and a million sealed ones.

The data source's job reads every token and counts them by owner; `kafka-dt pipeline verify` checks MAC, JSON, name, key
and times of each. Both start Spark on this machine's cores with the commands' defaults, beside ZooKeeper. To open a
sealed token costs a PBKDF2 of half a millisecond, which limits both.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

from benchmarks.jobs import PIPELINE, run_job
from benchmarks.ledger import Ledger
from benchmarks.metrics import PEAK, RATE, ZOOKEEPER_CPU
from benchmarks.processes import ProcessTree
from benchmarks.results import Case
from benchmarks.scenarios.pipeline import Step
from benchmarks.tokens import PreparedTokens, heap_mb
from kafka_dt.zookeeper.embedded.server import EmbeddedZooKeeper
from tests.support.brokers.broker import SECRET_KEY
from tests.support.processes.process import ProcessFailed

TITLE: Final = "Every token, with Spark"
COMPARED: Final = RATE
AXIS: Final = "tokens a second"
ALONE: Final = True
_START_TIMEOUT_S: Final = 300.0
INVENTORY, VERIFY = Step("data source"), Step("verify")


def run(ledger: Ledger) -> None:
    """Read and verify as many tokens as the plan says."""
    for name, sealed in (("plain", False), ("sealed", True)):
        _measure(ledger, Case(name, tokens=ledger.plan.stored_tokens), sealed=sealed)


def _measure(ledger: Ledger, case: Case, *, sealed: bool) -> None:
    folder = ledger.folder / f"{case.operation}-tokens"
    with ledger.console.status(f"preparing {case.tokens:,} {case.operation} tokens"):
        PreparedTokens(ledger.folder / "prepared", case.tokens, sealed=sealed).copy_to(folder)
    secret_key, config = folder / "secret.key", folder / "server.properties"
    secret_key.write_text(SECRET_KEY)
    zookeeper = EmbeddedZooKeeper(folder, heap_mb=heap_mb(case.tokens))
    zookeeper.start(_START_TIMEOUT_S)
    assert zookeeper.server_pid is not None, "it does not run"
    server = ProcessTree(zookeeper.server_pid)
    try:
        settings = (f"zookeeper.connect={zookeeper.address}", f"delegation.token.secret.key=file:{secret_key}")
        config.write_text("".join(f"{line}\n" for line in settings))
        inventory = (sys.executable, "-m", "benchmarks.inventory_job", zookeeper.address, f"file:{secret_key}")
        verify = (*PIPELINE, "verify", "--config", str(config), "--output", "json")
        for round_number in range(1, ledger.plan.pipeline_rounds + 1):
            for step, command in ((INVENTORY, inventory), (VERIFY, verify)):
                with ledger.console.status(f"{step.name}, {case.label}"):
                    values = _done(step, case.tokens, command, server, folder / "job.log")
                ledger.record(case, step, round_number, values)
    finally:
        zookeeper.stop()


def _done(step: Step, tokens: int, command: tuple[str, ...], server: ProcessTree, log: Path) -> dict[str, float]:
    """Run a command and say what it cost, when it has seen every token."""
    used = server.cpu_seconds()
    cost = run_job(command, log)
    text = log.read_text()
    counted = json.loads(text[text.index("{") : text.rindex("}") + 1])["total" if step is VERIFY else "tokens"]
    if counted != tokens:
        raise ProcessFailed(f"{step.name} has seen {counted} of {tokens} tokens: {text[-1000:]}")
    return {
        RATE: tokens / cost.seconds,
        "seconds": cost.seconds,
        "cpu_s": cost.cpu_seconds,
        PEAK: cost.peak_pss_mib,
        ZOOKEEPER_CPU: (server.cpu_seconds() - used) / tokens * 1000,
    }
