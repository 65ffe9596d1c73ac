"""Any messages of a SASL peer: a server's mechanism gives an outcome, a client's refuses with a SaslError."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kafka_dt_protocol.sasl import (
    BearerAccepted,
    BearerRejected,
    Challenge,
    CredentialRequest,
    DigestServer,
    GssapiServer,
    OAuthBearerServer,
    PlainServer,
    SaslError,
    ScramClient,
    ScramCredential,
    ScramMechanism,
    ScramParameters,
    ScramServer,
    StepResult,
    VerdictRequest,
    derive_credential,
    plain_message,
)
from tests.fuzz.pieces import join, split
from tests.unit.protocol.sasl.test_gssapi import Pretended

PASSWORD: Final = "pencil"
CREDENTIAL: Final = derive_credential(ScramMechanism.SHA_256, PASSWORD, b"salt of the fuzzer", 4096)
VECTORS: Final = Path(__file__).parents[1] / "vectors" / "scram"


class _LateScram:
    """A SCRAM server that is told the salt and the iterations first, and the credential when the proof is there."""

    def __init__(self) -> None:
        self._server = ScramServer(ScramMechanism.SHA_256, "nonce")
        self._challenged = False
        self.step = self._server.step

    def resume(self, credential: ScramCredential) -> StepResult:
        challenged, self._challenged = self._challenged, True
        return self._server.resume(
            credential if challenged else ScramParameters(credential.salt, credential.iterations)
        )


_SERVERS: Final[tuple[Callable[[], Any], ...]] = (
    lambda: ScramServer(ScramMechanism.SHA_256, "nonce"),
    PlainServer,
    OAuthBearerServer,
    lambda: DigestServer("nonce"),
    lambda: GssapiServer(Pretended([b"", b"answer"])),
    _LateScram,
)
_CREDENTIALS: Final[tuple[Any, ...]] = (CREDENTIAL, PASSWORD, None, (PASSWORD,), None, CREDENTIAL)
"""What the driver finds for each of them."""


def seeds() -> Iterable[bytes]:
    """Give the messages of whole logins."""
    for recorded in sorted(VECTORS.glob("*.json")):
        for exchange in json.loads(recorded.read_text(encoding="utf-8"))["exchanges"]:
            for number in (b"\x00", b"\x05"):
                yield number + join(exchange[name].encode() for name in ("client_first", "client_final"))
            yield b"\x06" + join(exchange[name].encode() for name in ("server_first", "server_final"))
    yield b"\x01" + join([plain_message("user", PASSWORD)])
    yield b"\x02" + join([b"n,a=user,\x01auth=Bearer header.payload.signature\x01key=value\x01\x01", b"\x01"])
    yield b"\x03" + join([b"", b'username="user",nonce="nonce",nc=00000001,cnonce="c",response=0123,qop=auth'])
    yield b"\x04" + join([b"token", b"", b"wrapped:\x01\x00\x00\x00user"])


def check(data: bytes) -> None:
    """Have one machine take the messages; the first byte says which."""
    which, messages = data[:1], split(data[1:])
    if not which:
        return
    number = which[0] % (len(_SERVERS) + 1)
    if number == len(_SERVERS):
        with suppress(SaslError):
            _client(messages)
    else:
        _server(_SERVERS[number](), _CREDENTIALS[number], messages)


def _server(machine: Any, credential: Any, messages: Iterable[bytes]) -> None:
    for message in messages:
        outcome = machine.step(message)
        match outcome:
            case CredentialRequest():
                outcome = machine.resume(credential)
            case VerdictRequest(bearer_token=token):
                outcome = machine.resume(BearerAccepted("user") if len(token) % 2 else BearerRejected("refused"))
        if not isinstance(outcome, Challenge):
            return


def _client(messages: Iterable[bytes]) -> None:
    client = ScramClient(ScramMechanism.SHA_256, "user", PASSWORD, "rOprNGfwEbeRWgbNEkqO")
    client.first()
    for take, message in zip((client.challenge, client.verify), messages, strict=False):
        take(message)
