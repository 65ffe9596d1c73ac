"""A long answer of the gateway's own and what goes upstream do not get into each other's way."""

from __future__ import annotations

from tests.support.server.fake_gateway import JOIN_GROUP, GatewayShell, answer, request
from tests.support.server.fake_transport import turns
from tests.support.server.long_answers import DESCRIBE, PARTS, Work, at_length


async def test_what_follows_a_long_answer_is_forwarded_when_all_of_it_has_been_written() -> None:
    shell = GatewayShell(at_length, high_water=2**30)
    shell.send(shell.request(DESCRIBE, 3, owners=None))
    while not shell.transport.written:
        await turns(1)
    shell.send(request(JOIN_GROUP, 7))
    for _ in range(PARTS + 10):
        await turns(1)
        if shell.connector.made:
            break
    upstream = shell.connector.made[0]
    length = len(shell.transport.written)
    assert int.from_bytes(shell.transport.written[:4], "big") == length - 4, "the whole answer, and nothing else"
    await turns()
    upstream.answer(7, b"content")
    await turns()
    assert shell.transport.written[length:] == answer(7, b"content")


async def test_long_work_for_a_client_that_says_goodbye_is_called_off() -> None:
    work = Work(long=True)
    shell = GatewayShell(work)
    shell.send(shell.request(DESCRIBE, 3, owners=None))
    await turns()
    assert work.begun
    shell.connection.eof_received()
    await turns()
    assert work.called_off
    assert shell.opened == []
