"""The server's side of one connection: bytes in, events out; answers in the order of the requests; bytes out.

The caller feeds `receive_data` (and `receive_eof`), then asks `next_event` until it gives None; where `has_more` says
so it writes, lets others have their turn, and asks again. Each event says what the caller must do before it asks again:

- `RequestReceived`: serve it and call `respond`, or `reject` it.
- `MechanismChosen`: make a new SASL mechanism; nothing is to be answered, the handshake was.
- `TokenReceived`: feed the mechanism, then call `challenge`, `succeed`, `fail` or `break_off`.
- `ConnectionClosed`: write what `data_to_send` holds (after the delay of failed logins if `delayed`) and close.

While `answers_at_length` the caller goes on writing what `data_to_send` gives, and only then asks for the next event.

One request is under way at a time, so answers cannot overtake each other, and what a client sends meanwhile waits in
the splitter, where `buffered` tells the caller when to stop reading. ApiVersions, handshakes and requests in the wrong
state never reach the caller: they are answered here.

Time is an argument. A session that ended is noticed when its next request comes, as in a broker.

Source: KIP-43, KIP-152, KIP-368, KIP-511; Kafka's SaslServerAuthenticator, KafkaChannel, SocketServer.Processor.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import chain
from typing import Any, Final

from kio.schema.errors import ErrorCode

from kafka_dt_protocol.api.registry import APIS, ApiKey
from kafka_dt_protocol.api.responses import build, refusal, response_type
from kafka_dt_protocol.errors import InvalidFrameLength, LocalProtocolError, RemoteProtocolError, UnsupportedVersion
from kafka_dt_protocol.login.answers import VersionsOffered, encode_api_versions, encode_handshake, encode_token_answer
from kafka_dt_protocol.login.authentication import Action, Request, State, next_step
from kafka_dt_protocol.login.requests import decode_opening, decode_token
from kafka_dt_protocol.wire.decoding import decode
from kafka_dt_protocol.wire.frames import FrameSplitter, frame, frame_pieces
from kafka_dt_protocol.wire.headers import RequestHeader, encode_response_pieces, parse_request_header
from kafka_dt_protocol.wire.times import to_duration

REAUTHENTICATION_INTERVAL_MS: Final = 1_000
"""A session logs in again at most this often (KafkaChannel.MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS)."""

ANSWERS_IN_A_ROW: Final = 64
"""How many requests are answered here before the caller gets its turn to write."""

LONG_WRITE_BYTES: Final = 256 * 1024
"""How much of a long answer is given to the caller at once."""

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""KIP-511: what a client may call itself."""


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """A request to be served; answer it with `respond`."""

    header: RequestHeader
    body: Any = field(repr=False)
    """The kio entity of the request, in the version of the header; it may hold an HMAC."""


@dataclass(frozen=True, slots=True)
class MechanismChosen:
    """The client has chosen a SASL mechanism of those offered; an exchange begins."""

    mechanism: str


@dataclass(frozen=True, slots=True)
class TokenReceived:
    """A message of the SASL exchange for the mechanism that was chosen last."""

    message: bytes = field(repr=False)
    """A PLAIN message holds a password."""


@dataclass(frozen=True, slots=True)
class ConnectionClosed:
    """Nothing more is read; the connection is to be closed."""

    reason: str
    """One line for the log."""
    delayed: bool = False
    """Whether the answer and the closing wait for `connection.failed.authentication.delay.ms`."""
    error: bool = True
    """Whether the peer did something wrong, rather than just leave."""


class LoginFault(Enum):
    """Why a login has failed before its mechanism could say a word."""

    NOT_OFFERED = auto()
    """The client asked for a mechanism that the listener does not offer."""
    MECHANISM_CHANGED = auto()
    """It asked for another one than before, at a re-authentication."""
    OUT_OF_TURN = auto()
    """It sent what is no request of a login, or nothing of Kafka's at all."""


