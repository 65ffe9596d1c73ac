"""Two nodes in front of a broker that fails: no answer contradicts another; `test_three_brokers.py` is longer."""

from __future__ import annotations

from typing import Final

from tests.interop.kraft.fault_load import Nodes, run_with_faults
from tests.support.brokers.kraft import KraftCluster

STALENESS_MS: Final = 30_000
"""The default."""


async def test_no_answer_contradicts_another_while_the_broker_is_killed_and_hangs(
    cluster: KraftCluster, nodes: Nodes
) -> None:
    await run_with_faults(cluster, nodes, None, seconds=12, longest_fault_s=2, staleness_ms=STALENESS_MS)
