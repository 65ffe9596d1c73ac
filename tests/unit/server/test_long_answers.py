"""A long answer is written in parts, as the client reads; what others do meanwhile, and what ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.server.handlers import RequestContext
from protocol import ApiKey, build, element_type, response_type
from protocol.connection import LONG_WRITE_BYTES
from protocol.encoding import Encoded, EncodedArray, encode
from tests.support.fake_transport import Shell, turns

DESCRIBE = ApiKey.DESCRIBE_DELEGATION_TOKEN
TOKENS = 40
TOKEN_BYTES = 32_000
PARTS = -(-TOKENS * TOKEN_BYTES // LONG_WRITE_BYTES)


async def at_length(context: RequestContext, _: Any) -> Any:
    """Answer with more than a megabyte."""
    kind = response_type(context.header)
    principal = {"principal_type": "User", "principal_name": "a" * TOKEN_BYTES}
    requester = {"token_requester_principal_type": "User", "token_requester_principal_name": "b"}
    times = {"issue_timestamp": 1, "expiry_timestamp": 2, "max_timestamp": 3}
    token = build(element_type(kind, "tokens"), **principal, **requester, **times, token_id="", hmac=b"", renewers=())
    return build(kind, error_code=ErrorCode.none, tokens=EncodedArray([Encoded(encode(token))] * TOKENS))


class Work:
    """A handler whose work never ends by itself."""

    def __init__(self, *, long: bool) -> None:
        self.long = long
        self.begun = self.called_off = False

    async def __call__(self, context: RequestContext, _: Any) -> Any:
        self.begun = True
        if self.long:
            context.end_with_client()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.called_off = True
            raise


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await turns(1)


def ask(shell: Shell, count: int = 1) -> None:
    shell.send(b"".join(shell.request(DESCRIBE, 3, owners=None) for _ in range(count)))


def lose(shell: Shell) -> None:
    shell.transport.abort()


def say_goodbye(shell: Shell) -> None:
    shell.connection.eof_received()


async def test_a_long_answer_is_written_a_part_in_each_turn_of_the_loop() -> None:
    shell = Shell(at_length, high_water=2**30)
    ask(shell)
    sizes = [0]
    while len(sizes) < PARTS + 10:
        await turns(1)
        sizes.append(len(shell.transport.written))
    written = [after - before for before, after in pairwise(sizes) if after > before]
    assert max(written) <= LONG_WRITE_BYTES + TOKEN_BYTES + 100
    assert len(written) >= PARTS - 1
    (answer,) = shell.answers()
    assert len(answer.tokens) == TOKENS


async def test_a_client_that_does_not_read_gets_a_part_and_then_the_rest() -> None:
    shell = Shell(at_length)
    ask(shell)
    await turns(50)
    assert 0 < len(shell.transport.written) <= LONG_WRITE_BYTES + TOKEN_BYTES + 100
    assert shell.connection.owes_answers
    assert not shell.connection.busy, "a client that does not read is idle"
    for _ in range(2 * PARTS):
        shell.transport.read_by_client()
        await turns(5)
    assert len(shell.answers()) == 1
    assert not shell.connection.owes_answers


async def test_requests_behind_a_long_answer_wait_until_it_is_written() -> None:
    shell = Shell(at_length)
    ask(shell, 3)
    for _ in range(6 * PARTS):
        await turns(5)
        shell.transport.read_by_client()
    assert [len(answer.tokens) for answer in shell.answers()] == [TOKENS] * 3


async def test_a_connection_is_finished_when_its_long_answer_is_written() -> None:
    shell = Shell(at_length, high_water=2**30)
    ask(shell)
    await until(lambda: len(shell.transport.written) > 0)
    shell.connection.finish()
    assert not shell.transport.closed
    await until(lambda: shell.transport.closed)
    assert len(shell.answers()) == 1


async def test_a_client_that_says_goodbye_gets_its_long_answer() -> None:
    shell = Shell(at_length, high_water=2**30)
    ask(shell)
    await until(lambda: len(shell.transport.written) > 0)
    shell.connection.eof_received()
    await until(lambda: shell.transport.closed)
    assert len(shell.answers()) == 1


@pytest.mark.parametrize("leave", [lose, say_goodbye])
async def test_long_work_ends_when_its_client_is_gone_or_says_goodbye(leave: Callable[[Shell], None]) -> None:
    work = Work(long=True)
    shell = Shell(work)
    ask(shell)
    await until(lambda: work.begun)
    leave(shell)
    await until(lambda: work.called_off)
    await until(lambda: not shell.opened)


async def test_long_work_of_a_client_that_has_said_goodbye_before_does_not_go_on() -> None:
    work = Work(long=True)
    shell = Shell(work)
    ask(shell)
    say_goodbye(shell)
    await until(lambda: work.called_off)
    await until(lambda: not shell.opened)


async def test_other_work_goes_on_without_its_client() -> None:
    work = Work(long=False)
    shell = Shell(work)
    ask(shell)
    await until(lambda: work.begun)
    say_goodbye(shell)
    lose(shell)
    await turns()
    assert not work.called_off
    work_task = next(task for task in asyncio.all_tasks() if task is not asyncio.current_task())
    work_task.cancel()
