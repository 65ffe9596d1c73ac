"""Send requests and answers in any order and pieces: each request gets one answer, in order, from its server."""

from __future__ import annotations

import asyncio
import random
import struct
from typing import Any, Final

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.gateway.upstream import Exchange
from kafka_dt.server.handlers import ClusterAnswer, RequestContext
from kafka_dt_protocol import APIS, ApiKey, RequestHeader, build, encode_request, frame, refusal
from tests.support.nodes.audit import RecordedEvents
from tests.support.server.fake_gateway import JOIN_GROUP, PRODUCE, FakeUpstream, GatewayShell, answer, produce, request
from tests.support.server.fake_transport import turns

SEEDS: Final = range(40)
MOST_MOVES: Final = 20_000
LOGIN_ID: Final = 9999
LOGIN: Final = request(ApiKey.API_VERSIONS, LOGIN_ID, version=1)


class Play:
    """One client, one upstream, and a dice that says which of them does what, and how much of it."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)  # noqa: S311 - a test that can be repeated
        self.shell = GatewayShell(
            self._serve, recorder=RecordedEvents().recorder, high_water=self.dice.choice([30, 200, 65536])
        )
        self.shell.connector.open.clear()
        self.shell.connector.relogin = self._log_in_again
        self.logins = 0
        self.to_send = b""
        self.forwarded = b""
        self.answered: list[int] = []
        for correlation_id in range(1, self.dice.randrange(2, 40)):
            self._add_request(correlation_id)
        self._seen = 0
        self._asked = b""
        self._answers = b""
        self.taken = b""
        self._full = False
        self._moves = (
            self._send,
            self._send,
            self._open,
            self._take,
            self._answer,
            self._read,
            self._fill,
            self._make_room,
            self._let_login_be_due,
        )

    async def move(self) -> None:
        """Do something."""
        self.dice.choice(self._moves)()
        if not self.dice.randrange(9):
            await asyncio.sleep(0)
        assert not self.shell.transport.closed

    @property
    def over(self) -> bool:
        """Whether the client has got all its answers, and the upstream all its requests."""
        whole = len(self.taken) == len(self.forwarded)
        return whole and not self.to_send and len(self.ids()) == len(self.answered)

    def ids(self) -> list[int]:
        """The correlation ids of the answers that have come whole."""
        ids, data = [], bytes(self.shell.transport.written)
        while len(data) >= 4 and len(data) >= 4 + int.from_bytes(data[:4]):
            ids.append(int.from_bytes(data[4:8]))
            data = data[4 + int.from_bytes(data[:4]) :]
        return ids

    # The client

    def _add_request(self, correlation_id: int) -> None:
        dice = self.dice
        match dice.randrange(6):
            case 0:
                data, upstream, answered = request(ApiKey.API_VERSIONS, correlation_id, version=0), False, True
            case 1:
                data, upstream, answered = produce(correlation_id, 0, bytes(dice.choice([0, 10, 400]))), True, False
            case 2:
                data, upstream, answered = produce(correlation_id, 1, bytes(dice.choice([0, 10, 400]))), True, True
            case 3:
                header = RequestHeader(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, correlation_id, "x")
                body = build(APIS[ApiKey.DESCRIBE_DELEGATION_TOKEN].request[1], owners=None)
                data, upstream, answered = frame(encode_request(header, body)), False, True
            case 4:
                header = RequestHeader(ApiKey.CREATE_ACLS, 3, correlation_id, "x" * dice.choice([1, 400]))
                body = build(APIS[ApiKey.CREATE_ACLS].request[3], creations=())
                data, upstream, answered = frame(encode_request(header, body)), True, True
            case _:
                data, upstream, answered = request(JOIN_GROUP, correlation_id, bytes(dice.choice([0, 900]))), True, True
        self.to_send += data
        self.forwarded += data * upstream
        self.answered += [correlation_id] * answered

    def _send(self) -> None:
        if self.to_send and self.shell.transport.reading:
            count = self.dice.choice([1, 3, 7, 50, 500, 5000])
            data, self.to_send = self.to_send[:count], self.to_send[count:]
            self.shell.send(data)

    def _read(self) -> None:
        self.shell.transport.read_by_client()

    # The gateway

    async def _serve(self, context: RequestContext, body: Any) -> Any:
        await turns(self.dice.randrange(4))
        if context.ask_cluster is not None:
            return ClusterAnswer(None, await context.ask_cluster())
        return refusal(context.header, body, ErrorCode.invalid_request)

    def _open(self) -> None:
        if not self.dice.randrange(5):
            self.shell.connector.open.set()

    def _let_login_be_due(self) -> None:
        if self._upstream and not self.dice.randrange(10):
            self.shell.forwarding.upstream.log_in_when_drained()

    async def _log_in_again(self, exchange: Exchange) -> None:
        await turns(self.dice.randrange(3))
        assert await exchange(LOGIN_ID, LOGIN) == struct.pack(">i", LOGIN_ID)
        self.logins += 1

    # The upstream

    @property
    def _upstream(self) -> FakeUpstream | None:
        return self.shell.connector.made[0] if self.shell.connector.made else None

    def _take(self) -> None:
        if (upstream := self._upstream) is None:
            return
        self._asked += bytes(upstream.written[self._seen :])
        self._seen = len(upstream.written)
        while len(self._asked) >= 4 and len(self._asked) >= (end := 4 + int.from_bytes(self._asked[:4])):
            whole, self._asked = self._asked[:end], self._asked[end:]
            api, _, correlation_id = struct.unpack_from(">hhi", whole, 4)
            if correlation_id == LOGIN_ID:
                self._answers += answer(correlation_id)
                continue
            self.taken += whole
            if api != PRODUCE or whole[17:19] != b"\0\0":
                self._answers += answer(correlation_id, bytes(self.dice.choice([0, 4, 300])))

    def _answer(self) -> None:
        if (upstream := self._upstream) and upstream.reading and self._answers:
            count = self.dice.choice([1, 5, 60, 1000])
            data, self._answers = self._answers[:count], self._answers[count:]
            upstream.listener.upstream_data(data)

    def _fill(self) -> None:
        if (upstream := self._upstream) and not self._full:
            self._full = True
            upstream.listener.upstream_full()

    def _make_room(self) -> None:
        if (upstream := self._upstream) and self._full:
            self._full = False
            upstream.listener.upstream_writable()


@pytest.mark.parametrize("seed", SEEDS)
async def test_every_request_is_answered_once_in_order_by_whom_it_is_meant_for(seed: int) -> None:
    play = Play(seed)
    for _ in range(MOST_MOVES):
        await play.move()
        if play.over:
            break
    play.shell.connection.abort()
    await turns()
    assert play.taken == play.forwarded
    assert play.ids() == play.answered
