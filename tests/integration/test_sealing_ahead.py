"""A worker prepares as many changes of sealed tokens as `kafka.dt.sealing.ahead` says."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.nodes.node import Node, node_properties
from tests.support.processes.waiting import eventually


def cpu_seconds(node: Node) -> float:
    """Say what the one worker of a node has used."""
    (worker,) = node.workers()
    fields = Path(f"/proc/{worker}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_worker_prepares_changes_while_it_is_idle_and_none_where_it_is_told_so(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    def node(name: str, ahead: int | None) -> Node:
        sealing = {"delegation_token_metadata_encryption_enable": True, "kafka_dt_sealing_ahead": ahead}
        return Node(tmp_path, node_properties(zookeeper_connect, kafka_dt_workers=1, **sealing), name)

    with node("as-it-is", None) as preparing, node("told", 0) as told:
        # Both do the rest of a worker's work alike, however long that takes here.
        eventually(lambda: cpu_seconds(preparing) > cpu_seconds(told) + 0.7, within_s=30)
