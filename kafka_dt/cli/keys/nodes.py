"""Waits for live nodes to have the keys they should have, and names those that do not; says what to do about them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kafka_dt.cli.keys.files import KeysError
from kafka_dt.config.secret_keys import CURRENT, PREVIOUS
from kafka_dt.zookeeper.errors import InvalidZnode, ZooKeeperConnectionLost
from kafka_dt.zookeeper.stores.cluster import live_brokers, live_workers

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_dt.stores import WorkerState
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

POLL_S: Final = 0.1
MAX_NAMED: Final = 5
"""How many nodes an error names."""

Wanted = Callable[["WorkerState"], bool]


async def workers_with_tokens(client: ZooKeeperClient) -> list[WorkerState]:
    """Return every live worker but those without a secret key, which refuse everything about tokens."""
    return [state for state in await live_workers(client) if state.current_key is not None]


async def in_the_other_form(client: ZooKeeperClient, *, sealed: bool) -> list[str]:
    """Say which live brokers cannot read tokens of this form, and whether live nodes write them in the other one."""
    lines = []
    if sealed and (brokers := await live_brokers(client)):
        lines.append(f"Brokers are live (ids {', '.join(brokers)}): they cannot read what is sealed")
    with suppress(InvalidZnode):  # a node that cannot be read says nothing
        if any(state.seals is not sealed for state in await workers_with_tokens(client)):
            form, setting = ("plain", "false") if sealed else ("sealed", "true")
            lines.append(
                f"Nodes are live that write tokens {form} (delegation.token.metadata.encryption.enable={setting})"
            )
    return lines


async def require_workers(client: ZooKeeperClient) -> None:
    """See that there are nodes to wait for: without any, this is rather another ZooKeeper than theirs.

    Raises:
        KeysError: there are none.
        ZooKeeperError: ZooKeeper cannot be asked.
    """
    if not await workers_with_tokens(client):
        raise KeysError(
            "no node with a secret key is live in this ZooKeeper: see that zookeeper.connect is as the nodes have it, "
            "with its chroot, or say --no-nodes if none runs"
        )


async def wait_for_workers(
    client: ZooKeeperClient, wanted: Wanted, timeout_s: float, *, lacking: str, advice: str
) -> int:
    """Wait until all live workers are as they should be; returns how many there are.

    Args:
        client: the connection.
        wanted: says whether a worker is.
        timeout_s: how long to wait.
        lacking: what is so by the others, for the error: "the key is not accepted by".
        advice: for the operator of these others.

    Raises:
        KeysError: some of them are not so in time.
        ZooKeeperError: ZooKeeper cannot be asked.
    """
    deadline_s = time.monotonic() + timeout_s
    others: Sequence[WorkerState] = ()
    while True:
        try:
            workers = await workers_with_tokens(client)
        except ZooKeeperConnectionLost:
            if time.monotonic() > deadline_s:
                raise
        else:
            others = [state for state in workers if not wanted(state)]
            if not others:
                return len(workers)
        if time.monotonic() > deadline_s:
            raise KeysError(f"after {timeout_s:g} s {lacking} {named(others)}: {advice}")
        await asyncio.sleep(POLL_S)


def see_to(file: Path, again: str) -> str:
    """Say what the operator does about nodes that do not have what is in a file, and what running it again does."""
    return (
        f"see that its machine has what is in {file}, and run the command again{again}. A node whose settings do not "
        f"name such files never learns of it: restart it with {CURRENT} and {PREVIOUS} as file:"
    )


def named(states: Sequence[WorkerState]) -> str:
    """Name workers, the first few if there are many."""
    names = [str(state) for state in states[:MAX_NAMED]]
    if len(states) > MAX_NAMED:
        names.append(f"{len(states) - MAX_NAMED} more")
    return ", ".join(names)
