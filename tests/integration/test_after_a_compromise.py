"""The page about a compromise, run word by word beside a live node, and the command that it rests on."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafka_dt.cli import main
from kafka_dt.tokens import SecretKey
from tests.support.docs.documents import blocks
from tests.support.java.properties import write_properties
from tests.support.nodes.node import Node, node_properties
from tests.support.protocol.raw import LoginRefused
from tests.support.zookeeper.sealable import FOREIGN_KEY, OLD_KEY
from tests.support.zookeeper.sealed_cluster import SealedCluster, recent, sealed_cluster
from tests.support.zookeeper.token_znodes import token_znodes

NEW_KEY, LIST, EXPIRE, VERIFY = (block.text for block in blocks("docs/how-to/after-a-compromise.md", "sh"))
FOLDER = "/etc/kafka-dt"
WITHIN_S = 15.0
STOLEN_KEY = "the key that an intruder has read, of the first days"


def shell(script: str, folder: Path) -> str:
    """Run commands of the page in the folder of the settings; what they print."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/bash", "-euc", script.replace(FOLDER, str(folder))],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_the_procedure_ends_every_old_token_and_its_connections(zookeeper_connect: str, tmp_path: Path) -> None:
    (tmp_path / "secret.key").write_text(f"{STOLEN_KEY}\n")
    (tmp_path / "previous.keys").write_text("the key before it, which the intruder has read too\n")
    properties = node_properties(zookeeper_connect) | {
        "delegation.token.metadata.encryption.enable": True,
        "delegation.token.secret.key": f"file:{tmp_path}/secret.key",
        "kafka.dt.secret.keys.previous": f"file:{tmp_path}/previous.keys",
    }
    write_properties(tmp_path / "server.properties", properties)
    with Node(tmp_path / "node", properties) as node, token_znodes(zookeeper_connect) as znodes:
        async with node.client() as client:
            stolen = [await client.create() for _ in range(3)]
            znodes.write([recent(1, key_id=None)])  # of a broker
            znodes.put("made-by-the-intruder", b"{")
            with node.connect_by_token(stolen[0]) as connection:
                await asyncio.to_thread(shell, NEW_KEY, tmp_path)
                assert connection.closed(WITHIN_S)
            listed = await asyncio.to_thread(shell, LIST, tmp_path)
            new_key = SecretKey((tmp_path / "secret.key").read_text().strip())
            assert new_key.id in listed
            assert SecretKey(STOLEN_KEY).id not in listed
            await asyncio.to_thread(shell, EXPIRE, tmp_path)
            assert znodes.ids() == set()
            for each in stolen:
                with pytest.raises(LoginRefused):
                    node.connect_by_token(each).close()
            fresh = await client.create()
            node.connect_by_token(fresh).close()
            await asyncio.to_thread(shell, VERIFY, tmp_path)
    node.check_log()


@pytest.fixture
def cluster(zookeeper_connect: str, tmp_path: Path) -> Iterator[SealedCluster]:
    """Tokens of the keys of the settings and of another one: readable 1 to 3, and not readable 4 to 7."""
    with sealed_cluster(zookeeper_connect, tmp_path) as cluster:
        cluster.znodes.write([recent(1, owner="alice"), recent(2, owner="bob", key_id=None)])
        cluster.znodes.write([recent(3, key_id=OLD_KEY.id)], OLD_KEY)
        cluster.znodes.write([recent(4, key_id=FOREIGN_KEY.id)])
        cluster.znodes.write([recent(5), recent(6, key_id=FOREIGN_KEY.id)], FOREIGN_KEY)
        cluster.znodes.put("token-00007", b"{")
        yield cluster


def ask(cluster: SealedCluster, *arguments: str) -> Result:
    command = ["token", "expire-all", "--config", str(cluster.configuration), *arguments]
    return CliRunner().invoke(main, [*command, "--output", "json"])


def expire(cluster: SealedCluster, *arguments: str) -> dict[str, Any]:
    done = ask(cluster, *arguments)
    assert done.exit_code == 0, done.output
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def left(cluster: SealedCluster) -> set[int]:
    return {int(name.rpartition("-")[2]) for name in cluster.znodes.ids()}


def test_unreadable_alone_ends_no_token_that_a_node_serves(cluster: SealedCluster) -> None:
    shown = expire(cluster, "--unreadable", "--dry-run")
    assert (shown["changed"], shown["endedUnread"], len(shown["tokenIds"])) == (4, 4, 4)
    assert left(cluster) == {1, 2, 3, 4, 5, 6, 7}
    done = expire(cluster, "--unreadable", "--yes")
    assert (done["changed"], done["endedUnread"], done["byOwner"]) == (4, 4, {})
    assert left(cluster) == {1, 2, 3}
    assert cluster.znodes.announced() >= {"token-00004", "token-00005", "token-00006", "token-00007"}


def test_unreadable_with_a_filter_ends_both(cluster: SealedCluster) -> None:
    done = expire(cluster, "--unreadable", "--owner", "User:bob", "--yes")
    assert (done["changed"], done["endedUnread"], done["byOwner"]) == (5, 4, {"User:bob": 1})
    assert left(cluster) == {1, 3}


def test_all_and_unreadable_end_every_token(cluster: SealedCluster) -> None:
    without = ask(cluster, "--all")
    assert without.exit_code == 1
    assert "4 tokens" in without.stderr
    assert "--unreadable" in without.stderr
    assert left(cluster) == {4, 5, 6, 7}
    assert expire(cluster, "--all", "--unreadable")["changed"] == 4
    assert left(cluster) == set()


@pytest.mark.parametrize("override", ["delegation.token.secret.key=", "broker.id=-1"], ids=["empty", "missing"])
def test_it_needs_no_secret_key(cluster: SealedCluster, override: str) -> None:
    write_properties(cluster.configuration, {"zookeeper.connect": cluster.connect})
    refused = ask(cluster, "--all", "--override", override)
    assert refused.exit_code == 1
    assert "has no delegation.token.secret.key" in refused.stderr
    assert left(cluster) == {1, 2, 3, 4, 5, 6, 7}
    assert expire(cluster, "--unreadable", "--yes", "--override", override)["endedUnread"] == 6
    assert left(cluster) == {2}, "a plain token that names no key"
    assert expire(cluster, "--all", "--unreadable", "--override", override)["byOwner"] == {"User:bob": 1}
    assert left(cluster) == set()


def test_a_script_has_to_say_that_it_is_meant(cluster: SealedCluster) -> None:
    done = ask(cluster, "--unreadable", "--owner", "User:bob")
    assert done.exit_code == 2
    assert "say --yes" in done.stderr


def test_a_client_cannot_end_what_no_node_shows() -> None:
    done = CliRunner().invoke(main, ["token", "expire-all", "--bootstrap-server", "x:1", "--unreadable", "--yes"])
    assert done.exit_code == 2
    assert "--unreadable needs --config" in done.stderr


def test_a_slip_in_the_key_ends_nothing_that_a_live_node_reads(
    cluster: SealedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_dt.cli.token.revoke._NODES_TIMEOUT_S", 0.2)
    with Node(tmp_path / "node", node_properties(cluster.connect)) as node:
        done = ask(cluster, "--unreadable", "--yes")
        assert done.exit_code == 1
        assert "secret keys that these settings lack are accepted by" in done.stderr
        assert left(cluster) == {1, 2, 3, 4, 5, 6, 7}
        assert expire(cluster, "--all", "--unreadable")["changed"] == 7
    node.check_log()
