r"""The server side of SASL OAUTHBEARER, and a client's message: one message with a bearer token, judged by the driver.

    server = OAuthBearerServer()
    server.step(client_first)        -> VerdictRequest(bearer_token)        or Failure
    server.resume(BearerAccepted)    -> Success(b"", name, extensions)      or Failure (another authorization id)
    server.resume(BearerRejected)    -> Challenge(JSON with the status)
    server.step(b"\x01")              -> Failure, whose words for the client are that JSON again

Only the driver sees the token: neither an outcome's repr nor a failure holds any of it. A message that has a key twice
is refused; Kafka takes the last one. Every message of a client after a refusal fails, as RFC 7628 says; Kafka would let
the client try another token.

Source: RFC 7628 section 3; KIP-255, KIP-342 (extensions);
org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerSaslServer and
org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerClientInitialResponse.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, TypeAlias

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl.mechanism import (
    NO_EXTENSIONS,
    Challenge,
    Failure,
    Fault,
    StepResult,
    Success,
    VerdictRequest,
)

OAUTHBEARER: Final = "OAUTHBEARER"
"""The name of the mechanism in SaslHandshake."""

_SEPARATOR: Final = "\x01"
_GS2_HEADER: Final = re.compile(r"n,(?:a=(?P<authorization_id>(?:[^=,\x00\x01]|=2C|=3D)+))?,")
_KEY: Final = re.compile(r"[A-Za-z]+")
_VALUE: Final = re.compile(r"[\x21-\x7E \t\r\n]+")
_CREDENTIALS: Final = re.compile(r"(?P<scheme>[A-Za-z0-9_]+) +(?P<token>[-_~+/.A-Za-z0-9]+=*)")
_AUTH: Final = "auth"
ABORT: Final = b"\x01"
"""A client's answer to the JSON of a refusal: now the server fails the login."""


@dataclass(frozen=True, slots=True)
class BearerAccepted:
    """The token is good."""

    name: str
    """The authentication id for which the token was issued."""


@dataclass(frozen=True, slots=True)
class BearerRejected:
    """The token is not accepted."""

    detail: str
    """Why, for our log: one line without any of the token."""
    status: str = "invalid_token"
    """What the client is told: a code of RFC 6750 section 3.1."""
    scope: str | None = None
    """The scope that a token would need, if that is what is wrong."""

    @property
    def message(self) -> str:
        """The JSON for the client (RFC 7628 section 3.2.2)."""
        fields = {"status": self.status} | ({} if self.scope is None else {"scope": self.scope})
        return json.dumps(fields)


BearerVerdict: TypeAlias = BearerAccepted | BearerRejected


@dataclass(frozen=True, slots=True)
class _ClientFirst:
    """What has to be remembered while the driver judges the token."""

    authorization_id: str
    extensions: Mapping[str, str]


class _Bare(Enum):
    """The states in which there is nothing to remember."""

    NEW = auto()
    ENDED = auto()


class OAuthBearerServer:
    """The server side of one OAUTHBEARER login: a `ServerMechanism[BearerVerdict]`."""

    __slots__ = ("_state",)

    def __init__(self) -> None:
        self._state: _Bare | _ClientFirst | BearerRejected = _Bare.NEW

    def step(self, response: bytes) -> StepResult:
        """Take the client's first message, or what it says to a refusal.

        Raises:
            LocalProtocolError: a verdict is due, or the machine has ended
        """
        state = self._state
        if isinstance(state, BearerRejected):
            self._state = _Bare.ENDED
            return Failure(state.detail, state.message)
        if state is not _Bare.NEW:
            raise LocalProtocolError("OAUTHBEARER expects no message of the client now")
        self._state = _Bare.ENDED
        try:
            self._state, token = _parse_client_first(response)
        except _MalformedError as error:
            return Failure(f"client-first: {error}", fault=Fault.GRAMMAR)
        return VerdictRequest(token)

    def resume(self, credential: BearerVerdict) -> StepResult:
        """Take the verdict on the token.

        Raises:
            LocalProtocolError: no verdict was asked for
        """
        client_first = self._state
        if not isinstance(client_first, _ClientFirst):
            raise LocalProtocolError("OAUTHBEARER has not asked for a verdict")
        if isinstance(credential, BearerRejected):
            self._state = credential
            return Challenge(credential.message.encode("ascii"))
        self._state = _Bare.ENDED
        if client_first.authorization_id not in ("", credential.name):
            return Failure(
                "client-first: an authorization id other than the token's principal name",
                "Authentication failed: Client requested an authorization id that is different from the token's "
                "principal name",
                Fault.IDENTITY,
            )
        return Success(b"", credential.name, client_first.extensions)


def bearer_message(token: str, extensions: Mapping[str, str] = NO_EXTENSIONS) -> bytes:
    """Return the first message of a client. A server that refuses the token answers with JSON, and then wants `ABORT`.

    Args:
        token: the bearer token, as its issuer wrote it
        extensions: by name (KIP-342)

    Raises:
        LocalProtocolError: a part cannot be sent
    """
    pairs = {_AUTH: f"Bearer {token}", **extensions}
    if not _CREDENTIALS.fullmatch(pairs[_AUTH]) or _AUTH in extensions:
        raise LocalProtocolError("this is no bearer token")
    for key, value in extensions.items():
        if not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            raise LocalProtocolError("an extension of OAUTHBEARER has a key of letters and a printable value")
    parts = ("n,,", *(f"{key}={value}" for key, value in pairs.items()), "", "")
    return _SEPARATOR.join(parts).encode("ascii")


class _MalformedError(Exception):
    """The client's first message does not follow the grammar; the text holds none of it."""


def _parse_client_first(response: bytes) -> tuple[_ClientFirst, str]:
    """Split `gs2-header %x01 *(key=value %x01) %x01` into what is remembered and the token."""
    try:
        parts = response.decode().split(_SEPARATOR)
    except UnicodeDecodeError:
        raise _MalformedError("it is not UTF-8") from None
    header = _GS2_HEADER.fullmatch(parts[0])
    if header is None:
        raise _MalformedError("it does not start with n,, or n,a=<authorization id>,")
    if len(parts) < len(("header", "", "")) or parts[-1] or parts[-2]:
        raise _MalformedError("it does not end with two separators")
    pairs = _parse_pairs(parts[1:-2])
    auth = pairs.pop(_AUTH, None)
    if auth is None:
        raise _MalformedError("it has no auth")
    credentials = _CREDENTIALS.fullmatch(auth)
    if credentials is None or credentials["scheme"].lower() != "bearer":
        raise _MalformedError("its auth is not Bearer and a token")
    # In this order: `=3D2C` stands for `=2C`, not for a comma.
    authorization_id = (header["authorization_id"] or "").replace("=2C", ",").replace("=3D", "=")
    return _ClientFirst(authorization_id, MappingProxyType(pairs)), credentials["token"]


def _parse_pairs(parts: list[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in parts:
        key, _, value = part.partition("=")
        if not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            raise _MalformedError("a part is not key=value")
        if key in pairs:
            raise _MalformedError("a key is there twice")
        pairs[key] = value
    return pairs
