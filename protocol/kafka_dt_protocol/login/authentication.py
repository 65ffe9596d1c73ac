"""What may follow what on a connection, from the first byte to the end of the session: the table of a Kafka login.

A connection to a SASL listener starts in INITIAL, one to a listener without SASL in READY. The client may ask for
ApiVersions once, then names a mechanism by SaslHandshake; by its version the tokens of the mechanism travel as bare
frames (v0) or inside SaslAuthenticate (v1). When the mechanism succeeds the connection is READY. A session with a
lifetime may log in again (KIP-368): the same walk, from REAUTHENTICATING on. `SessionLifetime` tells when.

`next_step(state, request)` looks a pair up; a pair that is absent is a request in the wrong state, whose consequence
depends on the state alone (`VIOLATION`). The enums are numbers, because the table is looked up for every request and
numbers are hashed without Python code. The picture in the manual is drawn from this table.

Source: KIP-43, KIP-152, KIP-368; org.apache.kafka.common.security.authenticator.SaslServerAuthenticator.SaslState and
org.apache.kafka.common.network.KafkaChannel, `connections.max.reauth.ms`.
"""

from __future__ import annotations

from enum import IntEnum, auto
from types import MappingProxyType
from typing import Final

REAUTHENTICATION_INTERVAL_MS: Final = 1_000
"""A session logs in again at most this often (KafkaChannel.MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS)."""


class State(IntEnum):
    """Where a connection is between its first byte and its session."""

    INITIAL = auto()
    """Nothing was received, or an ApiVersions that was refused."""
    VERSIONS_KNOWN = auto()
    """ApiVersions was answered; only a handshake may follow."""
    EXCHANGE = auto()
    """A mechanism was chosen by SaslHandshake v1; its tokens come in SaslAuthenticate."""
    BARE_EXCHANGE = auto()
    """A mechanism was chosen by SaslHandshake v0; its tokens come as bare frames."""
    READY = auto()
    """The client has logged in, or need not."""
    REAUTHENTICATING = auto()
    """As EXCHANGE, in a session that was READY before."""
    BARE_REAUTHENTICATING = auto()
    """As BARE_EXCHANGE, in a session that was READY before."""
    CLOSING = auto()
    """The connection ends; nothing that arrives is looked at."""

    @property
    def bare(self) -> bool:
        """Whether frames are tokens of the mechanism without a Kafka header."""
        return self is State.BARE_EXCHANGE or self is State.BARE_REAUTHENTICATING

    @property
    def logged_in(self) -> bool:
        """Whether a first login has been completed."""
        return self in {State.READY, State.REAUTHENTICATING, State.BARE_REAUTHENTICATING}


class Request(IntEnum):
    """The kinds of frames that the table tells apart."""

    API_VERSIONS = auto()
    HANDSHAKE_V0 = auto()
    HANDSHAKE_V1 = auto()
    TOKEN = auto()
    """A SaslAuthenticate, or a bare frame where bare frames are expected."""
    OTHER = auto()
    """Any other API."""


class Action(IntEnum):
    """What the connection does with a frame."""

    ANSWER_VERSIONS = auto()
    CHOOSE_MECHANISM = auto()
    EVALUATE_TOKEN = auto()
    SERVE = auto()
    CLOSE = auto()
    """Close without an answer."""
    REFUSE_AND_CLOSE = auto()
    """Answer ILLEGAL_SASL_STATE in the layout of the request, then close."""
    REFUSE = auto()
    """Answer ILLEGAL_SASL_STATE in the layout of the request and go on."""


