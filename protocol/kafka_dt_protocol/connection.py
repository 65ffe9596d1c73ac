"""The server's side of one connection: bytes in, events out; answers in the order of the requests; bytes out.

The caller feeds `receive_data` (and `receive_eof`), then asks `next_event` until it gives None; where `has_more` says
so it writes, lets others have their turn, and asks again. `events.py` says what the caller does with each event first.
While `answers_at_length` the caller goes on writing what `data_to_send` gives, and only then asks for the next event.

One request is under way at a time, so answers cannot overtake each other, and what a client sends meanwhile waits in
the splitter, where `buffered` tells the caller when to stop reading. ApiVersions, handshakes and requests in the wrong
state never reach the caller: they are answered here.

Time is an argument, in milliseconds of a clock that is never set. A session that ended is noticed when its next
request comes, as in a broker. `login/authentication.py` holds which request is legal when, `login/messages.py` the
messages of a login.

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
    FIRST_WITH_SOFTWARE,
    VersionsOffered,
    decode_body,
    encode_handshake,
    encode_token_answer,
    encode_versions,
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

    state: State
    """Where the connection is in its login; not to be changed by others, as all that follows."""
    session: SessionLifetime
    """When the session ends; the caller may `cut` it, because its token ends before its lifetime does."""
    awaits_answer: bool
    """Whether the caller has an event that it has not answered."""
    has_more: bool
    """Whether the last `next_event` gave None only to let the caller write what has been answered."""
    client_software: tuple[str, str] | None = None
    """Name and version of the client's library, once it told them (KIP-511)."""
    client_id: str | None = None
    """The client id of the last request that had a header."""
    asked_mechanism: str | None = None
    """The SASL mechanism that the client asked for last, offered or not."""
    login_fault: LoginFault | None = None
    """Set with the `ConnectionClosed` that ends a login, or comes instead of one, though no `fail` was called."""

    def __init__(self, mechanisms: Sequence[str], limits: Limits, apis: ApiTable = APIS) -> None:
        self.state = State.INITIAL if mechanisms else State.READY
        self.session = SessionLifetime()
        self.awaits_answer = False
        self.has_more = False
        self._apis = apis
        self._mechanisms = tuple(mechanisms)
        self._limits = limits
        self._versions: VersionsOffered = apis
        self._frames = FrameSplitter(limits.before_login_bytes if mechanisms else limits.after_login_bytes)
        self._eof = False
        self._out = OutgoingFrames()
        self._pending: RequestHeader | None = None
        self._mechanism: str | None = None
        self._mechanism_changed = False

    @property
    def buffered(self) -> int:
        """How many bytes have been received and not been taken out as events."""
        return self._frames.buffered

    @property
    def frames_given(self) -> int:
        """How many frames have been taken out of what was received, whether or not they became events."""
        return self._frames.given

    @property
    def answers_at_length(self) -> bool:
        """Whether an answer of more than `LONG_WRITE_BYTES`, which is given in parts, has not been given whole."""
        return self._out.at_length

    @property
    def unsent(self) -> int:
        """How many bytes `data_to_send` has still to give."""
        return self._out.size

    @property
    def drained(self) -> bool:
        """Whether `next_event` would give None, because everything that was received has been dealt with."""
        return not (self.awaits_answer or self._eof or self._frames.buffered or self.state is State.CLOSING)

    def offer(self, versions: VersionsOffered | None) -> None:
        """Say what ApiVersions is answered with from now on; None for the APIs that are served here."""
        self._versions = self._apis if versions is None else versions

    def receive_data(self, data: bytes) -> None:
        """Take bytes from the peer; call `next_event` next, unless an answer is owed."""
        self._frames.receive_data(data)

    def receive_eof(self) -> None:
        """Note that the peer will send no more; what it sent is still served."""
        self._eof = True

    def discard(self) -> None:
        """Forget what has been received and what is to be sent, once the connection is lost."""
        self._frames.discard()
        self._out.clear()

    def next_event(self, now_ms: int) -> Event | None:
        """Give the next event, or None until more data arrives or, with `has_more`, until its answers are written.

        Raises:
            LocalProtocolError: the event before has not been answered.
        """
        if self.awaits_answer:
            raise LocalProtocolError("the request before has not been answered")
        self.has_more = False
        answered = 0
        while self.state is not State.CLOSING:
            if answered == ANSWERS_IN_A_ROW:
                self.has_more = True
                return None
            try:
                content = self._frames.next_frame()
            except InvalidFrameLength as error:
                return self.give_up(str(error))
            if content is None:
                return self._close("the client closed the connection", error=False) if self._eof else None
            try:
                event = self._take(content, now_ms)
            except RemoteProtocolError as violation:
                delayed = self.state is State.INITIAL and not has_header(content, self._apis)
                return self._close(str(violation), delayed=delayed)
            if event is not None:
                return event
            answered += 1
        return None

    def data_to_send(self) -> bytes:
        """Give the bytes to be written now, in order: all there are, or about `LONG_WRITE_BYTES` of a long answer."""
        return self._out.take()

    def respond(self, response: Any) -> None:
        """Answer a `RequestReceived` with the response entity of its API and version.

        Raises:
            LocalProtocolError: the entity does not fit; the answer is still owed.
        """
        self._answer(self._owed(), response)
        self._settle()

    def respond_encoded(self, content: bytes) -> None:
        """Answer a `RequestReceived` with the content of a frame that another server has made for it."""
        self._owed()
        self._out.put(content)
        self._settle()

    def reject(self, reason: str) -> ConnectionClosed:
        """Leave a `RequestReceived` without an answer, as a broker does with a body that makes no sense.

        Args:
            reason: one line for the log, as in `break_off` and `give_up`.

        Returns:
            What the caller does next, as from `fail`, `break_off` and `give_up`.
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
            now_ms: when it begins.
        """
        self._answer_token(message, session_lifetime_ms or 0)
        self.session.begin(session_lifetime_ms, now_ms)
        self.state = State.READY
        self._frames.max_bytes = self._limits.after_login_bytes

    def fail(self, message: str) -> ConnectionClosed:
        """End the login without success, and tell the client `message`; a bare exchange has no place for it."""
        if not self.state.bare:
            header = self._owed()
            self._answer(header, failed_login(header, message))
        return self.break_off("the login failed")

    def break_off(self, reason: str) -> ConnectionClosed:
        """End the login without an answer, so that the client tries again: it cannot be decided now."""
        self._settle()
        self.state = State.CLOSING
        return ConnectionClosed(reason, delayed=True)

    def give_up(self, reason: str) -> ConnectionClosed:
        """Close because of what has been seen in the bytes that were fed, or were to be."""
        return self._close(reason, delayed=not self.state.logged_in)

    def _take(self, content: bytes, now_ms: int) -> Event | None:
        if self._mechanism_changed:
            self.login_fault = LoginFault.MECHANISM_CHANGED
            return self._close("the mechanism was changed at re-authentication", delayed=True)
        if self.state.bare:
            self.awaits_answer = True
            return TokenReceived(content)
        header, offset = parse_request_header(content, self._apis)
        self.client_id = header.client_id
        known = self._apis.steps.get((header.api_key, header.api_version))
        kind = Request.API_VERSIONS if known is None else known  # the one API that comes with unknown versions
        action, following = next_step(self.state, kind)
        if self.state is State.READY:
            if action is Action.CHOOSE_MECHANISM and not self.session.may_log_in_again(now_ms):
                action, following = Action.REFUSE, State.READY
            if action is not Action.CHOOSE_MECHANISM and self.session.ended(now_ms):
                return self._close("the session has ended")
        if action is Action.CLOSE:
            reason = f"API {header.api_key} is not allowed in state {self.state.name}"
            return self._close(reason, delayed=kind is not Request.API_VERSIONS)
        if known is None:
            return self._refuse_version(header, action)
        body = decode_body(kind, header, content, offset, self._apis)
        return self._act(action, following, header, body, now_ms)

    def _act(self, action: Action, following: State, header: RequestHeader, body: Any, now_ms: int) -> Event | None:
        match action:
            case Action.SERVE | Action.EVALUATE_TOKEN:
                self._pending = header
                self.awaits_answer = True
                return RequestReceived(header, body) if action is Action.SERVE else TokenReceived(body)
            case Action.ANSWER_VERSIONS:
                self._answer_versions(header, body, following)
                return None
            case Action.CHOOSE_MECHANISM:
                return self._choose_mechanism(header, body.mechanism, following, now_ms)
            case _:
                return self._refuse(action, header, body)

    def _answer_versions(self, header: RequestHeader, body: Any, following: State) -> None:
        if header.api_version >= FIRST_WITH_SOFTWARE:
            if not names_its_software(body):
                self._answer(header, self._apis.refusal(header, body, ErrorCode.invalid_request))
                return
            self.client_software = (body.client_software_name, body.client_software_version)
        self._out.put(encode_versions(header.correlation_id, self._versions.body(header.api_version)))
        self.state = following

    def _refuse_version(self, header: RequestHeader, action: Action) -> Event | None:
        """Answer an ApiVersions of a version that there is none of, in the layout of v0 (KIP-511)."""
        if action is Action.ANSWER_VERSIONS:
            body = self._apis.body(0, ErrorCode.unsupported_version)
            self._out.put(encode_versions(header.correlation_id, body))
            return None
        return self._refuse(action, RequestHeader(header.api_key, 0, header.correlation_id, header.client_id), None)

    def _choose_mechanism(self, header: RequestHeader, mechanism: str, following: State, now_ms: int) -> Event:
        offered = mechanism in self._mechanisms
        error = ErrorCode.none if offered else ErrorCode.unsupported_sasl_mechanism
        self._out.put(encode_handshake(header.api_version, header.correlation_id, error, self._mechanisms))
        self.asked_mechanism = mechanism
        if not offered:
            self.login_fault = LoginFault.NOT_OFFERED
            return self._close("the client asked for a SASL mechanism that is not offered", delayed=True)
        if self.state is State.READY:
            self.session.log_in_again(now_ms)
            self._mechanism_changed = mechanism != self._mechanism
        self._mechanism = mechanism
        self.state = following
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
        self.awaits_answer = False

    def _answer(self, header: RequestHeader, response: Any) -> None:
        self._out.put_pieces(encode_response_pieces(header, response, self._apis))

    def _answer_token(self, message: bytes | None, session_lifetime_ms: int) -> None:
        if not self.state.bare:
            header = self._owed()
            version, correlation_id = header.api_version, header.correlation_id
            self._out.put(encode_token_answer(version, correlation_id, message or b"", session_lifetime_ms))
        elif message is not None:
            self._out.put(message)
        self._settle()

    def _close(self, reason: str, *, delayed: bool = False, error: bool = True) -> ConnectionClosed:
        if error and self.state is not State.READY and self.login_fault is None:
            self.login_fault = LoginFault.OUT_OF_TURN
        self.state = State.CLOSING
        return ConnectionClosed(reason, delayed, error)
