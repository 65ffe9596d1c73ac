"""How the ports of a worker close, the gateway after its connections; and when its certificates end."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kafka_dt.config import from_properties, listeners
from kafka_dt.identity.mechanisms import MECHANISMS
from kafka_dt.metrics import Counts
from kafka_dt.node import Shared
from kafka_dt.node.listeners import WorkerPorts, frame_limits
from kafka_dt.processes.node_memory import node_memory
from kafka_dt.stores import WorkerPlace
from kafka_dt_protocol import Limits


@dataclass
class Recorded:
    """A part of the node that writes down what is asked of it."""

    done: list[str]

    def close_ports(self) -> None:
        self.done.append("no more ports")

    async def drain(self, grace_seconds: float) -> None:
        self.done.append(f"connections closed within {grace_seconds} s")

    async def close(self) -> None:
        self.done.append("gateway closed")


def worker_ports() -> WorkerPorts:
    settings = from_properties({"listeners": "PLAINTEXT://127.0.0.1:0", "kafka.dt.drain.timeout.ms": "2500"}).settings
    place = WorkerPlace(0, 1, "a node")
    with node_memory(**Shared.sizes(place.workers)) as memory:
        shared = Shared.opened(memory, place)
    made = listeners(settings, MECHANISMS)
    counts = Counts.alone()
    return WorkerPorts(
        settings, made, place, shared, held=lambda _: None, recorder=None, counts=counts, now_ms=lambda: 0
    )


@pytest.mark.parametrize(("size", "longest"), [("1000", 1000), ("-1", 2**31 - 1), ("0", 0), ("-2", -2)])
def test_requests_before_a_login_are_as_long_as_a_broker_takes_them(size: str, longest: int) -> None:
    """Ask NetworkReceive: only -1 is no limit, and any other value below 1 lets no client log in."""
    properties = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.server.max.receive.size": size}
    settings = from_properties({**properties, "sasl.enabled.mechanisms": "SCRAM-SHA-256"}).settings
    (listener,) = listeners(settings, MECHANISMS)
    assert frame_limits(listener, settings) == Limits(longest, 104_857_600)


async def test_a_gateway_opens_no_port_while_it_drains_and_is_there_until_the_last_connection_has_gone() -> None:
    ports = worker_ports()
    done: list[str] = []
    part = cast("Any", Recorded(done))
    ports.gateway = part
    ports._opened = {"PLAINTEXT": part}
    await ports.drain()
    assert done == ["no more ports", "connections closed within 2.5 s", "gateway closed"]


@pytest.mark.parametrize(("end_s", "told"), [(7.0, {"upstream": 7.0}), (None, {})])
async def test_the_certificate_that_a_gateway_shows_is_told_with_those_of_the_listeners(
    end_s: float | None, told: dict[str, float]
) -> None:
    ports = worker_ports()
    assert ports.certificates() == {}
    ports.gateway = cast("Any", SimpleNamespace(certificate_end_s=end_s))
    assert ports.certificates() == told
