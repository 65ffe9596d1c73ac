"""Recorded SCRAM exchanges, and a way through an exchange for tests that look at its end only."""

import base64
import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_dt_protocol.sasl import (
    Challenge,
    CredentialRequest,
    ScramCredential,
    ScramMechanism,
    ScramServer,
    StepResult,
    derive_credential,
    derive_keys,
)
from kafka_dt_protocol.sasl.scram import client_proof

_VECTORS = Path(__file__).parents[2] / "vectors" / "scram"

CLIENT_NONCE = "fyko+d2lbbFgONRv9qkxdawL"
SERVER_NONCE = "3rfcNHYJY1ZVvWVs7j"
SALT = b"0123456789abcdef"

MECHANISMS = list(ScramMechanism)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A login that succeeded between two implementations of others."""

    origin: str
    name: str
    mechanism: ScramMechanism
    username: str
    password: str
    token: bool
    client_nonce: str
    server_nonce: str
    salt: bytes
    iterations: int
    client_first: bytes
    server_first: bytes
    client_final: bytes
    server_final: bytes
    stored_key: bytes | None
    server_key: bytes | None

    def __str__(self) -> str:
        return f"{self.origin}: {self.name}, {self.mechanism}"

    @property
    def credential(self) -> ScramCredential:
        return derive_credential(self.mechanism, self.password, self.salt, self.iterations)


@dataclass(frozen=True, slots=True)
class Case:
    """What Kafka's server said to a client that perhaps breaks a rule."""

    name: str
    mechanism: ScramMechanism
    client_first: bytes
    server_first: bytes
    client_final: bytes
    server_final: bytes
    outcome: str
    error: str


def vectors(name: str) -> Any:
    return json.loads((_VECTORS / f"{name}.json").read_text("utf-8"))


def exchanges() -> list[Exchange]:
    return [
        _exchange(origin, fields)
        for origin in ("rfc7677", "qpid", "kafka-clients-3.9.1")
        for fields in vectors(origin)["exchanges"]
    ]


def cases() -> list[Case]:
    return [
        Case(
            name=fields["name"],
            mechanism=ScramMechanism(fields["mechanism"]),
            client_first=fields["client_first"].encode(),
            server_first=fields["server_first"].encode(),
            client_final=fields["client_final"].encode(),
            server_final=fields["server_final"].encode(),
            outcome=fields["outcome"],
            error=fields["error"],
        )
        for fields in vectors("kafka-clients-3.9.1")["cases"]
    ]


def _exchange(origin: str, fields: dict[str, Any]) -> Exchange:
    texts = ("client_first", "server_first", "client_final", "server_final")
    binaries = ("salt", "stored_key", "server_key")
    converted = {name: fields[name].encode() for name in texts}
    converted |= {name: base64.b64decode(fields[name]) if name in fields else None for name in binaries}
    mechanism = ScramMechanism(fields["mechanism"])
    return Exchange(origin=origin, **(fields | converted | {"mechanism": mechanism}))


@functools.cache
def credential(mechanism: ScramMechanism, password: str) -> ScramCredential:
    """Derive once what many tests need; the salt and the iterations are the usual ones."""
    return derive_credential(mechanism, password, SALT, 4096)


def challenged(
    mechanism: ScramMechanism, client_first: bytes, known: ScramCredential, server_nonce: str = SERVER_NONCE
) -> tuple[ScramServer, bytes]:
    """Lead a server up to its challenge: the server, which waits for the client-final, and the server-first."""
    server = ScramServer(mechanism, server_nonce)
    assert isinstance(server.step(client_first), CredentialRequest)
    challenge = server.resume(known)
    assert isinstance(challenge, Challenge)
    return server, challenge.message


def prove(
    mechanism: ScramMechanism,
    client_first: bytes,
    server_first: bytes,
    password: str,
    extensions: str = "",
    *,
    before_nonce: str = "",
) -> bytes:
    """Make a client-final by RFC 5802 for any client-first; `extensions` is `,name=value` ... or empty.

    `before_nonce` is for what does not belong there.
    """
    gs2_flag, authorization_id, bare = client_first.split(b",", 2)
    gs2_header = b",".join((gs2_flag, authorization_id, b""))
    nonce, salt, iterations = (part[2:] for part in server_first.split(b",")[:3])
    without_proof = b"c=" + base64.b64encode(gs2_header) + b",r=" + before_nonce.encode() + nonce + extensions.encode()
    auth_message = b",".join((bare, server_first, without_proof))
    keys = derive_keys(mechanism, password, base64.b64decode(salt), int(iterations))
    return without_proof + b",p=" + base64.b64encode(client_proof(mechanism, keys, auth_message))


def conversation(
    mechanism: ScramMechanism,
    client_first: bytes,
    client_final: bytes | Callable[[bytes], bytes],
    known: ScramCredential,
    server_nonce: str = SERVER_NONCE,
) -> list[StepResult]:
    """Pass both messages of a client to a server, as far as it goes; return the server's outcomes.

    The client-final is given, or made from the server-first.
    """
    server = ScramServer(mechanism, server_nonce)
    outcomes = [server.step(client_first)]
    if isinstance(outcomes[-1], CredentialRequest):
        outcomes.append(server.resume(known))
    if isinstance(challenge := outcomes[-1], Challenge):
        final = client_final if isinstance(client_final, bytes) else client_final(challenge.message)
        outcomes.append(server.step(final))
    return outcomes
