"""How a worker ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_dt.audit import EventType, Outcome
from tests.support.nodes.memory_node import MemoryCluster, node_on


class CannotBeLeft(MemoryCluster):
    """A cluster that raises an error of no kind of ours when a worker leaves it."""

    async def close(self) -> None:
        raise RuntimeError("the test does not let it go")


def in_files(directory: Path) -> str:
    return "".join(path.read_text() for path in directory.glob("*.jsonl"))


async def test_an_error_at_the_end_lets_the_other_parts_end(tmp_path: Path) -> None:
    running = node_on(CannotBeLeft(), kafka_dt_audit_log_dir=tmp_path)
    worker = (await running.__aenter__()).worker
    assert worker._audit is not None
    worker._audit.recorder.record(EventType.KEYS_CHANGED, Outcome.OK, keys=("k",))
    with pytest.raises(RuntimeError, match="does not let it go"):
        await running.__aexit__(None, None, None)
    assert '"keys":["k"]' in in_files(tmp_path)
    with pytest.raises(RuntimeError, match="after shutdown"):
        worker._executor.submit(print)
