"""The requests of one connection: in which order, with what context, and how far ahead they are read."""

from __future__ import annotations

import asyncio

import pytest

from kafka_dt.config import Endpoint, SecurityProtocol
from kafka_dt.server.connections.connection import EVENTS_IN_A_ROW
from kafka_dt.server.connections.intake import READ_AHEAD_BYTES
from kafka_dt.tokens import ANONYMOUS
from kafka_dt_protocol import ApiKey
from tests.support.server.fake_transport import Shell, listener, turns
from tests.support.server.requests import FIND, Gate, at_once, find, until


async def test_pipelined_requests_are_served_one_by_one_and_answered_in_order() -> None:
    gate = Gate()
    shell = Shell(gate)
    shell.send(b"".join(find(shell, str(number)) for number in range(5)))
    await turns()
    assert len(gate.asked) == 1
    gate.let_through(5)
    await until(lambda: gate.served == 5)
    await turns()
    assert [answer.error_message for answer in shell.answers()] == ["0", "1", "2", "3", "4"]


async def test_a_request_knows_who_asks_and_where_the_client_has_connected_to() -> None:
    gate = Gate()
    shell = Shell(gate)
    shell.send(find(shell, "group"))
    await turns()
    context, body = gate.asked[0]
    assert (context.principal, context.token_login) == (ANONYMOUS, False)
    assert context.security_protocol is SecurityProtocol.PLAINTEXT
    assert (context.endpoint.host, context.endpoint.port) == ("192.0.2.2", 9092)
    assert body.key == "group"


async def test_an_advertised_address_is_told_as_it_is() -> None:
    gate = Gate()
    shell = Shell(gate, listener(advertised=Endpoint("PLAINTEXT", "tokens.example", 443)))
    shell.send(find(shell, "group"))
    await turns()
    assert gate.asked[0][0].endpoint == Endpoint("PLAINTEXT", "tokens.example", 443)


async def test_an_advertised_address_is_told_instead_and_its_port_may_be_the_bound_one() -> None:
    gate = Gate()
    shell = Shell(gate, listener(advertised=Endpoint("PLAINTEXT", "tokens.example", 0)))
    shell.send(find(shell, "group"))
    await turns()
    assert (gate.asked[0][0].endpoint.host, gate.asked[0][0].endpoint.port) == ("tokens.example", 9092)


async def test_bytes_one_by_one_make_a_request() -> None:
    shell = Shell(at_once)
    for byte in find(shell, "group"):
        shell.send(bytes([byte]))
    await turns()
    assert [answer.error_message for answer in shell.answers()] == ["group"]


async def test_reading_stops_while_a_request_is_under_way_and_much_waits_behind_it() -> None:
    gate = Gate()
    shell = Shell(gate, high_water=10**9)
    many = b"".join(find(shell, "x" * 1000) for _ in range(100))
    shell.send(many[:50_000])
    assert shell.transport.reading
    shell.send(many[50_000:])
    assert not shell.transport.reading
    gate.let_through(100)
    await until(lambda: gate.served == 100)
    await turns()
    assert len(shell.answers()) == 100
    assert shell.transport.reading


async def test_a_large_request_is_read_to_its_end() -> None:
    shell = Shell(at_once)
    large = find(shell, "x" * 30_000)
    whole = shell.request(FIND, 4, key_type=0, coordinator_keys=("y" * 30_000,) * 10)
    shell.send(large + whole[:-1])
    assert len(whole) > READ_AHEAD_BYTES
    await turns()
    assert shell.transport.reading
    assert len(shell.answers()) == 1


async def test_a_client_that_does_not_read_its_answers_is_not_served_further() -> None:
    gate = Gate()
    gate.let_through(1000)
    shell = Shell(gate, high_water=10_000)
    requests = b"".join(find(shell, "x" * 1000) for _ in range(200))
    shell.send(requests)
    await until(lambda: not shell.transport.reading)
    await turns(50)
    assert gate.served < 20
    assert len(shell.transport.written) < 20_000
    while gate.served < 200:
        before = gate.served
        shell.transport.read_by_client()
        await until(lambda: gate.served > before)  # noqa: B023 - awaited at once
        await turns(50)
    shell.transport.read_by_client()
    await turns()
    assert len(shell.answers()) == 200
    assert shell.transport.reading


@pytest.mark.parametrize("api", [ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE])
async def test_what_is_answered_without_a_handler_leaves_others_their_turn_too(api: ApiKey) -> None:
    shell = Shell(at_once, high_water=10**9)
    count = 8_000
    shell.send(b"".join(shell.request(api, 0, mechanism="PLAIN") for _ in range(count)))
    answered = len(shell.answers())
    assert answered <= EVENTS_IN_A_ROW
    assert not shell.transport.reading
    others = 0
    while answered < count:
        await asyncio.sleep(0)
        others += 1
        answered += len(shell.answers())
    assert others >= count // EVENTS_IN_A_ROW / 2
    await turns()
    assert shell.transport.reading


async def test_a_client_that_floods_and_does_not_read_makes_no_answers_pile_up() -> None:
    shell = Shell(at_once, high_water=10_000)
    versions = b"".join(shell.request(ApiKey.API_VERSIONS, 0) for _ in range(8_000))
    shell.send(versions)
    await turns(500)
    assert len(shell.transport.written) < 10_000 + EVENTS_IN_A_ROW * 200
    assert not shell.transport.reading
