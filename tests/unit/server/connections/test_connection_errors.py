"""What a connection does about errors of its own, and about bytes that are no request."""

from __future__ import annotations

import logging
import struct
from dataclasses import replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.audit import RefusalReason
from kafka_dt.server.handlers import RequestContext
from kafka_dt_protocol import APIS, MalformedMessage, build, frame, response_type
from tests.support.nodes.audit import RecordedEvents
from tests.support.server.fake_transport import Shell, turns
from tests.support.server.requests import FIND, SASL, StubLogin, answered, at_once, find, log_in, until


async def test_what_nobody_foresaw_is_answered_without_detail_and_the_connection_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def failing(context: RequestContext, body: Any) -> Any:
        if body.key == "bad":
            raise RuntimeError("the detail")
        return await at_once(context, body)

    shell = Shell(failing)
    shell.send(find(shell, "bad") + find(shell, "good"))
    bad, good = await answered(shell, 2)
    assert bad.error_code is ErrorCode.unknown_server_error
    assert "detail" not in str(bad.error_message)
    assert good.error_message == "good"
    assert "the detail" in caplog.text


async def test_a_request_that_makes_no_sense_closes_the_connection_after_the_good_ones_are_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def choosy(context: RequestContext, body: Any) -> Any:
        if body.key == "bad":
            raise MalformedMessage("a code of 0")
        return await at_once(context, body)

    caplog.set_level(logging.INFO)
    shell = Shell(choosy)
    shell.send(find(shell, "good") + find(shell, "bad") + find(shell, "too late"))
    await until(lambda: shell.transport.closed)
    assert [answer.error_message for answer in shell.answers()] == ["good"]
    assert "a code of 0" in caplog.text


async def test_an_answer_that_cannot_be_written_is_one_of_them() -> None:
    async def wrong(context: RequestContext, _body: Any) -> Any:
        return build(
            response_type(context.header), error_code=ErrorCode.none, error_message="", node_id=2**40, host="", port=0
        )

    shell = Shell(wrong)
    shell.send(find(shell, "group"))
    await until(lambda: bool(shell.transport.written))
    assert shell.answers()[0].error_code is ErrorCode.unknown_server_error


@pytest.mark.parametrize("later", [True, False])
async def test_a_login_that_fails_for_a_reason_of_our_own_closes_that_connection_alone(
    later: bool, caplog: pytest.LogCaptureFixture
) -> None:
    log = RecordedEvents()
    shell = Shell(at_once, SASL, lambda _: StubLogin(RuntimeError("the detail"), later), recorder=log.recorder)
    log_in(shell)
    await until(lambda: not shell.opened)
    assert [answer.error_code for answer in shell.answers()] == [ErrorCode.none], "no refusal, which would be final"
    assert "the detail" in caplog.text
    assert not shell.transport.aborted, "it has the delay of every login that cannot be decided"
    (event,) = log.told()
    assert (event["outcome"], event["reason"]) == ("refused", RefusalReason.UNAVAILABLE)


async def test_a_clock_that_fails_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> int:
        raise RuntimeError("no time")

    shell = Shell(at_once, now_ms=broken)
    shell.send(find(shell, "group"))
    await turns()
    assert shell.transport.aborted
    assert "no time" in caplog.text


async def test_a_refusal_that_fails_as_well_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    def failing(*_: object) -> Any:
        raise RuntimeError("no refusal either")

    shell = Shell(failing, apis=APIS.having(replace(APIS[FIND], refuse=failing)))
    shell.send(find(shell, "group"))
    await until(lambda: not shell.opened)
    assert shell.transport.aborted
    assert "no refusal either" in caplog.text


@pytest.mark.parametrize(
    "hostile",
    [
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"GET / HTTP/1.1\r\nHost: example\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40),
        frame(b""),
        frame(b"\0"),
        frame(struct.pack(">hhih", 999, 0, 1, -1)),
        frame(struct.pack(">hhih", 3, 99, 1, -1)),
        frame(struct.pack(">hhih", 10, 3, 1, -1) + b"\0" + b"\xff\xff\xff\xff\x0f"),
    ],
)
async def test_bytes_that_are_no_request_close_with_one_line(hostile: bytes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    shell = Shell(at_once)
    shell.send(find(shell, "good"))
    await turns()
    shell.send(hostile)
    await until(lambda: not shell.opened)
    assert [answer.error_message for answer in shell.answers()] == ["good"]
    (line,) = caplog.records
    assert line.levelno == logging.INFO
    assert "192.0.2.1:50000" in line.getMessage()
    assert "\n" not in line.getMessage()
