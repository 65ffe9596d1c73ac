"""A raw Kafka connection that keeps a transcript: one line of text for everything that comes back.

    with Wire(address, Names()) as wire:
        wire.handshake("PLAIN")
        wire.authenticate(b"\\0alice\\0wrong")
        wire.ends()
    wire.transcript  # ["SaslHandshake v1: error=0 mechanisms=[...]", "SaslAuthenticate v2: error=58 ...", "closed"]

Two servers answer alike when their transcripts are equal: what differs from run to run (token ids, HMACs, instants,
nonces) is written as a name. Nothing else is left out: every field is shown, correlation ids must be those of the
requests in their order, and an answer must be the very bytes that its fields encode to.

Limits: blocking. An answer that does not come raises ConnectionClosed or TimeoutError.
Source: Kafka protocol guide.
"""

from __future__ import annotations

import re
import socket
import struct
import time
from collections import deque
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final

from kafka_dt_protocol.api.registry import APIS, ApiKey
from kafka_dt_protocol.wire.decoding import decode
from kafka_dt_protocol.wire.encoding import encode
from tests.support.protocol.raw import API_VERSIONS, ConnectionClosed, RawConnection

COMPARED_APIS: Final = (3, 17, 18, 36, 38, 39, 40, 41, 60)
"""The APIs of an ApiVersions answer that are shown: a broker has many more."""
QUIET_S: Final = 0.25
"""How long a connection is watched that is expected to stay open."""
CLOSING_S: Final = 30.0
"""How long a connection is watched that is expected to be closed."""

OVERFLOWN: Final = "overflown"
"""An instant long before the year 1."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ROUND_S: Final = 20
_SCRAM_MESSAGE: Final = re.compile(rb"[rve]=[!-+\--~]+(,[a-z]=[!-+\--~]+)*")
_RANGES_NOT_SHOWN: Final = (3, 60)


class Names:
    """What the ids, HMACs and instants of one conversation are called."""

    def __init__(self) -> None:
        self._texts: dict[str | bytes, str] = {}

    def add(self, value: str | bytes, name: str) -> None:
        """Call a value by a name from now on."""
        self._texts[value] = name

    def text(self, value: str | bytes) -> str:
        """A value as it is shown: its name, or else itself."""
        return self._texts.get(value) or _scram(value) or repr(value)


class Wire(RawConnection):
    """One connection with its transcript.

    Args:
        address: host:port.
        names: how to call what differs from run to run.
        transcript: receives the lines.
    """

    def __init__(self, address: str, names: Names, transcript: list[str]) -> None:
        super().__init__(address)
        self.names = names
        self.transcript = transcript
        self.recording = True
        self.sent_at = time.monotonic()
        """When something was sent last, by the monotonic clock in seconds."""
        self._due: deque[int] = deque()

    def send(self, data: bytes) -> None:
        """Send bytes as they are; raises ConnectionClosed."""
        self.sent_at = time.monotonic()
        try:
            super().send(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ConnectionClosed from error

    def receive_frame(self) -> bytes:
        """The next frame without its length; raises ConnectionClosed, TimeoutError."""
        try:
            return super().receive_frame()
        except ConnectionResetError as error:
            raise ConnectionClosed from error

    def encode(self, api_key: int, version: int, **values: object) -> bytes:
        """A request as the payload of a frame, of the APIs and versions that kafka-dt has."""
        entity_type: Any = APIS[ApiKey(api_key)].request[version]
        return self.header(api_key, version, flexible=entity_type.__flexible__) + encode(entity_type(**values))

    def header(self, api_key: int, version: int, *, flexible: bool, client_id: bytes | None = b"raw") -> bytes:
        """The bytes before a request's body, for any key and version; its answer is the next one."""
        self._correlation_id += 1
        return self.header_with(self._correlation_id, api_key, version, flexible=flexible, client_id=client_id)

    def header_with(
        self, correlation_id: int, api_key: int, version: int, *, flexible: bool, client_id: bytes | None = b"raw"
    ) -> bytes:
        """The same with any correlation id."""
        self._due.append(correlation_id)
        length = -1 if client_id is None else len(client_id)
        start = struct.pack(">hhih", api_key, version, correlation_id, length) + (client_id or b"")
        return start + b"\0" if flexible else start

    def answer(self, api_key: int, version: int) -> Any:
        """Read an answer and note it down; raises ConnectionClosed, TimeoutError."""
        response_type: Any = APIS[ApiKey(api_key)].response[version]
        frame = self.receive_frame()
        header, offset = decode(response_type.__header_schema__, frame)
        entity, _ = decode(response_type, frame, offset)
        assert header.correlation_id == self._due.popleft(), "this is not the next answer"
        if api_key != API_VERSIONS:  # a broker's features are not kafka-dt's
            # Python has no instants before the year 1: what an overflow made is read as the first there is.
            exact = frame == encode(header) + encode(entity) or OVERFLOWN in self.shown(entity)
            assert exact, f"not the bytes of these fields: {frame.hex()}"
        self.note(self.line(api_key, version, entity))
        return entity

    def line(self, api_key: int, version: int, entity: Any) -> str:
        """What stands in a transcript for an answer."""
        return f"{_api_name(api_key)} v{version}: {self.shown(entity)}"

    def shown(self, entity: Any) -> str:
        """An entity as it stands in a transcript."""
        return _shown(entity, self.names)

    def bare(self) -> bytes:
        """Read a frame without header, as after SaslHandshake v0, and note it down."""
        frame = self.receive_frame()
        self.note(f"bare {self.names.text(frame)}")
        return frame

    def ends(self, within_s: float = CLOSING_S) -> None:
        """Note whether the connection is closed, stays open, or gets something unexpected."""
        self._socket.settimeout(within_s)
        try:
            received = self._socket.recv(64)
        except ConnectionResetError:
            received = b""
        except TimeoutError:
            self.note("open")
            return
        self.note(f"unexpected {received.hex()}" if received else "closed")

    def stays(self) -> None:
        """The same for a connection that is expected to stay open."""
        self.ends(QUIET_S)

    def works(self) -> None:
        """Note whether a logged in connection serves another request."""
        try:
            self.request(API_VERSIONS, 0)
            self.receive_frame()
        except ConnectionClosed:
            self.note("closed")
        else:
            self._due.popleft()
            self.note("works")

    def finish_writing(self) -> None:
        """Send no more, as a client that half closes."""
        self._socket.shutdown(socket.SHUT_WR)

    def note(self, line: str) -> None:
        """Add a line to the transcript, unless recording is off."""
        if self.recording:
            self.transcript.append(line)