Event = RequestReceived | MechanismChosen | TokenReceived | ConnectionClosed


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a frame may be."""

    before_login_bytes: int
    """`sasl.server.max.receive.size`."""
    after_login_bytes: int
    """`socket.request.max.bytes`."""


class ServerConnection:
    """One client connection without its socket.

    Args:
        mechanisms: the SASL mechanisms that the listener offers; none for a listener without SASL.
        limits: how long frames may be.
    """

    client_software: tuple[str, str] | None = None
    """Name and version of the client's library, once it told them (KIP-511)."""
    client_id: str | None = None
    """The client id of the last request that had a header."""
    asked_mechanism: str | None = None
    """The SASL mechanism that the client asked for last, offered or not."""
    login_fault: LoginFault | None = None
    """Set with the `ConnectionClosed` that ends a login, or comes instead of one, though no `fail` was called."""

    def __init__(self, mechanisms: Sequence[str], limits: Limits) -> None:
        self._mechanisms = tuple(mechanisms)
        self._limits = limits
        self._versions: VersionsOffered | None = None
        self._state = State.INITIAL if mechanisms else State.READY
        self._frames = FrameSplitter(limits.before_login_bytes if mechanisms else limits.after_login_bytes)
        self._eof = False
        self._out: deque[tuple[bytes, ...]] = deque()
        self._unsent = 0
        self._at_length = False
        self._pending: RequestHeader | None = None
        self._awaits_answer = False
        self._mechanism: str | None = None
        self._mechanism_changed = False
        self._session_end_ms: int | None = None
        self._cut_ms: int | None = None
        self._has_more = False
        self._reauthenticated_ms: int | None = None

    @property
    def state(self) -> State:
        """Where the connection is in its login."""
        return self._state

    @property
    def buffered(self) -> int:
        """How many bytes have been received and not been taken out as events, in bytes."""
        return self._frames.buffered

    @property
    def frames_given(self) -> int:
        """How many frames have been taken out of what was received, whether or not they became events."""
        return self._frames.given

    @property
    def awaits_answer(self) -> bool:
        """Whether the caller has an event that it has not answered."""
        return self._awaits_answer

    @property
    def answers_at_length(self) -> bool:
        """Whether an answer of more than `LONG_WRITE_BYTES`, which is given in parts, has not been given whole."""
        return self._at_length

    @property
    def unsent(self) -> int:
        """How much `data_to_send` has still to give, in bytes."""
        return self._unsent

    @property
    def drained(self) -> bool:
        """Whether `next_event` would give None, because everything that was received has been dealt with."""
        return not (self._awaits_answer or self._eof or self._frames.buffered or self._state is State.CLOSING)

    @property
    def session_end_ms(self) -> int | None:
        """When the session ends, in milliseconds since the epoch; None if it has no end."""
        if self._session_end_ms is None or self._cut_ms is None:
            return self._session_end_ms
        return min(self._session_end_ms, self._cut_ms)

    def session_ended(self, now_ms: int) -> bool:
        """Say whether the session has an end and is past it, at an instant in milliseconds since the epoch."""
        end_ms = self.session_end_ms
        return end_ms is not None and now_ms > end_ms

    @property
    def has_more(self) -> bool:
        """Whether the last `next_event` gave None only to let the caller write what has been answered."""
        return self._has_more

    def offer(self, versions: VersionsOffered | None) -> None:
        """Say what ApiVersions is answered with from now on; None for the APIs that are served here."""
        self._versions = versions

    def receive_data(self, data: bytes) -> None:
        """Take bytes from the peer; call `next_event` next, unless an answer is owed."""
        self._frames.receive_data(data)

    def discard(self) -> None:
        """Forget what has been received and what is to be sent, once the connection is lost."""
        self._frames.discard()
        self._out.clear()
        self._unsent = 0
        self._at_length = False

    def receive_eof(self) -> None:
        """Note that the peer will send no more; what it sent is still served."""
        self._eof = True

    def next_event(self, now_ms: int) -> Event | None:
        """Give the next event, or None until more data arrives or, with `has_more`, until its answers are written.

        Args:
            now_ms: milliseconds since the epoch.

        Raises:
            LocalProtocolError: the event before has not been answered.
        """
        if self._awaits_answer:
            raise LocalProtocolError("the request before has not been answered")
        self._has_more = False
        answered = 0
        while self._state is not State.CLOSING:
            if answered == ANSWERS_IN_A_ROW:
                self._has_more = True
                return None
            try:
                content = self._frames.next_frame()
            except InvalidFrameLength as error:
                return self._close(str(error), delayed=not self._state.logged_in)
            if content is None:
                return self._close("the client closed the connection", error=False) if self._eof else None
            try:
                event = self._take(content, now_ms)
            except RemoteProtocolError as error:
                return self._close(str(error), delayed=self._state is State.INITIAL and not _has_header(content))
            if event is not None:
                return event
            answered += 1
        return None

    def data_to_send(self) -> bytes:
        """Give the bytes to be written now, in order; the next call gives those after them.

        That is all there is, or about `LONG_WRITE_BYTES` of a long answer.
        """
        out = self._out
        if not out:
            return b""
        if not self._at_length:
            data = b"".join(chain.from_iterable(out))
            out.clear()
            self._unsent = 0
            return data
        pieces: list[bytes] = []
        size = 0
        while out and size < LONG_WRITE_BYTES:
            batch = out.popleft()
            taken = 0
            while taken < len(batch) and size < LONG_WRITE_BYTES:
                size += len(batch[taken])
                taken += 1
            pieces += batch[:taken]
            if taken < len(batch):
                out.appendleft(batch[taken:])
        self._unsent -= size
        self._at_length = bool(out)
        return b"".join(pieces)

    def respond(self, response: Any) -> None:
        """Answer a `RequestReceived` with the response entity of its API and version.

        Raises:
            LocalProtocolError: the entity does not fit; the answer is still owed.
        """
        self._answer(self._owed(), response)
        self._settle()

    def reject(self, reason: str) -> ConnectionClosed:
        """Leave a `RequestReceived` without an answer, as a broker does with a body that makes no sense.

        Args:
            reason: one line for the log.

        Returns:
            What the caller does next.
        """
        self._settle()
        return self._close(reason)

    def challenge(self, message: bytes) -> None:
        """Answer a `TokenReceived` with the mechanism's next challenge."""
        self._answer_token(message, 0)

    def succeed(self, message: bytes | None, session_lifetime_ms: int | None, now_ms: int) -> None:
        """Complete the login.

        Args:
            message: the mechanism's last message, may be empty; None if it has none.
            session_lifetime_ms: after how many milliseconds the session ends; None for never.
            now_ms: milliseconds since the epoch.
        """
        self._answer_token(message, session_lifetime_ms or 0)
        self._session_end_ms = None if session_lifetime_ms is None else now_ms + session_lifetime_ms
        self._cut_ms = None
        self._state = State.READY
        self._frames.max_bytes = self._limits.after_login_bytes

    def fail(self, message: str) -> ConnectionClosed:
        """End the login without success.

        Args:
            message: what the client is told (not in a bare exchange, which has no place for it).

        Returns:
            What the caller does next.
        """
        if not self._state.bare:
            header = self._owed()
            self._answer(header, _failed(header, message))
        return self.break_off("the login failed")

    def break_off(self, reason: str) -> ConnectionClosed:
        """End the login without an answer, so that the client tries again: it cannot be decided now.

        Args:
            reason: one line for the log.

        Returns:
            What the caller does next.
        """
        self._settle()
        self._state = State.CLOSING
        return ConnectionClosed(reason, delayed=True)

    def give_up(self, reason: str) -> ConnectionClosed:
        """Close because of what the caller has seen in the bytes that it was to feed.

        Args:
            reason: one line for the log.

        Returns:
            What the caller does next.
        """
        return self._close(reason, delayed=not self._state.logged_in)

    def end_session_at(self, when_ms: int) -> None:
        """Let a session that has an end have an earlier one: its token ends before its lifetime does.

        The last call counts, so that a token that is renewed again gives back what it took. A new login forgets it.
        """
        self._cut_ms = when_ms

    def _take(self, content: bytes, now_ms: int) -> Event | None:
        if self._mechanism_changed:
            self.login_fault = LoginFault.MECHANISM_CHANGED
            return self._close("the mechanism was changed at re-authentication", delayed=True)
        if self._state.bare:
            return self._evaluate(content)
        header, offset = parse_request_header(content)
        self.client_id = header.client_id
        kind = _kind(header)
        action, following = next_step(self._state, kind)
        if self._state is State.READY:
            if action is Action.CHOOSE_MECHANISM and not self._may_log_in_again(now_ms):
                action, following = Action.REFUSE, State.READY
            if action is not Action.CHOOSE_MECHANISM and self.session_ended(now_ms):
                return self._close("the session has ended")
        if action is Action.CLOSE:
            return self._close(
                f"API {header.api_key} is not allowed in state {self._state.name}",
                delayed=kind is not Request.API_VERSIONS,
            )
        if kind is Request.API_VERSIONS and header.api_version not in APIS[ApiKey.API_VERSIONS].request:
            return self._refuse_version(header, action)
        body = _body(kind, header, content, offset)
        return self._act(action, following, header, body, now_ms)

    def _act(
        self,
        action: Action,
        following: State,
        header: RequestHeader,
        body: Any,
        now_ms: int,
    ) -> Event | None:
        match action:
            case Action.SERVE:
                self._await(header)
                return RequestReceived(header, body)
            case Action.EVALUATE_TOKEN:
                self._await(header)
                return TokenReceived(body)
            case Action.ANSWER_VERSIONS:
                self._answer_versions(header, body, following)
                return None
            case Action.CHOOSE_MECHANISM:
                return self._choose_mechanism(header, body.mechanism, following, now_ms)
            case _:
                return self._refuse(action, header, body)

    def _answer_versions(self, header: RequestHeader, body: Any, following: State) -> None:
        if header.api_version >= 3 and not _names_itself(body):  # noqa: PLR2004 - KIP-511 came with v3
            self._answer(header, refusal(header, body, ErrorCode.invalid_request))
            return
        if header.api_version >= 3:  # noqa: PLR2004
            self.client_software = (body.client_software_name, body.client_software_version)
        answer = encode_api_versions(header.api_version, header.correlation_id, versions=self._versions)
        self._put(frame(answer))
        self._state = following

    def _refuse_version(self, header: RequestHeader, action: Action) -> Event | None:
        """Answer an ApiVersions of a version that there is none of, in the layout of v0 (KIP-511)."""
        v0 = RequestHeader(header.api_key, 0, header.correlation_id, header.client_id)
        if action is Action.ANSWER_VERSIONS:
            self._put(frame(encode_api_versions(0, header.correlation_id, ErrorCode.unsupported_version)))
            return None
        return self._refuse(action, v0, None)

    def _choose_mechanism(self, header: RequestHeader, mechanism: str, following: State, now_ms: int) -> Event:
        offered = mechanism in self._mechanisms
        error = ErrorCode.none if offered else ErrorCode.unsupported_sasl_mechanism
        answer = encode_handshake(header.api_version, header.correlation_id, error, self._mechanisms)
        self._put(frame(answer))
        self.asked_mechanism = mechanism
        if not offered:
            self.login_fault = LoginFault.NOT_OFFERED
            return self._close("the client asked for a SASL mechanism that is not offered", delayed=True)
        if self._state is State.READY:
            self._reauthenticated_ms = now_ms
            self._mechanism_changed = mechanism != self._mechanism
        self._mechanism = mechanism
        self._state = following
        return MechanismChosen(mechanism)

    def _refuse(self, action: Action, header: RequestHeader, body: Any) -> Event | None:
        self._answer(header, refusal(header, body, ErrorCode.illegal_sasl_state))
        if action is Action.REFUSE:
            return None
        return self._close(f"API {header.api_key} during a SASL exchange", delayed=True)

    def _evaluate(self, message: bytes) -> Event:
        self._awaits_answer = True
        return TokenReceived(message)

    def _may_log_in_again(self, now_ms: int) -> bool:
        if self._session_end_ms is None:
            return False
        before = self._reauthenticated_ms
        return before is None or now_ms - before >= REAUTHENTICATION_INTERVAL_MS

    def _await(self, header: RequestHeader) -> None:
        self._pending = header
        self._awaits_answer = True

    def _owed(self) -> RequestHeader:
        if self._pending is None:
            raise LocalProtocolError("there is no request to answer")
        return self._pending

    def _settle(self) -> None:
        self._pending = None
        self._awaits_answer = False

    def _answer(self, header: RequestHeader, response: Any) -> None:
        pieces = frame_pieces(
            encode_response_pieces(header.api_key, header.api_version, header.correlation_id, response)
        )
        self._out += pieces.batches
        self._unsent += pieces.size
        self._at_length = self._at_length or pieces.size > LONG_WRITE_BYTES

    def _put(self, piece: bytes) -> None:
        self._out.append((piece,))
        self._unsent += len(piece)

    def _answer_token(self, message: bytes | None, session_lifetime_ms: int) -> None:
        if not self._state.bare:
            header = self._owed()
            answer = encode_token_answer(header.api_version, header.correlation_id, message or b"", session_lifetime_ms)
            self._put(frame(answer))
        elif message is not None:
            self._put(frame(message))
        self._settle()

    def _close(self, reason: str, *, delayed: bool = False, error: bool = True) -> ConnectionClosed:
        if error and self._state is not State.READY and self.login_fault is None:
            self.login_fault = LoginFault.OUT_OF_TURN
        self._state = State.CLOSING
        return ConnectionClosed(reason, delayed, error)


