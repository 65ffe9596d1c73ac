"""How a worker of a node stops: what connections need until their end ends after them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from kafka_dt.app import Node
from kafka_dt.config import from_properties
from kafka_dt.identity.revocation.board import Board, board_bytes
from kafka_dt.processes.turns import NodeTurn
from kafka_dt.tokens import CreationCounts
from kafka_dt.zookeeper.sealing.derivations import Derivations
from tests.support.admission import connection_counts


@dataclass
class Recorded:
    """A part of the node that writes down what is asked of it."""

    done: list[str]

    def close_ports(self) -> None:
        self.done.append("no more ports")

    async def drain(self, _grace_seconds: float) -> None:
        self.done.append("connections closed")

    async def close(self) -> None:
        self.done.append("gateway closed")


@pytest.fixture
async def node() -> Node:
    settings = from_properties({"zookeeper.connect": "127.0.0.1:1", "listeners": "PLAINTEXT://127.0.0.1:0"}).settings
    with Derivations.memory() as memory, NodeTurn.file() as turn:
        return Node(
            settings,
            ports={"PLAINTEXT": 0},
            board=Board(bytearray(board_bytes(1)), 0),
            creation_counts=CreationCounts.alone(),
            derivations=Derivations.shared(memory.fileno()),
            turn=NodeTurn(turn.fileno()),
            counts=connection_counts(),
            number=0,
            node="a node",
        )


async def test_a_gateway_opens_no_port_while_it_drains_and_is_there_until_the_last_connection_has_gone(
    node: Node,
) -> None:
    done: list[str] = []
    part = cast("Any", Recorded(done))
    node._gateway = part
    node._open = [part]
    await node.stop()
    assert done == ["no more ports", "connections closed", "gateway closed"]
