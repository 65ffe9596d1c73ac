"""What `ServerConnection.next_event` gives: what a client did, and what the caller does next.

- `RequestReceived`: serve it and call `respond`, or `reject` it.
- `MechanismChosen`: make a new SASL mechanism; the connection has answered the handshake.
- `TokenReceived`: feed the mechanism, then call `challenge`, `succeed`, `fail` or `break_off`.
- `ConnectionClosed`: write what `data_to_send` holds (after the delay of failed logins if `delayed`) and close.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final

from kafka_dt_protocol.wire.headers import RequestHeader


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """A request to be served; answer it with `respond`."""

    header: RequestHeader
    body: Any = field(repr=False)
    """The kio entity of the request, in the version of the header; it may hold an HMAC."""


@dataclass(slots=True, init=False, unsafe_hash=True)
class MechanismChosen:
    """The client has chosen a SASL mechanism of those offered; an exchange begins."""

    mechanism: Final[str]

    def __init__(self, mechanism: str) -> None:
        self.mechanism = mechanism


@dataclass(slots=True, init=False, repr=False, unsafe_hash=True)
class TokenReceived:
    """A message of the SASL exchange for the mechanism that was chosen last."""

    message: Final[bytes]
    """A PLAIN message holds a password."""

    def __init__(self, message: bytes) -> None:
        self.message = message

    def __repr__(self) -> str:
        return "TokenReceived()"


@dataclass(slots=True, init=False, unsafe_hash=True)
class ConnectionClosed:
    """Nothing more is read; the connection is to be closed."""

    reason: Final[str]
    """One line for the log."""
    delayed: Final[bool]
    """Whether the answer and the closing wait for `connection.failed.authentication.delay.ms`."""
    error: Final[bool]
    """Whether the peer did something wrong, rather than just leave."""

    def __init__(self, reason: str, delayed: bool = False, error: bool = True) -> None:
        self.reason = reason
        self.delayed = delayed
        self.error = error


class LoginFault(Enum):
    """Why a login has failed before its mechanism could say a word."""

    NOT_OFFERED = auto()
    """The client asked for a mechanism that the listener does not offer."""
    MECHANISM_CHANGED = auto()
    """It asked for another one than before, at a re-authentication."""
    OUT_OF_TURN = auto()
    """It sent what is no request of a login, or nothing of Kafka's at all."""


Event = RequestReceived | MechanismChosen | TokenReceived | ConnectionClosed
