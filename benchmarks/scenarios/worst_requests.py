"""The worst request of each kind, before and after the login, sent to a node of one worker with 2,200 tokens.

Each row gives the size and the CPU time of the largest request. The costs of a byte are the worst of all sizes,
usually those of the smallest request. *CPU, growth* compares the largest request with the next smaller one, which has
a tenth of its size or less: the CPU time of a byte of the one, divided by that of the other. 1 is linear, and below 1
the smaller request costs more for each byte. The cost of a request that lists or deletes also grows with the stored
data, here 2,200 tokens and 500 ACLs. The benchmark counted log lines without the limit by which a node writes the
same kind of line 100 times a minute.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import Final

from benchmarks.ledger import Ledger
from benchmarks.request_costs import WatchedNode, measure
from benchmarks.request_shapes import SHAPES
from benchmarks.results import Case
from benchmarks.tokens import PreparedTokens
from kafka_dt.zookeeper.embedded.server import EmbeddedZooKeeper

TITLE: Final = "What a request can cost"
COMPARED: Final = "cpu_us_byte"
AXIS: Final = ""
ALONE: Final = True
TOKENS: Final = 2_200


@dataclass(frozen=True, slots=True)
class _Who:
    name: str


def run(ledger: Ledger) -> None:
    """Send every kind to a node of its own, so that each finds the memory of a fresh one, or all to one node."""
    folder = ledger.folder / "worst-requests"
    tokens = PreparedTokens(ledger.folder / "prepared", TOKENS)
    with ledger.console.status(f"preparing {TOKENS:,} tokens"):
        tokens.copy_to(folder / "zookeeper")
    with EmbeddedZooKeeper(folder / "zookeeper") as zookeeper:
        for number, shapes in enumerate([[shape] for shape in SHAPES] if ledger.plan.fresh_nodes else [SHAPES]):
            own = folder / f"node-{number}"
            shutil.rmtree(own, ignore_errors=True)
            with WatchedNode(own, zookeeper.address, tokens.ids[-1]) as node:
                for shape in shapes:
                    with ledger.console.status(f"{shape.name}, {shape.caller.value}"):
                        values = measure(node, shape)
                    ledger.record(Case(shape.name), _Who(shape.caller.value), 1, values)
