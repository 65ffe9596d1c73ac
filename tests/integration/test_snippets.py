"""The Python of the README and the manual runs, against a real server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka_dt.client import DelegationToken, TokenClient
from tests.support.broker import USERS
from tests.support.client_config import plain
from tests.support.documents import Block, blocks, documents
from tests.support.properties import write_properties

if TYPE_CHECKING:
    from tests.integration.conftest import Addresses

ELSEWHERE = {"docs/spark.md", "docs/how-to/pipeline-tokens.md"}
"""Pages whose programs need Spark; tests/interop/gateway and tests/integration/pipeline run them."""
SNIPPETS = [block for page in documents() if page not in ELSEWHERE for block in blocks(page, "python")]


@pytest.fixture
async def token(addresses: Addresses) -> DelegationToken:
    async with TokenClient.from_config(
        {**plain("alice", USERS["alice"]), "bootstrap.servers": addresses.bootstrap}
    ) as alice:
        return await alice.create(max_lifetime_ms=60_000)


@pytest.fixture
def home(addresses: Addresses, tmp_path: Path) -> Path:
    """A home in which `make run` has left the settings of its user."""
    properties = {**plain("alice", USERS["alice"]), "bootstrap.servers": addresses.bootstrap}
    directory = tmp_path / ".local" / "share" / "kafka-dt"
    directory.mkdir(parents=True)
    write_properties(directory / "client.properties", properties)
    return tmp_path


@pytest.mark.parametrize("snippet", SNIPPETS, ids=str)
def test_a_snippet_runs(snippet: Block, addresses: Addresses, token: DelegationToken, home: Path) -> None:
    text = (
        snippet.text.replace("127.0.0.1:9092", addresses.bootstrap)
        .replace('"TOKEN_ID"', repr(token.token_id))
        .replace('"HMAC"', repr(token.hmac_base64))
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "HOME": str(home)},
    )
    assert done.returncode == 0, done.stderr
    assert "Kafka's error code is" not in done.stdout, done.stdout
    assert done.stdout
