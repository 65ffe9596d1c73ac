"""A scripted broker with a topic of news."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.protocol.scripted_server import ScriptedServer
from tests.support.tokens.scripted_topic import ScriptedTopic

NAME = "__kafka_dt_revocations"


@pytest.fixture
async def topic() -> AsyncIterator[ScriptedTopic]:
    async with ScriptedServer().running() as server:
        yield ScriptedTopic(server, NAME)
