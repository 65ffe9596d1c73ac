"""A scripted broker with a topic of news."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from kafka_dt.client import Address, ClientConfig, parse_addresses
from kafka_dt.client.session import ClientSession
from kafka_dt.kraft.session import session
from tests.support.protocol.scripted_server import ScriptedServer
from tests.support.tokens.scripted_topic import ScriptedTopic

NAME = "__kafka_dt_revocations"


def connecting_to(topic: ScriptedTopic) -> Callable[[Address | None], ClientSession]:
    config = ClientConfig(bootstrap_servers=parse_addresses(topic.server.address), request_timeout_ms=5_000)
    return lambda broker: session(config, None if broker is None else lambda: (broker,))


@pytest.fixture
async def topic() -> AsyncIterator[ScriptedTopic]:
    async with ScriptedServer().running() as server:
        yield ScriptedTopic(server, NAME)
