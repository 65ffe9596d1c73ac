"""Strict audit on a real node: no success without its event, through kills and full disks; changed files are found."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import random
import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from kafka_dt.client import DelegationToken, TokenClient, TokenClientError
from tests.support.brokers.broker import USERS
from tests.support.nodes.audit import AuditFolder
from tests.support.nodes.commands import called
from tests.support.nodes.full_disk import full_disk
from tests.support.nodes.node import WORKERS, Node, node_properties
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import ConnectionClosed

KILLS = 6
"""Of the workers of one node: it waits longer each time before it replaces a worker that keeps dying."""
SOAK_KILLS = 1_000
NODES_KILLED = 0.5
"""The share of nodes that end by a kill as well."""
DISKS_FULL = 0.2
"""The share of kills that come after the disk was full for a moment."""
CLIENTS = 4
LOGIN_TIMEOUT_S = 25.0
"""Less than `kafka.dt.login.timeout.ms`."""


class StrictFolder(AuditFolder):
    """A folder with a key that signs, and the command that verifies."""

    def properties(self, **more: object) -> dict[str, object]:
        """Settings of a strict node."""
        key = Ed25519PrivateKey.generate()
        private, self.public = self.path.with_name("audit.key"), self.path.with_name("audit.pub")
        private.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        self.public.write_bytes(
            key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
        return super().properties(mode="strict", log_signing_key=f"file:{private}", **more)

    def verify(self) -> tuple[int, list[dict[str, object]], str]:
        """Run `kafka-dt audit verify`; returns its exit status, all faults and stderr."""
        done = called("audit", "verify", self.path, "--public-key", self.public, "--output", "json")
        found = json.loads(done.stdout) if done.stdout else []
        return done.returncode, [fault for series in found for fault in series["faults"]], done.stderr


async def change_until(node: Node, end: asyncio.Event, acknowledged: list[tuple[str, str]]) -> None:
    """Create and expire tokens, and note each login and change that is acknowledged; a broken connection is made anew.

    A login is noted by its client id, which no other has, and a change by its token.
    """
    while not end.is_set():
        client_id = secrets.token_hex(8)
        try:
            async with node.client("alice", client_id=client_id) as client:
                acknowledged.append(("login", client_id))
                while not end.is_set():
                    token = await client.create()
                    acknowledged.append(("token_created", token.token_id))
                    await client.expire(token.hmac)
                    acknowledged.append(("token_expired", token.token_id))
        except (TokenClientError, OSError):
            await asyncio.sleep(0.05)


async def kill_workers(node: Node, moments: random.Random, kills: int) -> list[tuple[str, str]]:
    """Kill workers of a node at any moment while clients change tokens, and let the disk be full now and then.

    Returns:
        The logins and changes that were acknowledged, more than there are kills.
    """
    acknowledged: list[tuple[str, str]] = []
    end = asyncio.Event()
    clients = [asyncio.create_task(change_until(node, end, acknowledged)) for _ in range(CLIENTS)]
    for _ in range(kills):
        await asyncio.sleep(moments.uniform(0.05, 0.4))
        if moments.random() < DISKS_FULL:
            with full_disk(node):
                await asyncio.sleep(moments.uniform(0.05, 0.4))
            await asyncio.sleep(moments.uniform(0, 1.5))  # a node tries again after a second
        os.kill(moments.choice(node.workers()), signal.SIGKILL)
        await asyncio.to_thread(eventually, lambda: len(node.workers()) == WORKERS, 30)
    await asyncio.to_thread(eventually, lambda: len(acknowledged) > kills, 60)
    if moments.random() < NODES_KILLED:
        node.kill()
    end.set()
    await asyncio.gather(*clients)
    return acknowledged


@pytest.mark.parametrize("kills", [KILLS, pytest.param(SOAK_KILLS, marks=pytest.mark.soak)])
@pytest.mark.timeout(3600)
async def test_no_kill_and_no_full_disk_leave_an_acknowledged_login_or_change_without_its_event(
    zookeeper_connect: str, tmp_path: Path, kills: int
) -> None:
    folder = StrictFolder(tmp_path / "audit")
    properties = node_properties(zookeeper_connect) | folder.properties(log_file_bytes=200_000)
    acknowledged: list[tuple[str, str]] = []
    moments = random.Random(kills)  # noqa: S311 - no secret
    for _ in range(0, kills, KILLS):
        with Node(tmp_path, properties) as node:
            acknowledged += await kill_workers(node, moments, KILLS)
    with Node(tmp_path, properties):
        pass  # it finishes the files that the last one may have left
    written = {
        (event["type"], event.get("client_id" if event["type"] == "login" else "token_id"))
        for event in folder.events(outcome="ok")
    }
    assert not set(acknowledged) - written
    assert folder.verify()[:2] == (0, [])


async def created_again(client: TokenClient) -> DelegationToken:
    """Create a token as soon as the node does that again."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await client.create()
            except TokenClientError:
                await asyncio.sleep(0.2)


