"""Work on every token with Spark: a million sealed ones in a ZooKeeper, through the data source and `verify`.

The data source's job reads and opens every token and counts them by owner; `kafka-dt pipeline verify` checks MAC, JSON,
name, key and times of each. Both start Spark on this machine's cores with the commands' defaults, beside ZooKeeper.
Opening a sealed token costs a PBKDF2 of half a millisecond, which bounds both.
"""

from __future__ import annotations

import json
import sys
from typing import Final

from benchmarks.jobs import JobCost, run_job
from benchmarks.ledger import Ledger
from benchmarks.metrics import PEAK, RATE, ZOOKEEPER_CPU
from benchmarks.processes import ProcessTree
from benchmarks.results import Case
from benchmarks.scenarios.pipeline import COMMAND, Step
from benchmarks.tokens import PreparedTokens, heap_mb
from kafka_dt.zookeeper.embedded import EmbeddedZooKeeper
from tests.support.broker import SECRET_KEY
from tests.support.process import ProcessFailed

TITLE: Final = "Every token, with Spark"
COMPARED: Final = RATE
AXIS: Final = "tokens a second"
ALONE: Final = True
_START_TIMEOUT_S: Final = 300.0
INVENTORY, VERIFY = Step("data source"), Step("verify")


def run(ledger: Ledger) -> None:
    """Read and verify as many tokens as the plan says."""
    tokens = ledger.plan.stored_tokens
    folder = ledger.folder / "stored-tokens"
    with ledger.console.status(f"preparing {tokens:,} sealed tokens"):
        PreparedTokens(ledger.folder / "prepared", tokens, sealed=True).copy_to(folder)
    secret_key, config = folder / "secret.key", folder / "server.properties"
    secret_key.write_text(SECRET_KEY)
    zookeeper = EmbeddedZooKeeper(folder, heap_mb=heap_mb(tokens))
    zookeeper.start(_START_TIMEOUT_S)
    try:
        settings = (f"zookeeper.connect={zookeeper.address}", f"delegation.token.secret.key=file:{secret_key}")
        config.write_text("".join(f"{line}\n" for line in settings))
        inventory = (sys.executable, "-m", "benchmarks.inventory_job", zookeeper.address, f"file:{secret_key}")
        verify = (*COMMAND, "verify", "--config", str(config), "--output", "json")
        for round_number in range(1, ledger.plan.pipeline_rounds + 1):
            for step, command in ((INVENTORY, inventory), (VERIFY, verify)):
                _measure(ledger, zookeeper, (step, round_number), command)
    finally:
        zookeeper.stop()


def _measure(ledger: Ledger, zookeeper: EmbeddedZooKeeper, which: tuple[Step, int], command: tuple[str, ...]) -> None:
    step, round_number = which
    tokens, log = ledger.plan.stored_tokens, ledger.folder / "stored-tokens" / "job.log"
    assert zookeeper.server_pid is not None, "it does not run"
    server = ProcessTree(zookeeper.server_pid)
    used = server.cpu_seconds()
    with ledger.console.status(f"{step.name}, {tokens:,} tokens"):
        cost = run_job(command, log)
    text = log.read_text()
    counted = json.loads(text[text.index("{") : text.rindex("}") + 1])["total" if step is VERIFY else "tokens"]
    if counted != tokens:
        raise ProcessFailed(f"{step.name} has seen {counted} of {tokens} tokens: {text[-1000:]}")
    ledger.record(
        Case("every token", tokens=tokens),
        step,
        round_number,
        _values(tokens, cost) | {ZOOKEEPER_CPU: (server.cpu_seconds() - used) / tokens * 1000},
    )


def _values(tokens: int, cost: JobCost) -> dict[str, float]:
    return {RATE: tokens / cost.seconds, "seconds": cost.seconds, "cpu_s": cost.cpu_seconds, PEAK: cost.peak_pss_mib}
