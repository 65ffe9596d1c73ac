"""The store of users of a node in front of a Kafka 4 cluster: it is empty, and stays so."""

from __future__ import annotations

import pytest

from kafka_dt.kraft.no_scram_users import NoScramUsers
from kafka_dt.tokens import StoreUnavailable
from kafka_dt_protocol.sasl import ScramMechanism


async def test_there_are_no_users() -> None:
    users = NoScramUsers()
    await users.load()
    assert users.credential("alice", ScramMechanism.SHA_256) is None
    assert users.iterations(ScramMechanism.SHA_256) == ()
    assert await users.all() == {}
    assert not users.can_store("alice")
    with pytest.raises(StoreUnavailable):
        await users.change("alice", [ScramMechanism.SHA_256], {})
