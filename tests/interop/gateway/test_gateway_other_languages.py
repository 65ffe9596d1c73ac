"""Clients in Go, JavaScript and Rust produce and consume through the gateway, logged in with a token of kafka-dt."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka_dt.client import DelegationToken
from tests.interop.clients.programs import CLIENTS, Program, login, seen
from tests.support.java.records_client import ReadBack, value
from tests.support.nodes.gateway import Gateway

COUNT = 200

pytestmark = pytest.mark.soak


@pytest.fixture
def settings(gateway: Gateway, alice: DelegationToken) -> dict[str, object]:
    return login(gateway.sasl, alice)


@pytest.mark.parametrize("name", seen("records", *CLIENTS))
def test_records_of_a_client_come_back_whole_and_in_order(
    program_of: Callable[[str], Program], settings: dict[str, object], topic: str, group: str, name: str
) -> None:
    program = program_of(name)
    assert topic in program.ask("topics", settings)
    records = [(str(number), value(number)) for number in range(COUNT)]
    found = program.ask("records", settings | {"topic": topic, "group": group, "records": records})
    read = ReadBack.gathered((partition, key.encode(), content.encode()) for partition, key, content in found)
    assert read == ReadBack.of(COUNT, partitions=2)
