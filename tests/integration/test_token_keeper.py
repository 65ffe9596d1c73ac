"""The manual's keeper of a token file, against a real server whose tokens live for seconds."""

from __future__ import annotations

import asyncio
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from kafka_dt.client import TokenClient
from kafka_dt.pipeline.token_file import read_token
from tests.support.brokers.broker import USERS
from tests.support.java.properties import plain, write_properties
from tests.support.nodes.node import Node, node_properties
from tests.support.processes.process import ChildProcess, hanging
from tests.support.processes.waiting import eventually
from tests.support.spark.submit import program_of

EXPIRY_MS: Final = 7_000
MAX_LIFETIME_MS: Final = 10_000
"""Of 7 s a renewal leaves 1.4 s at least: a machine may stand still for a second."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A keeper at work."""

    keeper: ChildProcess
    file: Path
    login: dict[str, str]
    """Alice's own."""


@contextmanager
def keeping(zookeeper_connect: str, folder: Path) -> Iterator[Kept]:
    """Let the manual's program keep a token of a node; its file is there."""
    program, file = folder / "keep_token.py", folder / "token.properties"
    program.write_text(program_of("docs/spark.md", program.name).text)
    properties = node_properties(
        zookeeper_connect,
        delegation_token_expiry_time_ms=EXPIRY_MS,
        delegation_token_max_lifetime_ms=MAX_LIFETIME_MS,
    )
    with Node(folder / "node", properties) as node:
        alice = {**plain("alice", USERS["alice"]), "bootstrap.servers": node.sasl}
        config = write_properties(folder / "client.properties", alice)
        command = [sys.executable, str(program), str(config), str(file)]
        with ChildProcess("keeper", command, folder / "keeper.log") as keeper:
            eventually(file.exists, within_s=20)
            yield Kept(keeper, file, alice)
    node.check_log()


async def test_there_is_a_good_token_in_the_file_before_and_after_a_replacement(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    with keeping(zookeeper_connect, tmp_path) as kept:
        keeper, file, alice = kept.keeper, kept.file, kept.login
        first = read_token(file)
        await asyncio.to_thread(eventually, lambda: read_token(file) != first, within_s=20)
        second = read_token(file)
        assert keeper.running
        async with TokenClient.from_config(alice) as client:
            found = {token.token_id: token for token in await client.describe()}
        assert found[second.username].hmac_base64 == second.password
        assert found[first.username].expiry_timestamp_ms == found[first.username].max_timestamp_ms
        assert found[second.username].issue_timestamp_ms < found[first.username].max_timestamp_ms
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert second.password not in keeper.output()


@pytest.mark.soak
def test_a_token_that_expired_while_its_keeper_stood_still_is_replaced(zookeeper_connect: str, tmp_path: Path) -> None:
    with keeping(zookeeper_connect, tmp_path) as kept:
        first = read_token(kept.file)
        with hanging(kept.keeper.pid):
            ended = time.monotonic() + MAX_LIFETIME_MS / 1000
            eventually(lambda: time.monotonic() > ended, within_s=60)
            assert read_token(kept.file) == first
        eventually(lambda: read_token(kept.file) != first, within_s=20)
        assert kept.keeper.running