TRANSITIONS: Final = MappingProxyType(
    {
        (State.INITIAL, Request.API_VERSIONS): (Action.ANSWER_VERSIONS, State.VERSIONS_KNOWN),
        (State.INITIAL, Request.HANDSHAKE_V0): (Action.CHOOSE_MECHANISM, State.BARE_EXCHANGE),
        (State.INITIAL, Request.HANDSHAKE_V1): (Action.CHOOSE_MECHANISM, State.EXCHANGE),
        (State.VERSIONS_KNOWN, Request.HANDSHAKE_V0): (Action.CHOOSE_MECHANISM, State.BARE_EXCHANGE),
        (State.VERSIONS_KNOWN, Request.HANDSHAKE_V1): (Action.CHOOSE_MECHANISM, State.EXCHANGE),
        (State.EXCHANGE, Request.TOKEN): (Action.EVALUATE_TOKEN, State.EXCHANGE),
        (State.BARE_EXCHANGE, Request.TOKEN): (Action.EVALUATE_TOKEN, State.BARE_EXCHANGE),
        (State.READY, Request.API_VERSIONS): (Action.ANSWER_VERSIONS, State.READY),
        (State.READY, Request.HANDSHAKE_V0): (Action.CHOOSE_MECHANISM, State.BARE_REAUTHENTICATING),
        (State.READY, Request.HANDSHAKE_V1): (Action.CHOOSE_MECHANISM, State.REAUTHENTICATING),
        (State.READY, Request.OTHER): (Action.SERVE, State.READY),
        (State.REAUTHENTICATING, Request.TOKEN): (Action.EVALUATE_TOKEN, State.REAUTHENTICATING),
        (State.BARE_REAUTHENTICATING, Request.TOKEN): (Action.EVALUATE_TOKEN, State.BARE_REAUTHENTICATING),
    }
)
"""(state, request) -> (action, next state). READY with a handshake holds where the session may log in again; the
connection refuses it elsewhere."""

VIOLATION: Final = MappingProxyType(
    {
        State.INITIAL: (Action.CLOSE, State.CLOSING),
        State.VERSIONS_KNOWN: (Action.CLOSE, State.CLOSING),
        State.EXCHANGE: (Action.REFUSE_AND_CLOSE, State.CLOSING),
        State.BARE_EXCHANGE: (Action.CLOSE, State.CLOSING),
        State.READY: (Action.REFUSE, State.READY),
        State.REAUTHENTICATING: (Action.REFUSE_AND_CLOSE, State.CLOSING),
        State.BARE_REAUTHENTICATING: (Action.CLOSE, State.CLOSING),
        State.CLOSING: (Action.CLOSE, State.CLOSING),
    }
)
"""state -> what a request that `TRANSITIONS` does not hold leads to."""


def next_step(state: State, request: Request) -> tuple[Action, State]:
    """Look up what a request does in a state, and the state afterwards if the action succeeds."""
    return TRANSITIONS.get((state, request)) or VIOLATION[state]


class SessionLifetime:
    """The lifetime of the session that the last login began.

    Instants are milliseconds of a clock that is never set: a session does not live longer because the time of day is
    set back, as at a broker (KafkaChannel reads `Time.nanoseconds`).
    """

    __slots__ = ("_granted_end_ms", "_last_login_ms", "end_ms")

    def __init__(self) -> None:
        self.end_ms: int | None = None
        """When the session ends; None if it has no end."""
        self._granted_end_ms: int | None = None
        self._last_login_ms: int | None = None

    def begin(self, lifetime_ms: int | None, now_ms: int) -> None:
        """Begin a session that ends after so many milliseconds; None is never."""
        self._granted_end_ms = self.end_ms = None if lifetime_ms is None else now_ms + lifetime_ms

    def cut(self, when_ms: int) -> None:
        """End a session that has an end at an earlier instant; the last call counts."""
        if self._granted_end_ms is not None:
            self.end_ms = min(self._granted_end_ms, when_ms)

    def ended(self, now_ms: int) -> bool:
        """Say whether the session has an end and is past it."""
        return self.end_ms is not None and now_ms > self.end_ms

    def may_log_in_again(self, now_ms: int) -> bool:
        """Say whether the client may log in again: the session has an end, and the last time was long enough ago."""
        if self.end_ms is None:
            return False
        return self._last_login_ms is None or now_ms - self._last_login_ms >= REAUTHENTICATION_INTERVAL_MS

    def log_in_again(self, now_ms: int) -> None:
        """Note that the client begins to log in again."""
        self._last_login_ms = now_ms
