"""A gateway that traces has a span for each request that it forwards, from its beginning to the end of its answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest

from kafka_dt.gateway.traced import TracedForwarding
from kafka_dt.tracing import Spans
from kafka_dt_protocol import ApiKey
from tests.support.server.fake_gateway import JOIN_GROUP, FakeUpstream, GatewayShell, answer, produce, request

NO_API = 999


class RecordedSpans:
    """Keeps which spans have begun, and how each has ended."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, dict[str, Any]]] = []
        self.ended: list[tuple[str, str | None]] = []

    def forwarded(self, name: str, attributes: dict[str, Any]) -> Callable[[str | None], None]:
        self.begun.append((name, attributes))
        return lambda error: self.ended.append((name, error))


@pytest.fixture
def spans() -> RecordedSpans:
    return RecordedSpans()


async def forwarding(spans: RecordedSpans, *requests: bytes) -> tuple[GatewayShell, FakeUpstream]:
    shell = GatewayShell(intake=partial(TracedForwarding, spans=cast("Spans", spans)))
    shell.send(b"".join(requests))
    return shell, await shell.upstream()


async def test_a_span_says_which_request_of_whom_went_where(spans: RecordedSpans) -> None:
    await forwarding(spans, request(JOIN_GROUP, 1))
    (span,) = spans.begun
    assert span == (
        "JoinGroup",
        {
            "rpc.system": "kafka",
            "rpc.method": "JoinGroup",
            "kafka.api_version": 5,
            "client.address": "192.0.2.1",
            "enduser.id": "User:ANONYMOUS",
            "server.address": "broker:9092",
        },
    )


async def test_a_span_ends_with_the_last_byte_of_its_answer(spans: RecordedSpans) -> None:
    _, upstream = await forwarding(spans, request(JOIN_GROUP, 1), request(NO_API, 2))
    whole = answer(1, bytes(100))
    upstream.listener.upstream_data(whole[:-1])
    assert spans.ended == []
    upstream.listener.upstream_data(whole[-1:])
    assert spans.ended == [("JoinGroup", None)]
    upstream.answer(2)
    assert spans.ended == [("JoinGroup", None), (f"API {NO_API}", None)]


async def test_the_span_of_a_request_without_an_answer_ends_at_once(spans: RecordedSpans) -> None:
    await forwarding(spans, request(JOIN_GROUP, 1), produce(2, acks=0))
    assert spans.ended == [("Produce", None)]


async def test_a_span_whose_answer_is_lost_ends_with_an_error(spans: RecordedSpans) -> None:
    shell, upstream = await forwarding(spans, request(JOIN_GROUP, 1))
    upstream.listener.upstream_lost("it closed the connection")
    shell.transport.read_by_client()
    shell.connection.connection_lost(None)
    assert spans.ended == [("JoinGroup", "the connection has ended before the answer")]


async def test_what_the_gateway_serves_itself_is_not_forwarded(spans: RecordedSpans) -> None:
    shell = GatewayShell(intake=partial(TracedForwarding, spans=cast("Spans", spans)))
    shell.send(request(ApiKey.API_VERSIONS, 7, version=0))
    assert spans.begun == []