def _body(kind: Request, header: RequestHeader, content: bytes, offset: int) -> Any:
    """Read the body of a request; of a SaslAuthenticate only the bytes of the mechanism."""
    match kind:
        case Request.TOKEN:
            return decode_token(header.api_version, content, offset)
        case Request.OTHER:
            api = APIS[header.api_key]
            body, _ = decode(api.request[header.api_version], content, offset, max_elements=api.max_elements)
            return body
        case _:
            return decode_opening(header.api_key, header.api_version, content, offset)


def _kind(header: RequestHeader) -> Request:
    key = header.api_key
    if key == ApiKey.SASL_AUTHENTICATE:
        return Request.TOKEN
    if key == ApiKey.SASL_HANDSHAKE:
        return Request.HANDSHAKE_V1 if header.api_version else Request.HANDSHAKE_V0
    return Request.API_VERSIONS if key == ApiKey.API_VERSIONS else Request.OTHER


def _has_header(content: bytes) -> bool:
    """Say whether a broken first request is a request at all: what is none counts as one of the wrong kind."""
    try:
        parse_request_header(content)
    except UnsupportedVersion as error:
        return error.api_key == ApiKey.SASL_HANDSHAKE
    except RemoteProtocolError:
        return False
    return True


def _names_itself(body: Any) -> bool:
    return bool(_SOFTWARE.fullmatch(body.client_software_name) and _SOFTWARE.fullmatch(body.client_software_version))


def _failed(header: RequestHeader, message: str) -> Any:
    return build(
        response_type(header),
        error_code=ErrorCode.sasl_authentication_failed,
        error_message=message,
        auth_bytes=b"",
        session_lifetime=to_duration(0),
    )
