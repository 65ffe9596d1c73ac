"""A step about the topic that fails is repeated, sooner if no broker can be reached than if one refuses it."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.client import ConnectionFailed, RequestRefused, TokenClientError
from kafka_dt.kraft.news.member import Member, NoBroker, NoMember, for_ever, leader_of
from tests.support.protocol.scripted_server import ScriptedServer
from tests.support.tokens.scripted_topic import ScriptedTopic
from tests.unit.kraft.news.conftest import NAME, connecting_to


@pytest.mark.usefixtures("steady_time")
@pytest.mark.parametrize(
    ("error", "longest_s"),
    [
        (NoBroker("no broker can be reached"), 1.0),
        (ConnectionFailed("the broker that leads is away"), 3.0),
        (NoMember("no broker has the topic"), 3.0),
        (RequestRefused(ErrorCode.topic_authorization_failed, "read the topic"), 3.0),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else None,
)
async def test_a_step_that_fails_for_long_is_repeated_after_so_long(
    topic: ScriptedTopic, error: TokenClientError, longest_s: float
) -> None:
    loop = asyncio.get_running_loop()
    tried_s: list[float] = []

    async def step() -> None:
        tried_s.append(loop.time())
        raise error

    member = Member(NAME, connecting_to(topic), leader_of)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(for_ever(step, member, "read the topic", loop.time), 60)
    pauses_s = [later - sooner for sooner, later in itertools.pairwise(tried_s)]
    assert pauses_s[0] == pytest.approx(0.1)
    assert pauses_s[-1] == max(pauses_s) == pytest.approx(longest_s)


async def test_that_no_broker_can_be_reached_is_told_from_a_broker_that_is_away() -> None:
    async with ScriptedServer().running() as server:
        member = Member(NAME, connecting_to(ScriptedTopic(server, NAME)), leader_of)
    with pytest.raises(NoBroker):
        await member.ready()
