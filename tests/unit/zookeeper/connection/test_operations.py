"""The values of requests and answers show no data: that of a SCRAM user has the keys of its password."""

from __future__ import annotations

import pytest

from kafka_dt.zookeeper.connection.operations import Create, SetData, Stat, Znode

STAT = Stat(*range(8))


@pytest.mark.parametrize(
    "value",
    [Create("/config/users/alice", b"hunter2"), SetData("/config/users/alice", b"hunter2"), Znode(b"hunter2", STAT)],
    ids=lambda value: type(value).__name__,
)
def test_a_value_shows_no_data(value: Create | SetData | Znode) -> None:
    assert value.data == b"hunter2"
    assert "hunter2" not in repr(value)
