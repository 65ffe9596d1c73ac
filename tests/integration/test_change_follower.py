"""What follows the changes of tokens in a real ZooKeeper: what it reads, what it compares, and who waits for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from kafka_dt.tokens.staleness import Staleness
from kafka_dt.zookeeper.errors import ZooKeeperConnectionLost
from kafka_dt.zookeeper.stores.change_purger import PURGED_AT_ONCE, ChangePurger, PurgeLimits
from kafka_dt.zookeeper.stores.changes import ChangeFollower
from kafka_dt.zookeeper.znodes.kafka import TokenChangeZnode
from tests.integration.zookeeper_nodes import (
    CHANGES,
    NO_PROOF_MS,
    OF_A_STRANGER,
    announce,
    client_of,
    eventually,
    now_ms,
    settings,
    stranger,
)
from tests.support.processes.waiting import on_this_machine

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from kafka_dt.zookeeper.connection.client import ZooKeeperClient


async def nothing_is_there() -> None:
    """Compare nothing with nothing."""


async def pass_over(changes: Collection[bytes]) -> None:
    """Read no change."""
    del changes


async def following(
    client: ZooKeeperClient,
    *,
    read_changed: Callable[[Collection[bytes]], Awaitable[None]] = pass_over,
    compare: Callable[[], Awaitable[None]] = nothing_is_there,
    staleness: Staleness | None = None,
) -> ChangeFollower:
    """A follower that has looked once."""
    follower = ChangeFollower(
        client,
        CHANGES,
        TokenChangeZnode.PREFIX,
        read_changed=read_changed,
        compare=compare,
        now_ms=now_ms,
        staleness=staleness,
    )
    await client.ensure_path(CHANGES)
    await follower.catch_up()
    return follower


async def test_an_own_change_below_a_parent_that_is_gone_hides_none_below_the_next(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as client:
        read: list[bytes] = []

        async def read_changed(changes: Collection[bytes]) -> None:
            read.extend(changes)

        follower = await following(client, read_changed=read_changed)
        for _ in range(2):
            await announce(client, b"ours")
        follower.reported(f"{CHANGES}/token_change_0000000001")
        for name in (*await client.children(CHANGES), ""):
            await client.delete(f"{CHANGES}/{name}".rstrip("/"))
        await follower.catch_up()
        for number in range(3):
            await announce(client, str(number).encode())
        await follower.catch_up()
        assert read == [b"0", b"1", b"2"]


async def test_a_caller_waits_for_the_changes_before_its_call_and_not_for_those_that_go_on(
    zookeeper_connect: str,
) -> None:
    """Under a flood something new is there at each look."""
    async with client_of(settings(zookeeper_connect)) as client:
        read: list[bytes] = []

        async def read_changed(changes: Collection[bytes]) -> None:
            await announce(client, b"a later one")
            read.extend(changes)

        follower = await following(client, read_changed=read_changed, staleness=Staleness(NO_PROOF_MS))
        for wait in (follower.catch_up, follower.prove):
            await announce(client, wait.__name__.encode())
            async with asyncio.timeout(on_this_machine(5)):
                await wait()
            assert wait.__name__.encode() in read
        await follower.start()
        await eventually(lambda: len(read) > 10)
        await follower.close()


async def test_a_znode_that_cannot_be_removed_keeps_no_other_and_is_not_tried_each_second(
    zookeeper_connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One with a child of its own, or whose ACL refuses this process."""
    async with client_of(settings(zookeeper_connect)) as client:
        await client.ensure_path(f"{CHANGES}/stray/child")
        with stranger(zookeeper_connect) as other:
            other.create(f"{CHANGES}/refused", acl=OF_A_STRANGER)
            other.create(f"{CHANGES}/of_a_stranger/child", makepath=True)
        for _ in range(2 * PURGED_AT_ONCE):
            await announce(client, b"old")
        listed, children = 0, client.children

        def count(path: str) -> Awaitable[list[str]]:
            nonlocal listed
            listed += 1
            return children(path)

        monkeypatch.setattr(client, "children", count)
        purger = ChangePurger(
            client, CHANGES, PurgeLimits(retention_ms=0, leftover_age_ms=-60_000, interval_ms=10), now_ms
        )
        await client.create(f"{CHANGES}/token_change_own", b"")
        purger.add("of_a_stranger")
        purger.add("token_change_own")
        purger.start()
        async with asyncio.timeout(on_this_machine(10)):
            while len(await children(CHANGES)) > 3:  # noqa: ASYNC110 - what is gone has no event
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.2)
        assert sorted(await children(CHANGES)) == ["of_a_stranger", "refused", "stray"]
        assert listed == 1
        await purger.close()


async def test_a_parent_that_goes_after_the_write_of_a_proof_leaves_it_unproved(
    zookeeper_connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its changes have gone with it, so the proof has to compare everything."""
    async with client_of(settings(zookeeper_connect)) as client:
        comparisons = 0

        async def compare() -> None:
            nonlocal comparisons
            comparisons += 1

        follower = await following(client, compare=compare, staleness=Staleness(NO_PROOF_MS))
        assert comparisons == 1
        sync, removed = client.sync, list[asyncio.Future[None]]()

        def remove_first(path: str) -> Awaitable[None]:
            if not removed:  # ZooKeeper carries out the requests of a session in their order
                removed.append(client.delete(path))
            return sync(path)

        monkeypatch.setattr(client, "sync", remove_first)
        await follower.prove()
        await removed[0]
        assert comparisons == 2


async def test_what_is_compared_beside_the_proofs_is_tried_until_it_succeeds(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as client:
        comparisons = 0

        async def compare() -> None:
            nonlocal comparisons
            comparisons += 1
            if comparisons == 2:
                raise ZooKeeperConnectionLost("the test breaks it", sent=True)

        follower = await following(client, compare=compare, staleness=Staleness(NO_PROOF_MS))
        assert comparisons == 1
        assert follower._place is not None
        follower._place = (follower._place[0], None)  # as if this were a new session
        await follower.prove()
        await eventually(lambda: comparisons == 3)
        await follower.close()
