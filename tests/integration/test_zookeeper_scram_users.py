"""SCRAM users as kafka-configs.sh writes them: read at the start, and followed."""

from __future__ import annotations

import logging
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from kafka_dt.zookeeper.connection.operations import Create, Delete, SetData
from kafka_dt.zookeeper.stores.change_purger import PurgeLimits
from kafka_dt.zookeeper.stores.scram_users import ZooKeeperScramUsers
from kafka_dt.zookeeper.znodes.kafka import ConfigChangeZnode, UserZnode
from kafka_dt_protocol.sasl.scram import ScramMechanism, derive_credential
from tests.integration.zookeeper_nodes import OF_A_STRANGER, client_of, eventually, now_ms, settings, stranger
from tests.support.processes.waiting import on_this_machine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest

    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

ONE = derive_credential(ScramMechanism.SHA_256, "one", b"salt", 4096)
OTHER = derive_credential(ScramMechanism.SHA_512, "other", b"pepper", 8192)


@asynccontextmanager
async def _users(connect: str, limits: PurgeLimits | None = None) -> AsyncIterator[ZooKeeperScramUsers]:
    async with client_of(settings(connect)) as client:
        users = ZooKeeperScramUsers(client, now_ms=now_ms, limits=limits)
        await users.start()
        try:
            yield users
        finally:
            await users.close()


async def _alter(client: ZooKeeperClient, sanitized_user: str, data: bytes) -> None:
    """What kafka-configs.sh does: write the user, then announce it."""
    path = UserZnode.path(sanitized_user)
    await client.ensure_path(UserZnode.PARENT)
    await client.ensure_path(ConfigChangeZnode.PARENT)
    if await client.exists(path) is None:
        await client.create(path, data)
    else:
        await client.multi([SetData(path, data)])
    await _announce(client, ConfigChangeZnode.encode(sanitized_user))


async def _announce(client: ZooKeeperClient, content: bytes) -> None:
    await client.multi([Create(ConfigChangeZnode.PREFIX, content, sequence=True)])


async def test_users_are_known_at_the_start(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as admin:
        await _alter(admin, "alice", UserZnode.encode({ScramMechanism.SHA_256: ONE, ScramMechanism.SHA_512: OTHER}))
        await _alter(admin, "CN%3Dbob%2A%20x", UserZnode.encode({ScramMechanism.SHA_256: ONE}))
        await _alter(admin, "<default>", b'{"version":1,"config":{"producer_byte_rate":"1024"}}')
    async with _users(zookeeper_connect) as users:
        assert users.credential("alice", ScramMechanism.SHA_256) == ONE
        assert users.credential("alice", ScramMechanism.SHA_512) == OTHER
        assert users.credential("CN=bob* x", ScramMechanism.SHA_256) == ONE
        assert users.credential("CN=bob* x", ScramMechanism.SHA_512) is None
        assert users.credential("<default>", ScramMechanism.SHA_256) is None
        assert len(users) == 2


async def test_a_user_whose_acl_refuses_this_node_harms_no_other(
    zookeeper_connect: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with _users(zookeeper_connect) as users, client_of(settings(zookeeper_connect)) as admin:
        await _alter(admin, "alice", UserZnode.encode({ScramMechanism.SHA_256: ONE}))
        await _alter(admin, "bob", UserZnode.encode({ScramMechanism.SHA_256: ONE}))
        await users.catch_up()
        with stranger(zookeeper_connect) as kazoo:
            kazoo.set_acls(UserZnode.path("alice"), OF_A_STRANGER)
        await _announce(admin, ConfigChangeZnode.encode("alice"))
        await users.catch_up()
        assert users.credential("alice", ScramMechanism.SHA_256) is None
        assert "the SCRAM credentials in /config/users/alice are not readable" in caplog.text
        async with _users(zookeeper_connect) as restarted:
            assert restarted.credential("bob", ScramMechanism.SHA_256) == ONE


async def test_changes_of_users_are_followed(zookeeper_connect: str) -> None:
    async with _users(zookeeper_connect) as users, client_of(settings(zookeeper_connect)) as admin:
        assert users.credential("alice", ScramMechanism.SHA_256) is None
        await _alter(admin, "alice", UserZnode.encode({ScramMechanism.SHA_256: ONE}))
        assert await eventually(lambda: users.credential("alice", ScramMechanism.SHA_256) == ONE) < on_this_machine(1)
        await _alter(admin, "alice", UserZnode.encode({ScramMechanism.SHA_512: OTHER}))
        await users.catch_up()
        assert users.credential("alice", ScramMechanism.SHA_256) is None
        assert users.credential("alice", ScramMechanism.SHA_512) == OTHER
        await _alter(admin, "alice", b'{"version":1,"config":{}}')
        await users.catch_up()
        assert len(users) == 0
        await _alter(admin, "alice", UserZnode.encode({ScramMechanism.SHA_256: ONE}))
        await admin.delete(UserZnode.path("alice"))
        await _announce(admin, ConfigChangeZnode.encode("alice"))
        await users.catch_up()
        assert len(users) == 0


async def test_what_is_not_readable_leaves_a_user_without_credentials_and_the_others_alone(
    zookeeper_connect: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with client_of(settings(zookeeper_connect)) as admin:
        await _alter(admin, "broken", b'{"version":1,"config":{"SCRAM-SHA-256":"salt=s3cret"}}')
        await _alter(admin, "percent%", UserZnode.encode({ScramMechanism.SHA_256: ONE}))
        await _alter(admin, "alice", UserZnode.encode({ScramMechanism.SHA_256: ONE}))
        caplog.set_level(logging.WARNING)
        async with _users(zookeeper_connect) as users:
            assert len(users) == 1
            for content in (b"", b"no json", b"{}", b"[]", b'{"version":2,"entity_path":"topics/a"}', b"\xff"):
                await _announce(admin, content)
            await _alter(admin, "bob", UserZnode.encode({ScramMechanism.SHA_256: ONE}))
            await users.catch_up()
            assert users.credential("bob", ScramMechanism.SHA_256) == ONE
            assert users.credential("alice", ScramMechanism.SHA_256) == ONE
    assert "/config/users/broken" in caplog.text
    assert "s3cret" not in caplog.text


async def test_a_missed_change_means_reading_all_users_again(zookeeper_connect: str) -> None:
    async with _users(zookeeper_connect) as users, client_of(settings(zookeeper_connect)) as admin:
        await _alter(admin, "alice", UserZnode.encode({ScramMechanism.SHA_256: ONE}))
        await users.catch_up()
        await admin.multi(
            [
                Create(UserZnode.path("bob"), UserZnode.encode({ScramMechanism.SHA_256: ONE})),
                Delete(UserZnode.path("alice")),
                Create(ConfigChangeZnode.PREFIX, ConfigChangeZnode.encode("bob"), sequence=True),
                Delete(f"{ConfigChangeZnode.PREFIX}0000000001"),
            ]
        )
        await _announce(admin, ConfigChangeZnode.encode("nobody"))
        await eventually(lambda: users.credential("bob", ScramMechanism.SHA_256) == ONE)
        assert users.credential("alice", ScramMechanism.SHA_256) is None


async def test_old_announcements_are_purged_as_a_broker_does(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as admin:
        await _alter(admin, "alice", UserZnode.encode({ScramMechanism.SHA_256: ONE}))
        async with _users(zookeeper_connect, PurgeLimits(leftover_age_ms=1, interval_ms=50)):
            deadline = time.monotonic() + 20
            while await admin.children(ConfigChangeZnode.PARENT):
                assert time.monotonic() < deadline
