"""Store ACLs in a real ZooKeeper: two nodes, and a writer of znodes as a broker writes them, or malformed ones."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from kafka_dt.identity.acls.binding import (
    RESOURCE_TYPES,
    AclBinding,
    AclOperation,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kafka_dt.identity.acls.cache import AclCache
from kafka_dt.identity.acls.filters import AclBindingFilter
from kafka_dt.identity.acls.manager import AclManager
from kafka_dt.identity.acls.store import AclConflict, AclStoreUnavailable, InvalidAcl
from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.connection.operations import Create
from kafka_dt.zookeeper.stores.acls import UNREADABLE, ZooKeeperAclStore
from kafka_dt.zookeeper.stores.change_purger import PurgeLimits
from kafka_dt.zookeeper.znodes.acls import AclZnode, ExtendedAclChangeZnode, LiteralAclChangeZnode
from tests.integration.zookeeper_nodes import client_of, eventually, now_ms, settings
from tests.support.identity.authorization import acl

USER, READ = ResourceType.USER, AclOperation.READ
PATTERNS = pytest.mark.parametrize(
    "pattern_type", [PatternType.LITERAL, PatternType.PREFIXED], ids=lambda each: each.text
)
EVERYTHING = AclBindingFilter()
HEARD_WITHIN_S = 5


@dataclass
class AclNode:
    client: ZooKeeperClient
    store: ZooKeeperAclStore
    cache: AclCache
    manager: AclManager

    def knows(self, *bindings: AclBinding) -> bool:
        return set(self.cache) == set(bindings)


@asynccontextmanager
async def node_of(connect: str, limits: PurgeLimits | None = None) -> AsyncIterator[AclNode]:
    async with client_of(settings(connect)) as client:
        store, cache = ZooKeeperAclStore(client, now_ms=now_ms, limits=limits), AclCache()
        node = AclNode(client, store, cache, AclManager(store, cache))
        await node.manager.start()
        try:
            yield node
        finally:
            await store.close()


def rule(pattern_type: PatternType, user: str = "alice", name: str = "User:Zoë *%:~") -> AclBinding:
    return acl(USER, name, user, READ, pattern=pattern_type)


async def announce(client: ZooKeeperClient, pattern: ResourcePattern) -> None:
    """Announce a change as a broker does after it has made it."""
    literal = pattern.pattern_type is PatternType.LITERAL
    change: type[LiteralAclChangeZnode | ExtendedAclChangeZnode] = (
        LiteralAclChangeZnode if literal else ExtendedAclChangeZnode
    )
    await client.multi([Create(change.PREFIX, change.encode(pattern), sequence=True)])


async def write(client: ZooKeeperClient, pattern: ResourcePattern, data: bytes) -> None:
    """Write a new znode of a pattern and announce it."""
    await client.create(AclZnode.path(pattern), data)
    await announce(client, pattern)


@PATTERNS
async def test_what_one_node_changes_another_hears(zookeeper_connect: str, pattern_type: PatternType) -> None:
    alice, bob = rule(pattern_type), rule(pattern_type, "bob")
    async with node_of(zookeeper_connect) as one, node_of(zookeeper_connect) as other:
        assert await one.manager.create([alice]) == [None]
        assert one.knows(alice)
        await eventually(lambda: other.knows(alice), HEARD_WITHIN_S)
        assert await other.manager.create([bob]) == [None]
        await eventually(lambda: one.knows(alice, bob), HEARD_WITHIN_S)
        deleted = await one.manager.delete([EVERYTHING])
        assert {each.binding for each in deleted[0]} == {alice, bob}
        await eventually(other.knows, HEARD_WITHIN_S)
        assert await one.client.exists(AclZnode.path(alice.pattern)) is None


@PATTERNS
async def test_a_list_has_what_was_acknowledged_before_it_was_asked_for(
    zookeeper_connect: str, pattern_type: PatternType
) -> None:
    async with node_of(zookeeper_connect) as one, node_of(zookeeper_connect) as other:
        for number in range(20):
            made = rule(pattern_type, name=f"User:{number}")
            await one.manager.create([made])
            assert made in await other.manager.describe(EVERYTHING)


@PATTERNS
async def test_a_node_that_starts_finds_what_is_there(zookeeper_connect: str, pattern_type: PatternType) -> None:
    rules = [rule(pattern_type, name=f"User:{number}") for number in range(300)]
    async with node_of(zookeeper_connect) as one:
        await one.manager.create(rules)
    async with node_of(zookeeper_connect) as another:
        assert another.knows(*rules)


async def test_the_paths_are_those_that_a_broker_makes(zookeeper_connect: str) -> None:
    async with node_of(zookeeper_connect) as node:
        for root in AclZnode.ROOTS.values():
            assert set(await node.client.children(root)) == {each.text for each in RESOURCE_TYPES}
        for parent in (LiteralAclChangeZnode.PARENT, ExtendedAclChangeZnode.PARENT):
            assert await node.client.children(parent) == []


@PATTERNS
async def test_nodes_that_change_one_pattern_at_once_lose_nothing(
    zookeeper_connect: str, pattern_type: PatternType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_dt.identity.acls.manager.RETRY_SECONDS", 0.01)
    rules = [rule(pattern_type, f"user-{number}") for number in range(30)]
    async with node_of(zookeeper_connect) as one, node_of(zookeeper_connect) as other:

        async def make(node: AclNode, mine: list[AclBinding]) -> None:
            for each in mine:
                while await node.manager.create([each]) != [None]:
                    pass

        await asyncio.gather(make(one, rules[::2]), make(other, rules[1::2]))
        assert set(await one.manager.describe(EVERYTHING)) == set(rules)


async def test_a_guarded_write_is_refused_when_somebody_else_was_first(zookeeper_connect: str) -> None:
    made = rule(PatternType.LITERAL)
    async with node_of(zookeeper_connect) as node:
        await node.store.write(made.pattern, (made.entry,), None)
        for version in (None, 7):
            with pytest.raises(AclConflict):
                await node.store.write(made.pattern, (), version)
        stored = await node.store.read(made.pattern)
        await node.store.write(made.pattern, (), stored.version)
        with pytest.raises(AclConflict):
            await node.store.write(made.pattern, (made.entry,), stored.version)
        assert (await node.store.read(made.pattern)).version is None


async def test_more_acls_of_a_resource_than_zookeeper_takes_are_refused_for_good(zookeeper_connect: str) -> None:
    many = [rule(PatternType.LITERAL, f"{number}" + "u" * 30_000) for number in range(50)]
    async with node_of(zookeeper_connect) as node:
        (reason,) = {str(error) for error in await node.manager.create(many)}
        assert "too many" in reason
        assert {type(error) for error in await node.manager.create(many)} == {InvalidAcl}
        assert await node.manager.create(many[:1]) == [None]


@PATTERNS
@pytest.mark.parametrize(
    "data", [b"\xff", b"{}", json.dumps({"version": 2, "acls": []}).encode()], ids=["no JSON", "no ACLs", "version 2"]
)
async def test_a_pattern_that_is_not_readable_denies_until_it_is_repaired(
    zookeeper_connect: str, pattern_type: PatternType, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    broken, fine = rule(pattern_type), rule(pattern_type, name="User:fine")
    denied = AclBinding(broken.pattern, UNREADABLE[0])
    async with node_of(zookeeper_connect) as node, client_of(settings(zookeeper_connect)) as somebody:
        await write(somebody, broken.pattern, data)
        await write(somebody, fine.pattern, AclZnode.encode((fine.entry,)))
        await eventually(lambda: node.knows(denied, fine), HEARD_WITHIN_S)
        await announce(somebody, broken.pattern)
        assert set(await node.manager.describe(EVERYTHING)) == {denied, fine}
        told = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert len(told) == 1
        assert AclZnode.path(broken.pattern) in told[0].getMessage()
        deleted = await node.manager.delete([EVERYTHING])
        assert {each.binding for each in deleted[0]} == {denied, fine}
        assert node.knows()
        assert await node.manager.create([broken]) == [None]
        assert node.knows(broken)


async def test_a_change_that_names_nothing_makes_everything_be_read(zookeeper_connect: str) -> None:
    unannounced = rule(PatternType.LITERAL)
    async with node_of(zookeeper_connect) as node, client_of(settings(zookeeper_connect)) as somebody:
        await somebody.create(AclZnode.path(unannounced.pattern), AclZnode.encode((unannounced.entry,)))
        await somebody.multi([Create(LiteralAclChangeZnode.PREFIX, b"\xff", sequence=True)])
        await eventually(lambda: node.knows(unannounced), HEARD_WITHIN_S)


async def test_a_pattern_of_a_type_that_is_not_known_is_left_alone(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as somebody:
        await somebody.ensure_path("/kafka-acl/Future/thing")
        async with node_of(zookeeper_connect) as node:
            assert node.knows()
        assert await somebody.exists("/kafka-acl/Future/thing") is not None


@pytest.mark.parametrize("announced", [b"USER:User:goes", b"\xff"], ids=["by its name", "by nothing readable"])
async def test_what_somebody_else_deletes_is_forgotten(zookeeper_connect: str, announced: bytes) -> None:
    stays, goes = rule(PatternType.LITERAL, name="User:stays"), rule(PatternType.LITERAL, name="User:goes")
    async with node_of(zookeeper_connect) as node, client_of(settings(zookeeper_connect)) as somebody:
        await node.manager.create([stays, goes])
        await somebody.delete(AclZnode.path(goes.pattern))
        await somebody.multi([Create(LiteralAclChangeZnode.PREFIX, announced, sequence=True)])
        await eventually(lambda: node.knows(stays), HEARD_WITHIN_S)


@PATTERNS
async def test_changes_are_announced_and_purged_after_a_while(
    zookeeper_connect: str, pattern_type: PatternType
) -> None:
    limits = PurgeLimits(retention_ms=0, interval_ms=20)
    literal = pattern_type is PatternType.LITERAL
    parent = LiteralAclChangeZnode.PARENT if literal else ExtendedAclChangeZnode.PARENT
    async with node_of(zookeeper_connect, limits) as node:
        await node.manager.create([rule(pattern_type)])
        stat = await node.client.exists(parent)
        assert stat is not None
        assert stat.child_version >= 1
        async with asyncio.timeout(HEARD_WITHIN_S):
            while await node.client.children(parent):
                pass


async def test_without_zookeeper_nothing_is_said_to_be_done(zookeeper_connect: str) -> None:
    made = rule(PatternType.LITERAL)
    async with node_of(zookeeper_connect) as node:
        await node.manager.create([made])
        await node.client.close()
        assert node.knows(made)
        assert isinstance((await node.manager.create([rule(PatternType.LITERAL, "bob")]))[0], AclStoreUnavailable)
        for asked in (node.manager.describe(EVERYTHING), node.manager.delete([EVERYTHING]), node.store.load()):
            with pytest.raises(AclStoreUnavailable):
                await asked
        with pytest.raises(AclStoreUnavailable):
            await node.store.write(made.pattern, (), 0)
