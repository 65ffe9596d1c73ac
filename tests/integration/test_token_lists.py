"""`kafka-dt token list|show|revoke` on a real node, over the Kafka protocol and on its ZooKeeper."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafka_dt.cli import main
from kafka_dt.client import DelegationToken
from tests.support.brokers.broker import SECRET_KEY, USERS
from tests.support.java.properties import plain, write_properties
from tests.support.nodes.audit import AuditFolder
from tests.support.nodes.node import ADMIN, Node
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import LoginRefused

Ask = Callable[..., Result]
FIELDS = {
    "token_id", "owner", "requester", "renewers", "issue_timestamp", "expiry_timestamp", "max_timestamp",
}  # fmt: skip


def over_kafka(node: Node, folder: Path, user: str = ADMIN) -> Ask:
    """Ask as a user of the node."""
    login = write_properties(folder / f"{user}.properties", plain(user, USERS[user]))
    return lambda *words: CliRunner().invoke(
        main, ["token", *words, "--bootstrap-server", node.sasl, "--command-config", str(login)]
    )


def on_zookeeper(node: Node, _folder: Path) -> Ask:
    """Ask with the settings of the node."""
    return lambda *words: CliRunner().invoke(main, ["token", *words, "--config", str(node.configuration)])


both_ways = pytest.mark.parametrize("way", [over_kafka, on_zookeeper], ids=["kafka", "zookeeper"])


async def tokens_of_bob(node: Node) -> list[DelegationToken]:
    async with node.client("bob") as bob:
        return [await bob.create(renewers=[f"User:r{number}"]) for number in range(3)]


async def printed(ask: Ask, *words: str) -> Any:
    done = await asyncio.to_thread(ask, *words, "--output", "json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def works(node: Node, token: DelegationToken) -> bool:
    try:
        node.connect_by_token(token).close()
    except LoginRefused:
        return False
    return True


@both_ways
async def test_a_list_is_filtered_sorted_and_without_secrets(
    node: Node, tmp_path: Path, way: Callable[[Node, Path], Ask]
) -> None:
    ask = way(node, tmp_path)
    await printed(ask, "revoke", "--owner", "User:bob", "--yes")  # what other tests have left
    made = await tokens_of_bob(node)
    async with node.client("carol") as carol:
        of_carol = await carol.create()
    every = await printed(ask, "list")
    assert all(set(token) == FIELDS for token in every)
    assert every == sorted(every, key=lambda token: (token["owner"], token["issue_timestamp"], token["token_id"]))
    assert {of_carol.token_id, *(token.token_id for token in made)} <= {token["token_id"] for token in every}
    (one,) = await printed(ask, "list", "--owner", "User:bob", "--renewer", "User:r1", "--issued-before", "2099-01-01")
    expected = {
        "token_id": made[1].token_id,
        "owner": "User:bob",
        "requester": "User:bob",
        "renewers": ["User:r1"],
        "issue_timestamp": made[1].issue_timestamp_ms,
        "expiry_timestamp": made[1].expiry_timestamp_ms,
        "max_timestamp": made[1].max_timestamp_ms,
    }
    assert one == expected
    assert await printed(ask, "show", made[1].token_id) == expected
    assert await printed(ask, "list", "--owner", "User:bob", "--issued-before", "7d") == []
    for words in (("list",), ("show", made[1].token_id)):
        shown = await asyncio.to_thread(ask, *words)
        assert made[1].token_id in shown.stdout
        assert made[1].hmac_base64 not in shown.stdout
    await printed(ask, "revoke", "--owner", "User:bob", "--owner", "User:carol", "--yes")


@both_ways
async def test_named_tokens_are_revoked_and_no_others(
    node: Node, tmp_path: Path, way: Callable[[Node, Path], Ask]
) -> None:
    ask = way(node, tmp_path)
    by_hand, by_file, stays = await tokens_of_bob(node)
    file = tmp_path / "ids"
    file.write_text(f"# seen in a public repository\n\n{by_file.token_id}\n")
    words = ("revoke", by_hand.token_id, "--from-file", str(file))
    shown = await printed(ask, *words, "--dry-run")
    assert (shown["dryRun"], set(shown["tokenIds"])) == (True, {by_hand.token_id, by_file.token_id})
    assert await asyncio.to_thread(works, node, by_hand)
    done = await printed(ask, *words)
    assert (done["changed"], done["total"], done["byOwner"]) == (2, 2, {"User:bob": 2})
    # In ZooKeeper's case the node hears of it, within a second.
    await asyncio.to_thread(eventually, lambda: not works(node, by_hand) and not works(node, by_file), 1.0)
    assert await asyncio.to_thread(works, node, stays)
    missing = await asyncio.to_thread(ask, "show", by_hand.token_id)
    assert missing.exit_code == 1
    assert by_hand.token_id in missing.stderr


async def test_a_named_token_that_is_gone_is_told(node: Node, tmp_path: Path) -> None:
    in_zookeeper = await asyncio.to_thread(on_zookeeper(node, tmp_path), "revoke", "no-such-token")
    assert in_zookeeper.exit_code == 0
    assert "No such token: no-such-token" in in_zookeeper.stderr
    shown = await asyncio.to_thread(over_kafka(node, tmp_path), "revoke", "no-such-token")
    assert shown.exit_code == 1
    assert "the server shows this user no such token" in shown.stdout


async def test_each_token_that_is_revoked_in_zookeeper_is_an_audit_event(node: Node, tmp_path: Path) -> None:
    folder = AuditFolder(tmp_path / "audit")
    made = await tokens_of_bob(node)
    overrides = [f"--override={key}={value}" for key, value in folder.properties(mode="strict").items()]
    ask = on_zookeeper(node, tmp_path)
    await printed(ask, "revoke", made[0].token_id, "--dry-run", *overrides)
    assert not folder.events()
    await printed(ask, "revoke", *(token.token_id for token in made), "no-such-token", *overrides)
    ended = folder.events(type="token_expired", outcome="ok", owner="User:bob", client_id="kafka-dt token revoke")
    assert {event["token_id"] for event in ended} == {token.token_id for token in made}
    assert len(folder.events()) == len(made)


async def test_a_token_of_another_user_is_not_revoked(node: Node, tmp_path: Path) -> None:
    token, *_ = await tokens_of_bob(node)
    refused = await asyncio.to_thread(over_kafka(node, tmp_path, "carol"), "revoke", token.token_id)
    assert refused.exit_code == 1
    assert "only the token's owner, its renewers" in refused.stdout
    assert await asyncio.to_thread(works, node, token)


async def test_a_named_token_ends_though_its_key_is_missing(node: Node, tmp_path: Path) -> None:
    token, *others = await tokens_of_bob(node)
    ask = on_zookeeper(node, tmp_path)
    wrong_key = ("--override", f"delegation.token.secret.key={SECRET_KEY[::-1]}")
    assert (await asyncio.to_thread(ask, "revoke", "--owner", "User:bob", "--yes", *wrong_key)).exit_code == 0
    assert [await asyncio.to_thread(works, node, each) for each in others] == [True, True]
    assert (await printed(ask, "revoke", token.token_id, *wrong_key))["endedUnread"] == 1
    await asyncio.to_thread(eventually, lambda: not works(node, token), 1.0)
