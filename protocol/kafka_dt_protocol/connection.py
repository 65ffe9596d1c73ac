"""The server's side of one connection: bytes in, events out; answers in the order of the requests; bytes out.

The caller feeds `receive_data` (and `receive_eof`), then asks `next_event` until it gives None; where `has_more` says
so it writes, lets others have their turn, and asks again. `events.py` says what the caller does with each event first.
While `answers_at_length` the caller goes on writing what `data_to_send` gives, and only then asks for the next event.

One request is under way at a time, so answers cannot overtake each other, and what a client sends meanwhile waits in
the splitter, where `buffered` tells the caller when to stop reading. ApiVersions, handshakes and requests in the wrong
state never reach the caller: they are answered here.

`login/authentication.py` holds which request is legal when and when a session ends, `login/messages.py` the requests
and answers of a login.

Time is an argument. A session that ended is noticed when its next request comes, as in a broker.

Source: KIP-43, KIP-152, KIP-368, KIP-511; org.apache.kafka.common.security.authenticator.SaslServerAuthenticator,
org.apache.kafka.common.network.KafkaChannel, kafka.network.Processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from kafka_dt_protocol.api.registry import APIS
from kafka_dt_protocol.api.table import ApiTable
from kafka_dt_protocol.errors import InvalidFrameLength, LocalProtocolError, RemoteProtocolError
from kafka_dt_protocol.events import (
    ConnectionClosed,
    Event,
    LoginFault,
    MechanismChosen,
    RequestReceived,
    TokenReceived,
)
from kafka_dt_protocol.login.authentication import Action, Request, SessionLifetime, State, next_step
from kafka_dt_protocol.login.messages import (
    VersionsOffered,
    decode_body,
    encode_api_versions,
    encode_handshake,
    encode_token_answer,
    failed_login,
    has_header,
    names_its_software,
)
from kafka_dt_protocol.wire.frames import FrameSplitter, Limits, OutgoingFrames
from kafka_dt_protocol.wire.headers import RequestHeader, encode_response_pieces, parse_request_header

ANSWERS_IN_A_ROW: Final = 64
"""How many requests are answered here before the caller gets its turn to write."""


class ServerConnection:
    """One client connection without its socket.

    Args:
        mechanisms: the SASL mechanisms that the listener offers; none for a listener without SASL.
        limits: how long frames may be.
        apis: the APIs that are served.
    """

    client_software: tuple[str, str] | None = None
    """Name and version of the client's library, once it told them (KIP-511)."""
    client_id: str | None = None
    """The client id of the last request that had a header."""
    asked_mechanism: str | None = None
    """The SASL mechanism that the client asked for last, offered or not."""
    login_fault: LoginFault | None = None
    """Set with the `ConnectionClosed` that ends a login, or comes instead of one, though no `fail` was called."""

    def __init__(self, mechanisms: Sequence[str], limits: Limits, apis: ApiTable = APIS) -> None:
        self._apis = apis
        self._mechanisms = tuple(mechanisms)
        self._limits = limits
        self._versions: VersionsOffered | None = None
        self._state = State.INITIAL if mechanisms else State.READY
        self._frames = FrameSplitter(limits.before_login_bytes if mechanisms else limits.after_login_bytes)
        self._eof = False
        self._out = OutgoingFrames()
        self._pending: RequestHeader | None = None
        self._awaits_answer = False
        self._mechanism: str | None = None
        self._mechanism_changed = False
        self._session = SessionLifetime()
        self._has_more = False

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
        return self._out.at_length

    @property
    def unsent(self) -> int:
        """How much `data_to_send` has still to give, in bytes."""
        return self._out.size

    @property
    def drained(self) -> bool:
        """Whether `next_event` would give None, because everything that was received has been dealt with."""
        return not (self._awaits_answer or self._eof or self._frames.buffered or self._state is State.CLOSING)

    @property
    def session_end_ms(self) -> int | None:
        """When the session ends, in milliseconds since the epoch; None if it has no end."""
        return self._session.end_ms

    def session_ended(self, now_ms: int) -> bool:
        """Say whether the session has an end and is past it, at an instant in milliseconds since the epoch."""
        return self._session.ended(now_ms)

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
                return self._close(
                    str(error), delayed=self._state is State.INITIAL and not has_header(content, self._apis)
                )
            if event is not None:
                return event
            answered += 1
        return None

    def data_to_send(self) -> bytes:
        """Give the bytes to be written now, in order; the next call gives those after them.

        That is all there is, or about `LONG_WRITE_BYTES` of a long answer.
        """
        return self._out.take()

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
        self._session.begin(session_lifetime_ms, now_ms)
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
            self._answer(header, failed_login(header, message))
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
        self._session.cut(when_ms)

    def _take(self, content: bytes, now_ms: int) -> Event | None:
        if self._mechanism_changed:
            self.login_fault = LoginFault.MECHANISM_CHANGED
            return self._close("the mechanism was changed at re-authentication", delayed=True)
        if self._state.bare:
            self._awaits_answer = True
            return TokenReceived(content)
        header, offset = parse_request_header(content, self._apis)
        self.client_id = header.client_id
        known = self._apis.steps.get((header.api_key, header.api_version))
        kind = Request.API_VERSIONS if known is None else known  # the one API that comes with unknown versions
        action, following = next_step(self._state, kind)
        if self._state is State.READY:
            if action is Action.CHOOSE_MECHANISM and not self._session.may_log_in_again(now_ms):
                action, following = Action.REFUSE, State.READY
            if action is not Action.CHOOSE_MECHANISM and self._session.ended(now_ms):
                return self._close("the session has ended")
        if action is Action.CLOSE:
            return self._close(
                f"API {header.api_key} is not allowed in state {self._state.name}",
                delayed=kind is not Request.API_VERSIONS,
            )
        if known is None:
            return self._refuse_version(header, action)
        body = decode_body(kind, header, content, offset, self._apis)
        return self._act(action, following, header, body, now_ms)

    def _act(self, action: Action, following: State, header: RequestHeader, body: Any, now_ms: int) -> Event | None:
        match action:
            case Action.SERVE | Action.EVALUATE_TOKEN:
                self._pending = header
                self._awaits_answer = True
                return RequestReceived(header, body) if action is Action.SERVE else TokenReceived(body)
            case Action.ANSWER_VERSIONS:
                self._answer_versions(header, body, following)
                return None
            case Action.CHOOSE_MECHANISM:
                return self._choose_mechanism(header, body.mechanism, following, now_ms)
            case _:
                return self._refuse(action, header, body)

    def _answer_versions(self, header: RequestHeader, body: Any, following: State) -> None:
        if header.api_version >= 3 and not names_its_software(body):  # noqa: PLR2004 - KIP-511 came with v3
            self._answer(header, self._apis.refusal(header, body, ErrorCode.invalid_request))
            return
        if header.api_version >= 3:  # noqa: PLR2004
            self.client_software = (body.client_software_name, body.client_software_version)
        version, correlation_id = header.api_version, header.correlation_id
        answer = encode_api_versions(version, correlation_id, versions=self._versions, apis=self._apis)
        self._out.put(answer)
        self._state = following

    def _refuse_version(self, header: RequestHeader, action: Action) -> Event | None:
        """Answer an ApiVersions of a version that there is none of, in the layout of v0 (KIP-511)."""
        v0 = RequestHeader(header.api_key, 0, header.correlation_id, header.client_id)
        if action is Action.ANSWER_VERSIONS:
            error = ErrorCode.unsupported_version
            self._out.put(encode_api_versions(0, header.correlation_id, error, apis=self._apis))
            return None
        return self._refuse(action, v0, None)

    def _choose_mechanism(self, header: RequestHeader, mechanism: str, following: State, now_ms: int) -> Event:
        offered = mechanism in self._mechanisms
        error = ErrorCode.none if offered else ErrorCode.unsupported_sasl_mechanism
        answer = encode_handshake(header.api_version, header.correlation_id, error, self._mechanisms)
        self._out.put(answer)
        self.asked_mechanism = mechanism
        if not offered:
            self.login_fault = LoginFault.NOT_OFFERED
            return self._close("the client asked for a SASL mechanism that is not offered", delayed=True)
        if self._state is State.READY:
            self._session.log_in_again(now_ms)
            self._mechanism_changed = mechanism != self._mechanism
        self._mechanism = mechanism
        self._state = following
        return MechanismChosen(mechanism)

    def _refuse(self, action: Action, header: RequestHeader, body: Any) -> Event | None:
        self._answer(header, self._apis.refusal(header, body, ErrorCode.illegal_sasl_state))
        if action is Action.REFUSE:
            return None
        return self._close(f"API {header.api_key} during a SASL exchange", delayed=True)

    def _owed(self) -> RequestHeader:
        if self._pending is None:
            raise LocalProtocolError("there is no request to answer")
        return self._pending

    def _settle(self) -> None:
        self._pending = None
        self._awaits_answer = False

    def _answer(self, header: RequestHeader, response: Any) -> None:
        version, correlation_id = header.api_version, header.correlation_id
        encoded = encode_response_pieces(header.api_key, version, correlation_id, response, self._apis)
        self._out.put_pieces(encoded)

    def _answer_token(self, message: bytes | None, session_lifetime_ms: int) -> None:
        if not self._state.bare:
            header = self._owed()
            answer = encode_token_answer(header.api_version, header.correlation_id, message or b"", session_lifetime_ms)
            self._out.put(answer)
        elif message is not None:
            self._out.put(message)
        self._settle()

    def _close(self, reason: str, *, delayed: bool = False, error: bool = True) -> ConnectionClosed:
        if error and self._state is not State.READY and self.login_fault is None:
            self.login_fault = LoginFault.OUT_OF_TURN
        self._state = State.CLOSING
        return ConnectionClosed(reason, delayed, error)
