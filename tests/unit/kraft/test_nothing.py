"""The stores of users and ACLs of a node in front of a Kafka 4 cluster: they are empty, and stay so."""

from __future__ import annotations

import pytest

from kafka_dt.identity.acls.binding import PatternType, ResourcePattern, ResourceType
from kafka_dt.identity.acls.cache import AclCache
from kafka_dt.identity.acls.manager import AclManager
from kafka_dt.identity.acls.store import AclStoreUnavailable
from kafka_dt.kraft.nothing import NoAcls, NoScramUsers
from kafka_dt.tokens import StoreUnavailable
from kafka_dt_protocol.sasl import ScramMechanism

PATTERN = ResourcePattern(ResourceType.TOPIC, "a", PatternType.LITERAL)


async def test_there_are_no_users() -> None:
    users = NoScramUsers()
    await users.load()
    assert users.credential("alice", ScramMechanism.SHA_256) is None
    assert users.iterations(ScramMechanism.SHA_256) == ()
    assert await users.all() == {}
    assert not users.can_store("alice")
    with pytest.raises(StoreUnavailable):
        await users.change("alice", [ScramMechanism.SHA_256], {})


async def test_there_are_no_acls() -> None:
    acls, cache = NoAcls(), AclCache()
    await AclManager(acls, cache).start()
    await acls.catch_up()
    assert len(cache) == 0
    assert not acls.can_hold("a")
    assert (await acls.read(PATTERN)).entries == ()
    with pytest.raises(AclStoreUnavailable):
        await acls.write(PATTERN, (), None)
