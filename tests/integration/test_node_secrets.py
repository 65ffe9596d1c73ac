"""Nothing secret is where others can read it: not in the log, not on a command line, not in ZooKeeper."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kafka_dt.client import TokenOwnerMismatch
from tests.support.brokers.broker import SECRET_KEY, USERS
from tests.support.nodes.node import ADMIN, SHA_256, SHA_512, Node, command_lines, node_properties, secrets_of
from tests.support.nodes.server import PROGRAM
from tests.support.protocol.raw import LoginRefused

MISTYPED = "a password that was mistyped"


async def test_no_secret_key_no_password_and_no_hmac_is_left_anywhere(zookeeper_connect: str, tmp_path: Path) -> None:
    secrets = {SECRET_KEY, *USERS.values(), MISTYPED}
    with Node(tmp_path, node_properties(zookeeper_connect), program=PROGRAM) as node:
        seen = command_lines([_pid(node), *node.workers()])
        assert {_core_file_limit(pid) for pid in (_pid(node), *node.workers())} <= {"0", "1"}
        async with (
            node.client() as alice,
            node.client("bob") as bob,
            node.client("carol") as carol,
            node.client(ADMIN) as admin,
        ):
            tokens = [await alice.create(renewers=["User:bob"]) for _ in range(4)]
            for token in tokens:
                secrets |= set(secrets_of(token))
                for mechanism in (SHA_256, SHA_512):
                    node.connect_by_token(token, mechanism).close()
                with pytest.raises(TokenOwnerMismatch):
                    await carol.renew(token.hmac)
            await bob.renew(tokens[0].hmac)
            await alice.expire(tokens[1].hmac, 0)
            await admin.expire(tokens[2].hmac)
            await alice.describe()
        for user in ("alice", "nobody", tokens[3].token_id):
            with node.connect() as connection, contextlib.suppress(LoginRefused):
                connection.login_plain(user, MISTYPED)
            with node.connect() as connection, contextlib.suppress(LoginRefused):
                connection.login_scram(user, MISTYPED, SHA_256)
        with node.connect() as connection:
            connection.send(f"GET /?password={MISTYPED} HTTP/1.1\r\n\r\n".encode())
            connection.send(tokens[3].hmac)
        seen += command_lines([_pid(node), *node.workers()])
    written = {
        "the log": node.log(),
        "a command line": seen.decode(errors="replace"),
        "ZooKeeper": "\n".join(_znodes(zookeeper_connect)),
    }
    for place, text in written.items():
        assert text, place
        for secret in secrets:
            assert secret not in text, f"found in {place}"
    node.check_log()


def _pid(node: Node) -> int:
    assert node.process.pid is not None
    return node.process.pid


def _core_file_limit(pid: int) -> str:
    limits = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return next(line for line in limits if line.startswith("Max core file size")).split()[-2]


def _znodes(connect: str) -> Iterator[str]:
    kazoo = KazooClient(hosts=connect)
    kazoo.start()
    try:
        yield from _below(kazoo, "/")
    finally:
        kazoo.stop()
        kazoo.close()


def _below(kazoo: KazooClient, path: str) -> Iterator[str]:
    data, _ = kazoo.get(path)
    yield f"{path} {(data or b'').decode(errors='replace')}"
    for child in kazoo.get_children(path):
        yield from _below(kazoo, f"{path.rstrip('/')}/{child}")
