"""How ACLs are created, listed and deleted, on a store in memory."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from kafka_dt.identity.acls import manager as acl_manager
from kafka_dt.identity.acls.binding import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kafka_dt.identity.acls.cache import AclCache
from kafka_dt.identity.acls.filters import AccessControlEntryFilter, AclBindingFilter, ResourcePatternFilter
from kafka_dt.identity.acls.manager import MAX_RETRIES, AclManager
from kafka_dt.identity.acls.store import AclStoreUnavailable, InvalidAcl
from kafka_dt.tokens import Principal
from tests.support.identity.authorization import MemoryAclStore, acl

USER, CLUSTER = ResourceType.USER, ResourceType.CLUSTER
READ, ALL = AclOperation.READ, AclOperation.ALL
ALICE = acl(USER, "User:x", "alice", READ)
BOB = acl(USER, "User:x", "bob", READ)
CAROL = acl(USER, "User:y", "carol", READ)
PREFIXED = acl(USER, "User:", "alice", ALL, pattern=PatternType.PREFIXED)
EVERYTHING = AclBindingFilter()


class World:
    """A manager and the store of its cluster."""

    def __init__(self) -> None:
        self.store = MemoryAclStore()
        self.cache = AclCache()
        self.manager = AclManager(self.store, self.cache)

    async def all(self) -> set[AclBinding]:
        return set(await self.manager.describe(EVERYTHING))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(acl_manager, "RETRY_SECONDS", 0)
    return World()


def about(name: str, pattern_type: PatternType = PatternType.ANY) -> AclBindingFilter:
    return AclBindingFilter(ResourcePatternFilter(USER, name, pattern_type))


def of(user: str) -> AclBindingFilter:
    return AclBindingFilter(entry=AccessControlEntryFilter(principal=f"User:{user}"))


async def test_what_is_created_is_listed_and_known_at_once(world: World) -> None:
    assert await world.manager.create([ALICE, CAROL, BOB, PREFIXED, ALICE]) == [None] * 5
    assert set(world.cache) == {ALICE, BOB, CAROL, PREFIXED}
    assert await world.all() == {ALICE, BOB, CAROL, PREFIXED}
    assert world.store.writes == 3


async def test_to_create_what_is_there_writes_nothing(world: World) -> None:
    await world.manager.create([ALICE, BOB])
    assert await world.manager.create([BOB]) == [None]
    assert world.store.writes == 1


@pytest.mark.parametrize(
    "wrong",
    [
        ResourcePattern(CLUSTER, "other", PatternType.LITERAL),
        ResourcePattern(CLUSTER, "kafka-", PatternType.PREFIXED),
        ResourcePattern(CLUSTER, "*", PatternType.LITERAL),
        ResourcePattern(USER, "", PatternType.LITERAL),
        ResourcePattern(USER, "", PatternType.PREFIXED),
        ResourcePattern(USER, "a/b", PatternType.LITERAL),
        ResourcePattern(USER, "..", PatternType.LITERAL),
        ResourcePattern(USER, "a\0", PatternType.PREFIXED),
        ResourcePattern(ResourceType.UNKNOWN, "x", PatternType.LITERAL),
        ResourcePattern(ResourceType.ANY, "x", PatternType.LITERAL),
        ResourcePattern(USER, "x", PatternType.ANY),
        ResourcePattern(USER, "x", PatternType.MATCH),
        ResourcePattern(USER, "x", PatternType.UNKNOWN),
    ],
    ids=repr,
)
async def test_a_pattern_that_cannot_be_is_refused_and_the_others_are_made(
    world: World, wrong: ResourcePattern
) -> None:
    made, error, also_made = await world.manager.create([ALICE, replace(ALICE, pattern=wrong), CAROL])
    assert (made, also_made) == (None, None)
    assert isinstance(error, InvalidAcl)
    assert str(error).endswith(".")
    assert await world.all() == {ALICE, CAROL}


@pytest.mark.parametrize("operation", [AclOperation.ANY, AclOperation.UNKNOWN])
async def test_an_entry_says_one_operation(world: World, operation: AclOperation) -> None:
    (error,) = await world.manager.create([replace(ALICE, entry=replace(ALICE.entry, operation=operation))])
    assert isinstance(error, InvalidAcl)


@pytest.mark.parametrize("permission", [AclPermissionType.ANY, AclPermissionType.UNKNOWN])
async def test_an_entry_says_one_permission(world: World, permission: AclPermissionType) -> None:
    (error,) = await world.manager.create([replace(ALICE, entry=replace(ALICE.entry, permission_type=permission))])
    assert isinstance(error, InvalidAcl)


async def test_the_cluster_has_one_name(world: World) -> None:
    assert await world.manager.create([acl(CLUSTER, "kafka-cluster", "alice", AclOperation.ALTER)]) == [None]


async def test_what_others_have_changed_is_listed_and_deleted(world: World) -> None:
    world.store.put(ALICE.pattern, ALICE.entry, BOB.entry)
    assert await world.all() == {ALICE, BOB}
    world.store.put(CAROL.pattern, CAROL.entry)
    ((deleted,),) = await world.manager.delete([of("carol")])
    assert (deleted.binding, deleted.error) == (CAROL, None)
    assert await world.all() == {ALICE, BOB}


async def test_each_filter_is_told_what_it_deleted_and_the_first_counts(world: World) -> None:
    await world.manager.create([ALICE, BOB, CAROL, PREFIXED])
    results = await world.manager.delete([of("bob"), about("User:x"), about("User:z"), about("User:x")])
    assert [[each.binding for each in deleted] for deleted in results] == [[BOB], [ALICE], [], []]
    assert await world.all() == {CAROL, PREFIXED}
    assert ALICE.pattern not in world.store.stored
    results = await world.manager.delete([about("User:q", PatternType.MATCH)])
    assert [[each.binding for each in deleted] for deleted in results] == [[PREFIXED]]


async def test_what_no_filter_means_is_left_and_writes_nothing(world: World) -> None:
    await world.manager.create([ALICE])
    assert await world.manager.delete([of("nobody"), about("a/b"), about("")]) == [[], [], []]
    assert world.store.writes == 1


async def test_a_change_begins_again_when_somebody_else_was_first(world: World) -> None:
    await world.manager.create([ALICE])
    world.store.conflicts = MAX_RETRIES
    assert await world.manager.create([BOB]) == [None]
    world.store.conflicts = 1
    ((deleted,),) = await world.manager.delete([of("alice")])
    assert deleted.error is None
    assert await world.all() == {BOB}


async def test_a_change_that_always_comes_second_is_given_up(world: World) -> None:
    await world.manager.create([ALICE])
    world.store.conflicts = 1_000
    created, also_created = await world.manager.create([BOB, CAROL])
    assert isinstance(created, AclStoreUnavailable)
    assert isinstance(also_created, AclStoreUnavailable)
    ((deleted,),) = await world.manager.delete([of("alice")])
    assert isinstance(deleted.error, AclStoreUnavailable)
    assert deleted.binding == ALICE


async def test_changes_of_one_pattern_wait_for_each_other(world: World) -> None:
    users = [acl(USER, "User:x", f"user-{number}", READ) for number in range(50)]
    assert await asyncio.gather(*(world.manager.create([each]) for each in users)) == [[None]] * 50
    assert world.store.writes == 50
    assert await world.all() == set(users)


async def test_while_the_store_is_cut_off_nothing_is_said_to_be_done(world: World) -> None:
    await world.manager.create([ALICE])
    world.store.connected = False
    assert isinstance((await world.manager.create([BOB]))[0], AclStoreUnavailable)
    with pytest.raises(AclStoreUnavailable):
        await world.manager.delete([EVERYTHING])
    with pytest.raises(AclStoreUnavailable):
        await world.manager.describe(EVERYTHING)
    with pytest.raises(AclStoreUnavailable):
        await world.manager.start()


async def test_entries_of_a_newer_kafka_stay_and_are_not_listed(world: World) -> None:
    newer = replace(ALICE.entry, operation=AclOperation.UNKNOWN)
    world.store.put(ALICE.pattern, newer, BOB.entry)
    await world.manager.start()
    assert await world.all() == {BOB}
    results = await world.manager.delete([EVERYTHING])
    assert [each.binding for each in results[0]] == [BOB]
    assert world.store.stored[ALICE.pattern].entries == (newer,)
    assert await world.manager.create([BOB]) == [None]
    assert world.store.stored[ALICE.pattern].entries == (newer, BOB.entry)


def test_errors_say_what_is_wrong() -> None:
    assert str(AclStoreUnavailable("cut off")) == "The store of ACLs is not available: cut off."
    assert str(Principal.user("x")) in str(ALICE.pattern)


async def test_others_have_their_turn_while_many_patterns_are_looked_for_among_many_filters(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acl_manager, "PATTERNS_A_TURN", 1)
    patterns = [acl(ResourceType.TOPIC, f"t{number}", "bob", AclOperation.READ) for number in range(50)]
    await world.manager.create(patterns)
    match = ResourcePatternFilter(ResourceType.TOPIC, "no such name", PatternType.MATCH)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    await world.manager.delete([AclBindingFilter(match)] * 5_000)
    counting.cancel()
    assert turns >= len(patterns)
