"""However the bytes of a login arrive, the gateway serves the login, and forwards what follows it."""

from __future__ import annotations

import pytest

from kafka_dt.config import SecurityProtocol
from kafka_dt_protocol import ApiKey
from tests.support.server.fake_gateway import JOIN_GROUP, GatewayShell, request
from tests.support.server.fake_transport import listener

SASL = listener(SecurityProtocol.SASL_PLAINTEXT)
FOLLOWING = request(JOIN_GROUP, 4)


def login_frames(shell: GatewayShell) -> list[bytes]:
    """What a client sends until it has logged in as alice."""
    return [
        shell.request(ApiKey.API_VERSIONS, 3, client_software_name="a-client", client_software_version="1"),
        shell.request(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN"),
        shell.request(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"\0alice\0alice's"),
    ]


async def check_pieces(shell: GatewayShell, pieces: list[bytes]) -> None:
    for piece in pieces:
        shell.send(piece)
    upstream = await shell.upstream()
    assert upstream.written == FOLLOWING
    assert [answer.error_code.value for answer in shell.answers()] == [0, 0, 0]
    assert shell.connection.authenticator.principal.name == "alice"


async def test_a_frame_at_a_time() -> None:
    shell = GatewayShell(listener=SASL)
    await check_pieces(shell, [*login_frames(shell), FOLLOWING])


@pytest.mark.parametrize("size", [1, 5, 40, 1_000])
async def test_any_pieces(size: int) -> None:
    shell = GatewayShell(listener=SASL)
    data = b"".join(login_frames(shell)) + FOLLOWING
    await check_pieces(shell, [data[begin : begin + size] for begin in range(0, len(data), size)])


@pytest.mark.parametrize("cut", [0, 1, 4, 11])
async def test_the_last_frame_of_the_login_with_the_begin_of_the_next_request(cut: int) -> None:
    shell = GatewayShell(listener=SASL)
    *first, last = login_frames(shell)
    await check_pieces(shell, [*first, last + FOLLOWING[:cut], FOLLOWING[cut:]])


async def test_frames_of_a_login_come_after_one_that_is_cut() -> None:
    shell = GatewayShell(listener=SASL)
    first, second, third = login_frames(shell)
    await check_pieces(shell, [first[:7], first[7:] + second, third, FOLLOWING])
