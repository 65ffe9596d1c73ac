"""Refused logins leave nothing behind in the process, in either form of this package.

mypyc once leaked the attributes of each instance of a compiled exception. A refusal raises one, so any client could
have filled the memory of a node.

Source: the issues 21716 of python/mypy and 7853 of tobymao/sqlglot.
"""

from __future__ import annotations

import gc
import struct
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from kafka_dt_protocol import (
    ApiKey,
    ConnectionClosed,
    MechanismChosen,
    ServerConnection,
    TokenReceived,
    frame,
)
from kafka_dt_protocol.errors import InvalidFrameLength, UnknownApi
from kafka_dt_protocol.sasl import Challenge, CredentialRequest, Failure, ScramMechanism, ScramServer, derive_credential
from kafka_dt_protocol.sasl.errors import MalformedScramMessage
from tests.unit.protocol.conversation import LIMITS, MECHANISMS, NOW, Conversation

CREDENTIAL: Final = derive_credential(ScramMechanism.SHA_256, "secret", salt=b"random bytes", iterations=4096)
HANDSHAKE: Final = {"mechanism": "SCRAM-SHA-256"}


def asked(*messages: tuple[ApiKey, int, Mapping[str, object]]) -> tuple[bytes, ...]:
    client = Conversation()
    return tuple(frame(client.request(api, version, **values)) for api, version, values in messages)


def scram(*messages: bytes) -> tuple[bytes, ...]:
    return asked(
        (ApiKey.SASL_HANDSHAKE, 1, HANDSHAKE),
        *((ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": message}) for message in messages),
    )


REFUSED: Final[dict[str, tuple[bytes, ...]]] = {
    "a negative frame length": (struct.pack(">i", -1),),
    "an API that is unknown": (frame(struct.pack(">hhih", 9999, 0, 1, -1)),),
    "a version that is unknown": (frame(struct.pack(">hhih", ApiKey.SASL_HANDSHAKE, 99, 1, -1)),),
    "no header": (frame(b"GET"),),
    "a body that ends early": (frame(struct.pack(">hhih", ApiKey.SASL_HANDSHAKE, 1, 1, -1)),),
    "an API before the login": asked((ApiKey.METADATA, 1, {"topics": ()})),
    "a mechanism that is not offered": asked((ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "EXTERNAL"})),
    "a client-first without grammar": scram(b"alice secret"),
    "another authorization id": scram(b"n,a=bob,n=alice,r=nonce"),
    "a client-final without grammar": scram(b"n,,n=alice,r=nonce", b"c=biws"),
    "a wrong proof": scram(b"n,,n=alice,r=nonce", b"c=biws,r=noncefresh,p=" + b"A" * 43 + b"="),
}


def log_in(chunks: tuple[bytes, ...]) -> ConnectionClosed | None:
    """Serve one connection as a node does, and give how it ended."""
    connection = ServerConnection(MECHANISMS, LIMITS)
    server = ScramServer(ScramMechanism.SHA_256, "fresh")
    closed = None
    for chunk in chunks:
        connection.receive_data(chunk)
        event = connection.next_event(NOW)
        if isinstance(event, MechanismChosen):
            event = connection.next_event(NOW)
        if isinstance(event, TokenReceived):
            result = server.step(event.message)
            if isinstance(result, CredentialRequest):
                result = server.resume(CREDENTIAL)
            if isinstance(result, Challenge):
                connection.challenge(result.message)
            else:
                assert isinstance(result, Failure)
                event = connection.fail(result.detail)
        if isinstance(event, ConnectionClosed):
            closed = event
    connection.data_to_send()
    return closed


def growth(unit: Callable[[], int], run: Callable[[int], object], times: int) -> int:
    """Give by how many units the process grows when something is done so often, after it has warmed up."""
    run(times // 10)
    gc.collect()
    before = unit()
    run(times)
    gc.collect()
    return unit() - before


def resident_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


@pytest.mark.parametrize("refusal", REFUSED)
def test_a_refused_login_leaves_no_object(refusal: str) -> None:
    def refuse(times: int) -> None:
        for _ in range(times):
            log_in(REFUSED[refusal])

    assert log_in(REFUSED[refusal]) is not None
    # One object that stays for each refusal would be 2,000 of them.
    assert growth(sys.getallocatedblocks, refuse, 2_000) < 200


def test_an_error_with_attributes_leaves_no_object() -> None:
    def make(times: int) -> None:
        for number in range(times):
            made = (
                InvalidFrameLength(-number, 1),
                UnknownApi(number),
                MalformedScramMessage("client-first", str(number)),
            )
            assert made[0].length == -number

    assert growth(sys.getallocatedblocks, make, 2_000) < 200


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="resident memory is read from /proc")
def test_ten_million_refused_logins_grow_the_process_by_less_than_a_mebibyte() -> None:
    def refuse(times: int) -> None:
        for number in range(times):
            log_in(refusals[number % len(refusals)])

    refusals = tuple(REFUSED.values())
    assert growth(resident_bytes, refuse, 10_000_000) < 2**20
