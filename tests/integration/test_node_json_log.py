"""A node whose log is for programs: JSON from its first line to its last."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from tests.support.nodes.node import Node, node_properties
from tests.support.protocol.raw import LoginRefused

FORGED = 'bob"}\n{"event.action":"forged"}'


def test_a_node_logs_its_start_its_end_and_each_login_as_events(zookeeper_connect: str, tmp_path: Path) -> None:
    properties = node_properties(
        zookeeper_connect, kafka_dt_log_format="json", kafka_dt_log_level="DEBUG", kafka_dt_workers=1
    )
    with Node(tmp_path, properties) as node:
        node.connect(user="alice").close()
        with node.connect() as connection, contextlib.suppress(LoginRefused):
            connection.login_plain(FORGED, "wrong-password")
        assert node.stop() == 0
    node.check_log()
    lines = [json.loads(line) for line in node.log().splitlines()]
    assert all({"@timestamp", "log.level", "message", "ecs.version", "process.pid"} <= line.keys() for line in lines)
    assert [name for line in lines if (name := line.get("event.action"))] == [
        *("start", "ready"),
        *("login", "login"),
        *("stop", "stopped"),
    ]
    succeeded, refused = (line for line in lines if line.get("event.action") == "login")
    assert _login(succeeded) == ("debug", "success", "alice", "PLAIN", "SASL_PLAINTEXT", "127.0.0.1")
    assert _login(refused) == ("warning", "failure", FORGED, "PLAIN", "SASL_PLAINTEXT", "127.0.0.1")
    assert (refused["event.code"], refused["event.reason"]) == ("unknown_user", "there is no such user")
    assert "wrong-password" not in node.log()


def _login(line: dict[str, Any]) -> tuple[str, ...]:
    names = ("log.level", "event.outcome", "user.name", "kafka_dt.mechanism", "kafka_dt.listener", "client.ip")
    return tuple(line[name] for name in names)
