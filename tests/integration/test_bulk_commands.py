"""`kafka-dt keys seal|unseal|verify` and `token expire-all` on a real ZooKeeper, interrupted, and beside a node."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from kazoo.client import KazooClient

from kafka_dt.bulk import BulkLimits, Seal, Summary, process, token_ids
from kafka_dt.cli import main
from kafka_dt.client import DelegationToken, TokenClient
from kafka_dt.jaas import PLAIN_LOGIN_MODULE, LoginModule
from kafka_dt.tokens import Keyring, SecretKey, Token
from kafka_dt.zookeeper.errors import NoChroot
from kafka_dt.zookeeper.sealing.sealed import open_sealed
from kafka_dt.zookeeper.znodes.kafka import TokenZnode
from tests.integration.zookeeper_nodes import client_of, now_ms, settings
from tests.support.brokers.broker import SECRET_KEY, USERS
from tests.support.java.properties import write_properties
from tests.support.nodes.node import ADMIN, Node, node_properties
from tests.support.processes.tcp_gate import TcpGate
from tests.support.processes.waiting import eventually, on_this_machine
from tests.support.protocol.raw import LoginRefused
from tests.support.zookeeper.sealable import DAY_MS, FOREIGN_KEY, token
from tests.support.zookeeper.server import make_chroot
from tests.support.zookeeper.token_znodes import TokenZnodes, token_znodes

PROGRAM = str(Path(sys.executable).with_name("kafka-dt"))
KEY = SecretKey(SECRET_KEY)
RING = Keyring(KEY)
MANY = 1_500
"""Enough that a command can be interrupted while it is at work."""


class Cluster:
    """The tokens of one chroot, and the commands on them."""

    def __init__(self, znodes: TokenZnodes, connect: str, configuration: Path) -> None:
        self.znodes = znodes
        self.connect = connect
        self.configuration = configuration

    def command(self, *arguments: str) -> list[str]:
        """The command line of a process of its own."""
        return [PROGRAM, *arguments, "--config", str(self.configuration)]

    def ask(self, *arguments: str) -> Result:
        """Run a command to its end, in this process."""
        return CliRunner().invoke(main, [*arguments, "--config", str(self.configuration)])

    def run(self, *arguments: str, status: int = 0) -> dict[str, Any]:
        """Run a command to its end and give its summary."""
        return summary_of(self.ask(*arguments, "--output", "json"), status)


def summary_of(done: Result, status: int = 0) -> dict[str, Any]:
    assert done.exit_code == status, done.output
    assert SECRET_KEY not in done.output
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def counts(summary: dict[str, Any]) -> tuple[int, int, int, int]:
    return summary["changed"], summary["unchanged"], summary["gone"], summary["failed"]


def made(number: int, **fields: Any) -> Token:
    """A token of this cluster that has just been issued."""
    now = now_ms()
    times = {
        "issue_timestamp_ms": now,
        "expiry_timestamp_ms": now + DAY_MS,
        "max_timestamp_ms": now + 7 * DAY_MS,
        "key_id": KEY.id,
    }
    return token(number, **{**times, **fields})


@pytest.fixture
def cluster(zookeeper_connect: str, tmp_path: Path) -> Iterator[Cluster]:
    properties = {"zookeeper.connect": zookeeper_connect, "delegation.token.secret.key": SECRET_KEY}
    with token_znodes(zookeeper_connect) as znodes:
        yield Cluster(znodes, zookeeper_connect, write_properties(tmp_path / "server.properties", properties))


@pytest.fixture(scope="module")
def beside(zookeeper_address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Node]]:
    """A node that writes its tokens plain, and its cluster."""
    connect = make_chroot(zookeeper_address, "bulk")
    properties = node_properties(connect)
    with Node(tmp_path_factory.mktemp("bulk-node"), properties) as node, token_znodes(connect) as znodes:
        node.zookeeper = connect
        yield Cluster(znodes, connect, node.configuration), node
    node.check_log()


def test_every_znode_is_sealed_verified_and_unsealed_again(cluster: Cluster) -> None:
    cluster.znodes.write([made(number) for number in range(200)])
    cluster.znodes.write([made(number, key_id=None) for number in range(200, 300)])
    before = cluster.znodes.data()
    assert counts(cluster.run("keys", "seal", "--dry-run")) == (300, 0, 0, 0)
    assert cluster.znodes.data() == before
    assert counts(cluster.run("keys", "seal")) == (300, 0, 0, 0)
    sealed = cluster.znodes.data()
    assert {name: open_sealed([KEY], data).plaintext for name, data in sealed.items()} == before
    assert cluster.znodes.announced() == set()
    assert counts(cluster.run("keys", "seal")) == (0, 300, 0, 0)
    assert counts(cluster.run("keys", "verify")) == (0, 300, 0, 0)
    assert cluster.znodes.data() == sealed
    assert counts(cluster.run("keys", "unseal")) == (300, 0, 0, 0)
    assert cluster.znodes.data() == before
    assert cluster.znodes.announced() == set(before)
    assert counts(cluster.run("keys", "unseal")) == (0, 300, 0, 0)


def test_what_cannot_be_read_is_counted_told_and_left(cluster: Cluster) -> None:
    cluster.znodes.write([made(number) for number in range(5)])
    cluster.znodes.write([made(number) for number in range(5, 8)], FOREIGN_KEY)
    cluster.znodes.put("garbage", b"\xff\x00garbage")
    cluster.znodes.put("moved", TokenZnode.encode(made(9)))
    odd = made(10)
    cluster.znodes.write([replace(odd, expiry_timestamp_ms=odd.issue_timestamp_ms - 1)])
    before = cluster.znodes.data()
    verified = cluster.run("keys", "verify", status=1)
    assert counts(verified) == (0, 5, 0, 6)
    reasons = {failure["reason"]: sorted(failure["tokenIds"]) for failure in verified["failures"]}
    assert reasons == {
        "its MAC fits none of the secret keys": ["token-00005", "token-00006", "token-00007"],
        "not JSON": ["garbage"],
        "it names another token": ["moved"],
        "odd times: the expiry is before the issue": ["token-00010"],
    }
    assert cluster.znodes.data() == before
    assert counts(cluster.run("keys", "seal", status=1)) == (6, 0, 0, 5)
    left = ["token-00005", "token-00006", "token-00007", "garbage", "moved"]
    after = cluster.znodes.data()
    assert {name: after[name] for name in left} == {name: before[name] for name in left}
    assert counts(cluster.run("token", "expire-all", "--all", status=1)) == (6, 0, 0, 5)
    assert cluster.znodes.ids() == set(left)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_leaves_whole_znodes_and_goes_on_when_run_again(
    cluster: Cluster, number: signal.Signals
) -> None:
    cluster.znodes.write([made(each) for each in range(MANY)])
    plain = cluster.znodes.data()
    command = [*cluster.command("keys", "seal"), "--output", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        eventually(cluster.znodes.first_is_sealed, within_s=30)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=30)
    done = cluster.znodes.sealed()
    assert 0 < done < MANY
    if number is signal.SIGINT:
        assert process.returncode == 130
        summary = json.loads(stdout)
        assert (summary["changed"], summary["interrupted"]) == (done, True)
        assert f"{done} of {MANY} are done" in stderr
        assert "Traceback" not in stderr
    assert counts(cluster.run("keys", "seal")) == (MANY - done, done, 0, 0)
    assert counts(cluster.run("keys", "unseal")) == (MANY, 0, 0, 0)
    assert cluster.znodes.data() == plain


async def test_a_lost_connection_is_waited_for_and_counted_right(cluster: Cluster) -> None:
    await asyncio.to_thread(cluster.znodes.write, [made(number) for number in range(MANY)])
    address, _, chroot = cluster.connect.partition("/")
    host, _, port = address.partition(":")
    summary = Summary()
    async with TcpGate(host, int(port)) as gate:
        cuts = iter([200, 500, 900])
        cut_at = next(cuts)

        def report(results: Any) -> None:
            nonlocal cut_at
            summary.add(results)
            if summary.total >= cut_at:
                cut_at = next(cuts, MANY * 2)
                gate.shut()
                asyncio.get_running_loop().call_later(0.3, gate.open)

        async with client_of(settings(f"127.0.0.1:{gate.port}/{chroot}")) as client:
            names = await token_ids(client)
            task = Seal(RING, os.urandom)
            limits = BulkLimits(batch=32, reconnect_s=30)
            await process(client, names, task, report=report, now_ms=now_ms, limits=limits)
    assert cut_at > MANY
    assert summary.failures == {}
    assert summary.total == MANY
    assert await asyncio.to_thread(cluster.znodes.sealed) == MANY


async def test_renewals_beside_it_survive(beside: tuple[Cluster, Node]) -> None:
    cluster, node = beside
    held: dict[str, tuple[DelegationToken, int]] = {}
    choice = random.Random(1)  # noqa: S311
    sealing = True

    async def create(client: TokenClient) -> None:
        for _ in range(30):
            made_token = await client.create()
            held[made_token.token_id] = made_token, made_token.expiry_timestamp_ms

    async def renew(client: TokenClient, tokens: list[DelegationToken]) -> None:
        while sealing:
            each = choice.choice(tokens)
            expiry_ms = await client.renew(each.hmac, choice.randrange(DAY_MS // 2, DAY_MS))
            held[each.token_id] = each, expiry_ms

    clients = [node.client() for _ in range(4)]
    await asyncio.gather(*(create(client) for client in clients))
    tokens = [each for each, _ in held.values()]
    renewing = [asyncio.create_task(renew(client, tokens[number::4])) for number, client in enumerate(clients)]
    changed = 0
    for action in ("seal", "unseal", "seal"):
        summary = await asyncio.to_thread(cluster.run, "keys", action)
        assert summary["failed"] == 0, summary
        changed += summary["changed"]
    sealing = False
    await asyncio.gather(*renewing)
    assert changed > len(tokens)
    described = {each.token_id: each for each in await clients[0].describe()}
    assert {name: described[name].expiry_timestamp_ms for name in held} == {
        name: expiry_ms for name, (_, expiry_ms) in held.items()
    }
    assert counts(await asyncio.to_thread(cluster.run, "keys", "verify"))[3] == 0
    for client in clients:
        await client.close()


def test_a_node_that_writes_the_other_form_is_told_of(beside: tuple[Cluster, Node]) -> None:
    cluster, _ = beside
    done = cluster.ask("keys", "seal", "--dry-run")
    assert "Nodes are live that write tokens plain" in done.stderr
    assert "would change" in done.stdout


def refused(node: Node, token: DelegationToken) -> bool:
    try:
        node.connect_by_token(token).close()
    except LoginRefused:
        return True
    return False


async def test_nodes_obey_expire_all_within_a_second(beside: tuple[Cluster, Node]) -> None:
    cluster, node = beside
    async with node.client("bob") as bob, node.client("carol") as carol:
        goes = [await bob.create(renewers=["User:carol"]) for _ in range(3)]
        later = await bob.create()
        stays = await carol.create()
    with node.connect_by_token(goes[0]) as connection:
        selected = ("--owner", "User:bob", "--renewer", "User:carol")
        shown = await asyncio.to_thread(cluster.run, "token", "expire-all", *selected, "--dry-run")
        assert (shown["byOwner"], set(shown["tokenIds"])) == ({"User:bob": 3}, {each.token_id for each in goes})
        done = await asyncio.to_thread(cluster.run, "token", "expire-all", *selected, "--yes")
        ended_s = time.monotonic()
        assert done["changed"] == 3
        assert connection.closed(on_this_machine(1.0))
    eventually(lambda: all(refused(node, each) for each in goes), 1.0 - (time.monotonic() - ended_s))
    for each in (later, stays):
        node.connect_by_token(each).close()
    before = str(later.issue_timestamp_ms)
    assert (await asyncio.to_thread(cluster.run, "token", "expire-all", "--issued-before", before, "--yes"))[
        "failed"
    ] == 0
    node.connect_by_token(later).close()


async def test_tokens_end_over_the_kafka_protocol(beside: tuple[Cluster, Node], tmp_path: Path) -> None:
    _, node = beside
    async with node.client("bob") as bob, node.client("carol") as carol:
        of_bob = {(await bob.create()).token_id for _ in range(40)}
        of_carol = (await carol.create()).token_id

    def expire_all(user: str, *arguments: str, status: int = 0) -> dict[str, Any]:
        login = LoginModule(PLAIN_LOGIN_MODULE, {"username": user, "password": USERS[user]}).line
        properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}
        file = write_properties(tmp_path / f"{user}.properties", properties)
        command = ["token", "expire-all", "--bootstrap-server", node.sasl, "--command-config", str(file)]
        return summary_of(CliRunner().invoke(main, [*command, *arguments, "--output", "json"]), status)

    shown = await asyncio.to_thread(expire_all, ADMIN, "--owner", "User:bob", "--dry-run")
    assert of_bob <= set(shown["tokenIds"])
    done = await asyncio.to_thread(expire_all, ADMIN, "--owner", "User:bob", "--yes")
    assert (done["changed"], done["byOwner"]) == (shown["changed"], {"User:bob": shown["changed"]})
    async with node.client(ADMIN) as admin:
        left = {each.token_id for each in await admin.describe()}
    assert of_carol in left
    assert not of_bob & left
    # Who may not end a token is told so; nothing else happens.
    refused = await asyncio.to_thread(expire_all, "alice", "--owner", "User:carol", "--yes", status=1)
    assert refused["changed"] == 0
    assert "owner_mismatch" in refused["failures"][0]["reason"]


def test_without_a_filter_a_script_has_to_say_all(cluster: Cluster) -> None:
    cluster.znodes.write([made(number) for number in range(3)])
    for command in (("revoke",), ("revoke", "--yes"), ("expire-all", "--yes")):
        done = cluster.ask("token", *command)
        assert done.exit_code == 2
        assert "say --all" in done.stderr
    assert len(cluster.znodes.ids()) == 3
    assert counts(cluster.run("token", "expire-all", "--all")) == (3, 0, 0, 0)
    assert cluster.znodes.ids() == set()


@pytest.mark.parametrize(
    "command",
    [
        ("keys", "seal"),
        ("keys", "unseal"),
        ("keys", "verify"),
        ("keys", "list"),
        ("token", "expire-all", "--all"),
    ],
    ids=" ".join,
)
def test_a_slip_in_the_chroot_is_told_and_nothing_is_made(zookeeper_connect: str, command: tuple[str, ...]) -> None:
    address, _, chroot = zookeeper_connect.partition("/")
    secret = ("--override", f"delegation.token.secret.key={SECRET_KEY}")

    def ask(connect: str) -> Result:
        return CliRunner().invoke(main, [*command, *secret, "--override", f"zookeeper.connect={connect}"])

    missing = ask(f"{zookeeper_connect}/wrong")
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert missing.stderr == f"Error: {NoChroot(f'/{chroot}/wrong')}\n"
    other = ask(zookeeper_connect)
    assert other.exit_code == 0
    assert other.stderr == f"No token was ever made at {zookeeper_connect}: see zookeeper.connect\n"
    kazoo = KazooClient(hosts=address)
    kazoo.start()
    try:
        assert kazoo.get_children(f"/{chroot}") == []
    finally:
        kazoo.stop()
        kazoo.close()


def test_zookeeper_out_of_reach_is_one_line(cluster: Cluster) -> None:
    unreachable = ("--override", "zookeeper.connect=127.0.0.1:1", "--override", "zookeeper.connection.timeout.ms=300")
    done = cluster.ask("keys", "verify", *unreachable)
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: cannot connect to ZooKeeper")
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
