"""Any bytes of a client, in any chunks: the server answers them or closes, and the chunks make no difference."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kio.schema.errors import ErrorCode

from kafka_dt_protocol import (
    APIS,
    ApiKey,
    ConnectionClosed,
    FrameSplitter,
    Limits,
    MechanismChosen,
    RequestHeader,
    RequestReceived,
    ServerConnection,
    TokenReceived,
    build,
    encode_request,
    frame,
    refusal,
)
from tests.fuzz.pieces import chunks

MECHANISMS: Final = ("SCRAM-SHA-256", "PLAIN")
LIMITS: Final = Limits(before_login_bytes=4096, after_login_bytes=65536)
NOW_MS: Final = 1_700_000_000_000
_LISTENER_WITH_LOGIN, _LOGINS_FAIL, _ONE_CHALLENGE, _CHALLENGES = 1, 2, 4, 12
"""What the bits of the mode say."""
VECTORS: Final = Path(__file__).parents[1] / "vectors" / "messages"


def seeds() -> Iterable[bytes]:
    """Give requests that Kafka's own clients wrote, one by one and behind a login."""
    for recorded in sorted(VECTORS.glob("*.jsonl")):
        for line in recorded.read_text(encoding="utf-8").splitlines():
            vector = json.loads(line)
            if vector["kind"] == "request":
                yield b"\x00\x00" + bytes.fromhex(vector["frame"])
    for mode in (_LISTENER_WITH_LOGIN, _LISTENER_WITH_LOGIN | _LOGINS_FAIL, _LISTENER_WITH_LOGIN | _ONE_CHALLENGE):
        yield bytes((mode, 5)) + _login()


def check(data: bytes) -> None:
    """Feed bytes to two connections: one gets them whole, the other in chunks of the size that the second byte says."""
    mode, size, sent = data[:1], data[1:2], data[2:]
    if not size:
        return
    whole, cut = _Client(mode[0]), _Client(mode[0])
    whole.feed(sent)
    for chunk in chunks(sent, size[0] + 1):
        cut.feed(chunk)
    assert whole.seen == cut.seen, "chunks make a difference to what the server does"
    assert whole.sent == cut.sent, "chunks make a difference to what the server answers"
    _assert_frames(whole.sent, bare=whole.was_bare)


def _login() -> bytes:
    """Give a handshake and one SASL message, which `_Client` takes for whatever its mode says."""
    handshake = build(APIS[ApiKey.SASL_HANDSHAKE].request[1], mechanism="PLAIN")
    message = build(APIS[ApiKey.SASL_AUTHENTICATE].request[2], auth_bytes=b"token")
    return frame(encode_request(RequestHeader(ApiKey.SASL_HANDSHAKE, 1, 1, "fuzz"), handshake)) + frame(
        encode_request(RequestHeader(ApiKey.SASL_AUTHENTICATE, 2, 2, "fuzz"), message)
    )


class _Client:
    """A connection whose requests are all refused, and whose logins end as the mode says."""

    def __init__(self, mode: int) -> None:
        self._connection = ServerConnection(MECHANISMS if mode & _LISTENER_WITH_LOGIN else (), LIMITS)
        self._fails = bool(mode & _LOGINS_FAIL)
        self._challenges = mode & _CHALLENGES
        self.seen: list[str] = []
        self.sent = b""
        self.was_bare = False

    def feed(self, data: bytes) -> None:
        connection = self._connection
        connection.receive_data(data)
        while True:
            event = connection.next_event(NOW_MS)
            self.sent += connection.data_to_send()
            self.was_bare |= connection.state.bare
            match event:
                case RequestReceived():
                    connection.respond(refusal(event.header, event.body, ErrorCode.unknown_server_error))
                case TokenReceived():
                    self._log_in()
                case MechanismChosen():
                    pass
                case ConnectionClosed():
                    self.seen.append(repr(event))
                    self.sent += connection.data_to_send()
                    return
                case None:
                    if not connection.has_more:
                        return
                    continue
            self.seen.append(repr(event))

    def _log_in(self) -> None:
        if self._challenges:
            self._challenges -= _ONE_CHALLENGE
            self._connection.challenge(b"challenge")
        elif self._fails:
            self._connection.fail("refused")
        else:
            self._connection.succeed(b"", 10_000, NOW_MS)


def _assert_frames(sent: bytes, *, bare: bool) -> None:
    """See that the answers are frames, each long enough for a correlation id unless an exchange was without headers."""
    answers = FrameSplitter(2**31 - 1)
    answers.receive_data(sent)
    while (content := answers.next_frame()) is not None:
        assert bare or len(content) >= 4, "an answer without a correlation id"
    assert not answers.buffered, "half an answer"
