"""The Python of the README and the manual runs, against a real server."""

from __future__ import annotations

import getpass
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import javaproperties
import pytest

from kafka_dt.client import DelegationToken, TokenClient
from kafka_dt.config import SecretKeyFiles, from_properties
from tests.support.brokers.broker import USERS
from tests.support.docs.documents import Block, blocks, documents
from tests.support.java.properties import plain, write_properties

if TYPE_CHECKING:
    from tests.integration.conftest import Addresses

ELSEWHERE = {"docs/spark.md", "docs/how-to/pipeline-tokens.md", "CONTRIBUTING.md"}
"""Pages whose programs other tests run: those that need Spark in tests/interop/gateway and tests/integration/pipeline,
the worked examples in tests/unit/docs/test_worked_examples.py."""
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


def test_the_files_of_keys_are_made_as_the_manual_says_and_a_node_takes_them(tmp_path: Path) -> None:
    """The commands of docs/how-to/change-keys.md, with another directory, and this user in the place of kafka-dt."""
    keys = tmp_path / "etc" / "kafka-dt"
    keys.parent.mkdir()
    text = blocks("docs/how-to/change-keys.md", "sh")[0].text.replace("/etc/kafka-dt", "KEYS")
    text = text.replace(" kafka-dt", f" {getpass.getuser()}").replace("KEYS", str(keys))
    subprocess.run(["/bin/bash", "-euc", f"umask 022; {text}"], check=True, capture_output=True)
    shown = blocks("docs/how-to/change-keys.md", "properties")[0].text.replace("/etc/kafka-dt", str(keys))
    settings = from_properties({**javaproperties.loads(shown), "zookeeper.connect": "unused"}).settings
    ring = SecretKeyFiles(settings).keys
    assert ring is not None
    assert (len(ring.current) > 32, ring.previous) == (True, ())
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in (keys, *keys.iterdir())} == {
        "kafka-dt": 0o700,
        "secret.key": 0o600,
        "previous.keys": 0o600,
    }
