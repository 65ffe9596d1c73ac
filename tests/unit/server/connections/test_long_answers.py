"""A long answer is written in parts, as the client reads; what others do meanwhile, and what ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest

from kafka_dt_protocol.wire.frames import LONG_WRITE_BYTES
from tests.support.server.fake_transport import Shell, turns
from tests.support.server.long_answers import DESCRIBE, PARTS, TOKEN_BYTES, TOKENS, Work, at_length
from tests.support.server.requests import until


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
