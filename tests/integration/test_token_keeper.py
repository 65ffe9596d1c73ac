"""The manual's keeper of a token file, against a real server whose tokens live for seconds."""

from __future__ import annotations

import asyncio
import stat
import sys
from pathlib import Path
from typing import Final

from kafka_dt.client import TokenClient
from kafka_dt.pipeline.token_file import read_token
from tests.support.brokers.broker import USERS
from tests.support.java.properties import plain, write_properties
from tests.support.nodes.node import Node, node_properties
from tests.support.processes.process import ChildProcess
from tests.support.processes.waiting import eventually
from tests.support.spark.submit import program_of

EXPIRY_MS: Final = 3_000
MAX_LIFETIME_MS: Final = 4_500


async def test_there_is_a_good_token_in_the_file_before_and_after_a_replacement(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    program, file = tmp_path / "keep_token.py", tmp_path / "token.properties"
    program.write_text(program_of("docs/spark.md", program.name).text)
    properties = node_properties(
        zookeeper_connect,
        delegation_token_expiry_time_ms=EXPIRY_MS,
        delegation_token_max_lifetime_ms=MAX_LIFETIME_MS,
    )
    with Node(tmp_path / "node", properties) as node:
        alice = {**plain("alice", USERS["alice"]), "bootstrap.servers": node.sasl}
        config = write_properties(tmp_path / "client.properties", alice)
        command = [sys.executable, str(program), str(config), str(file)]
        with ChildProcess("keeper", command, tmp_path / "keeper.log") as keeper:
            await asyncio.to_thread(eventually, file.exists, within_s=20)
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
    node.check_log()