async def test_a_node_that_cannot_write_events_refuses_logins_and_changes_until_it_can(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    folder = StrictFolder(tmp_path / "audit")
    with Node(tmp_path, node_properties(zookeeper_connect) | folder.properties()) as node:
        async with node.client("alice") as client:
            await client.create()
            with full_disk(node):
                with pytest.raises(TokenClientError):
                    await client.create()
                with pytest.raises(TokenClientError):
                    async with node.client("alice", request_timeout_ms=2_000) as refused:
                        await refused.describe()
            token = await created_again(client)
        assert folder.events(type="token_created", outcome="ok", token_id=token.token_id)
        node.connect_by_token(token).close()
    assert folder.verify()[:2] == (0, [])


@contextmanager
def no_other_opens(path: Path) -> Iterator[None]:
    """Keep every program that opens a file waiting, as a server of files that is away does: for 45 s at most."""
    before = signal.signal(signal.SIGIO, lambda *_: None)  # the system asks for the file
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield
    finally:
        os.close(descriptor)
        signal.signal(signal.SIGIO, before)


def logs_in(node: Node, user: str) -> bool:
    with node.connect() as connection:
        try:
            connection.login_plain(user, USERS[user])
        except ConnectionClosed:
            return False
    return True


def test_a_node_whose_folder_hangs_refuses_logins_until_it_is_back_and_tells_which_it_has_refused(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    folder = StrictFolder(tmp_path / "audit")
    properties = node_properties(zookeeper_connect) | folder.properties() | {"kafka.dt.workers": 1}
    with Node(tmp_path, properties, name="before") as node:
        assert logs_in(node, "alice")
    (file,) = folder.path.glob("*.jsonl")
    with Node(tmp_path, properties) as node:
        with no_other_opens(file):
            begun = time.monotonic()
            assert not logs_in(node, "alice")
            assert time.monotonic() - begun < LOGIN_TIMEOUT_S, "its own patience must end before that of the login"
            assert not logs_in(node, "bob")
        eventually(lambda: logs_in(node, "carol"), 20)
    told = [(each["outcome"], each.get("reason")) for each in folder.events(type="login", principal="User:alice")]
    assert told == [("ok", None), ("ok", None)]
    waited = folder.events(type="login", principal="User:alice")[-1]["connection"]
    (refused,) = folder.events(type="login", outcome="refused", connection=waited)
    assert refused["reason"] == "unavailable"
    assert folder.verify()[:2] == (0, [])


async def test_verify_finds_the_line_that_somebody_changed(zookeeper_connect: str, tmp_path: Path) -> None:
    folder = StrictFolder(tmp_path / "audit")
    with Node(tmp_path, node_properties(zookeeper_connect) | folder.properties()) as node:
        for _ in range(3):
            async with node.client("alice") as client:
                await client.create()
    assert folder.verify()[:2] == (0, [])
    victim = next(path for path in sorted(folder.path.glob("*.jsonl")) if b"token_created" in path.read_bytes())
    victim.write_bytes(victim.read_bytes().replace(b"User:alice", b"User:carol", 1))
    status, faults, stderr = folder.verify()
    assert (status, [fault["kind"] for fault in faults]) == (1, ["altered"])
    assert faults[0]["file"] == victim.name
    assert stderr == f"Error: 1 fault in {folder.path}\n"
