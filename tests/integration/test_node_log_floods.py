"""Floods of lines that a client causes: a node logs the first ones and the number of the others."""

from __future__ import annotations

import contextlib
from pathlib import Path

from kafka_dt_protocol import ApiKey
from kafka_dt_protocol.wire.encoding import encode_varint
from tests.support.nodes.node import Node, node_properties
from tests.support.protocol.raw import LoginRefused, RawConnection

LINES, OF_A_CLIENT = 50, 5
FRAMES, LOGINS, REQUESTS = 300, 30, 40
LONG_NAME = "n" * 4_000 + "\n2026-01-01 INFO forged \x1b[2J\u202e"


def test_a_flood_of_a_client_is_a_few_lines_and_a_number(zookeeper_connect: str, tmp_path: Path) -> None:
    properties = node_properties(
        zookeeper_connect,
        kafka_dt_log_lines_per_minute=LINES,
        kafka_dt_workers=1,
        connection_failed_authentication_delay_ms=0,
        allow_everyone_if_no_acl_found=False,
    )
    with Node(tmp_path, properties) as node:
        started = len(node.log())
        for _ in range(FRAMES):
            with node.connect() as connection:
                connection.send(b"\xff\xff\xff\xff")
                assert connection.closed()
        for _ in range(LOGINS):
            with node.connect() as connection, contextlib.suppress(LoginRefused):
                connection.login_plain(LONG_NAME, "wrong")
        with node.connect(user="alice") as alice:
            for _ in range(REQUESTS):
                create_token_for(alice, LONG_NAME * 5)
    log = node.log()[started:]
    for text, times in (
        ("frame length", FRAMES),
        ("failed authentication", LOGINS),
        ("Denied", REQUESTS),
    ):
        lines = [line for line in log.splitlines() if text in line]
        assert len(lines) == OF_A_CLIENT + 1, (text, lines)
        assert lines[-1].endswith(f"... and {times - OF_A_CLIENT - 1:,} more in 60 s")
    assert max(map(len, log.splitlines())) < 1_000
    assert not any(line.startswith("2026-01-01") for line in log.splitlines())
    assert not set("\x1b\u202e") & set(log)


def create_token_for(connection: RawConnection, owner: str) -> None:
    """Ask for a token with another owner, in version 3 of CreateDelegationToken."""
    name = owner.encode()
    body = b"\x05User" + encode_varint(len(name) + 1) + name + b"\x01" + b"\xff" * 8 + b"\x00"
    connection.send_frame(connection.header(ApiKey.CREATE_DELEGATION_TOKEN, 3, flexible=True) + body)
    connection.receive_frame()