def instant(timestamp_ms: int) -> str:
    """An instant: the special ones as they are, others by their distance from now, in seconds, roughly."""
    if timestamp_ms in {-1, 0}:
        return str(timestamp_ms)
    distance_ms = timestamp_ms - time.time_ns() // 1_000_000
    return f"now{_rounded_s(distance_ms):+d}"


def _rounded_s(milliseconds: int) -> int:
    return round(milliseconds / 1000 / _ROUND_S) * _ROUND_S


def _duration(milliseconds: int) -> str:
    """In seconds, roughly; `soon` for a few of them."""
    seconds = _rounded_s(milliseconds)
    return str(seconds) if seconds or not milliseconds else "soon"


def _api_name(api_key: int) -> str:
    return "".join(part.capitalize() for part in ApiKey(api_key).name.split("_"))


def _shown(value: Any, names: Names, field: str = "") -> str:
    if field == "api_keys":
        return _api_ranges(value)
    if field == "mechanisms":  # a broker has them in the order of a Java HashSet
        value = tuple(sorted(value))
    if is_dataclass(value):
        parts = ((each.name, getattr(value, each.name)) for each in fields(value))
        shown = (f"{name}={_shown(part, names, name)}" for name, part in parts if _matters(value, name, part))
        return " ".join(shown)
    if isinstance(value, tuple):
        return "[" + ", ".join(_shown(each, names) for each in value) + "]"
    if field.endswith("_timestamp") and value == datetime.min.replace(tzinfo=UTC):
        return OVERFLOWN
    if field.endswith("_timestamp"):
        return instant(value if isinstance(value, int) else (value - _EPOCH) // timedelta(milliseconds=1))
    return _plain(value, names)


def _plain(value: Any, names: Names) -> str:
    match value:
        case Enum():
            return str(value.value)
        case timedelta():
            return _duration(value // timedelta(milliseconds=1))
        case str() | bytes():
            return names.text(value)
    return str(value)


def _matters(entity: Any, name: str, value: object) -> bool:
    """Tell whether a value is compared: neither a throttle time of 0 nor the features that only a broker has."""
    if name == "throttle_time":
        return value != timedelta(0)
    return not (hasattr(entity, "finalized_features") and name not in {"error_code", "api_keys"})


def _api_ranges(api_keys: Any) -> str:
    compared = [each for each in api_keys if each.api_key in COMPARED_APIS]
    return " ".join(
        str(each.api_key)
        if each.api_key in _RANGES_NOT_SHOWN
        else f"{each.api_key}:{each.min_version}-{each.max_version}"
        for each in sorted(compared, key=lambda each: int(each.api_key))
    )


def _scram(value: str | bytes) -> str | None:
    """The attributes of a server's SCRAM message; what they hold is checked by the client that goes on.

    An HMAC may begin as one does: one of 22,000.
    """
    if not isinstance(value, bytes) or not _SCRAM_MESSAGE.fullmatch(value):
        return None
    parts = value.decode().split(",")
    return "<" + ",".join(part if part[0] == "e" else part[:2] for part in parts) + ">"
