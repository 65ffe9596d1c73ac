"""An upstream's answers on their way to the client: passed on as they come, with the addresses in them rewritten.

A gateway tells by `expect` which requests it has forwarded, in their order, and by `expect_own` which it has sent for
itself; it feeds `receive_data` and calls `next` until it gives None. A `Forward` is to be written to the client. An
answer's treatment follows from its API and version:

- without addresses it is passed on in the pieces that it comes in;
- with addresses it is collected and rewritten, a long one in parts (`at_work`);
- with addresses at its end (Fetch, Produce) it is collected if it is short, else passed on, and its end rewritten in
  place.

Kafka answers the requests of a connection in order. If an upstream breaks the order, or sends an answer without a
request, one request's answer could be taken for another's: that raises, and the caller has to close the connection.

Limits: what is collected may be MAX_COLLECTED_BYTES long. Otherwise the memory is what `receive_data` brought.

Source: Kafka protocol guide, "Common Request and Response Structure"; KIP-951 (addresses behind records).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field
from enum import IntEnum, auto
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

from kafka_dt_protocol.errors import (
    InvalidFrameLength,
    LocalProtocolError,
    MalformedMessage,
    UnexpectedAnswer,
    UnsupportedVersion,
)
from kafka_dt_protocol.rewriting.node_addresses import Advertise, carries_addresses, ends_with_endpoints, known_versions
from kafka_dt_protocol.rewriting.replacing import AddressesAtEnd, Shapes, rewrite, rewriting
from kafka_dt_protocol.rewriting.request_stream import RequestStart
from kafka_dt_protocol.wire.chunks import Chunks
from kafka_dt_protocol.wire.frames import frame

COLLECT_BYTES: Final = 64 * 1024
"""An answer is collected up to this length and rewritten at once, addresses at its end whatever their length."""
MAX_COLLECTED_BYTES: Final = 100 * 1024 * 1024
"""The longest answer that is collected, records and logins excepted; Metadata of a million partitions is half of it."""
MAX_OWN_BYTES: Final = 512 * 1024
"""The longest answer to a request of our own, a SASL exchange (`sasl.server.max.receive.size`)."""

_MAX_LENGTH: Final = 2**31 - 1
_LENGTH: Final = Struct(">i")
_HEAD: Final = Struct(">ii")
"""Length and correlation id."""
_MIN_CONTENT_BYTES: Final = _HEAD.size - _LENGTH.size
_MOST_TREATMENTS: Final = 1024
"""Kafka has some 600 pairs of API and version; clients may send any."""


class Forward(NamedTuple):
    """Bytes for the client; a tuple, because it is made for every answer."""

    data: bytes

    def __repr__(self) -> str:
        return "Forward()"


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """The answer to a request of our own."""

    content: bytes = field(repr=False)
    """Of its frame: the header, which holds the correlation id, and the body."""


class AnswerStream:
    """Takes an upstream's bytes in any pieces and gives what the client is to get.

    Args:
        advertise: gives the address by which this client reaches a node of the upstream.
    """

    __slots__ = ("_advertise", "_at_end", "_chunks", "_due", "_left", "_shapes", "_unwritten", "_whole", "_work")

    def __init__(self, advertise: Advertise) -> None:
        self._advertise = advertise
        self._chunks = Chunks()
        self._due: deque[_Due] = deque()
        self._shapes = Shapes()
        self._left = 0  # of an answer that is passed on, the bytes that have not been
        self._at_end: AddressesAtEnd | None = None
        self._unwritten = 0  # of an answer whose end is rewritten, the bytes that the client is still to get
        self._whole = 0  # of an answer that is collected, the bytes of its frame
        self._work: _LongWork | None = None  # the rewriting of it, if it is long

    @property
    def outstanding(self) -> int:
        """How many answers are still to come, one that has come in part included."""
        return len(self._due)

    @property
    def buffered(self) -> int:
        """How many bytes have arrived that `next` has not given, nor put aside to rewrite the end of an answer."""
        return self._chunks.size if self._work is None else self._chunks.size + len(self._work.content)

    @property
    def at_work(self) -> bool:
        """Whether `next` has given None though it needs no more bytes; call it again when others had their turn."""
        return self._work is not None

    def expect(self, start: RequestStart) -> None:
        """Note that a request has been forwarded; one that is not answered is nothing to wait for.

        Raises:
            UnsupportedVersion: the answer carries addresses, in a layout that is not known. The request must not be
                forwarded; it was never offered (`offered_versions`), and a broker closes the connection for such.
        """
        treatment = _treatment(start.api_key, start.api_version)
        if start.answered:
            self._due.append(_Due(start.correlation_id, treatment, start.api_key, start.api_version))

    def expect_own(self, correlation_id: int, *, long: bool = False) -> None:
        """Note that a request of our own has been sent, whose answer is not for the client.

        Args:
            correlation_id: of the request.
            long: whether the answer may be as long as one with addresses.
        """
        self._due.append(_Due(correlation_id, _Treatment.OWN_LONG if long else _Treatment.OWN, -1, -1))

    def give_up(self) -> None:
        """Note that no answer comes any more: the upstream has gone."""
        self._due.clear()

    def receive_data(self, data: bytes) -> None:
        """Take bytes from the upstream; call `next` next."""
        self._chunks.append(data)

    def next(self) -> Forward | OwnAnswer | None:
        """Give the next bytes for the client, or the next answer to us, or None until more has arrived, or `at_work`.

        Raises:
            UnexpectedAnswer: it is not the answer that is due.
            InvalidFrameLength: its length cannot be, or is more than may be collected.
            MalformedMessage: it does not hold what its API and version say.
            After any of them the stream is of no more use.
        """
        if self._left:
            return self._passed_on() if self._at_end is None else self._passed_on_but_its_end(self._at_end)
        return self._collected() if self._whole else self._begin()

    def _begin(self) -> Forward | OwnAnswer | None:
        """Read the head of the next answer, which decides what happens to it, and give the bytes that have arrived."""
        chunks = self._chunks
        if not chunks.size:
            return None
        if not self._due:
            raise UnexpectedAnswer(None)
        due = self._due[0]
        head = chunks.peek(_HEAD.size)
        if len(head) < _HEAD.size:
            if len(head) >= _LENGTH.size:
                _judge(_LENGTH.unpack_from(head)[0], due)
            return None
        length, correlation_id = _HEAD.unpack(head)
        if not _MIN_CONTENT_BYTES <= length <= COLLECT_BYTES:  # within all bounds
            _judge(length, due)
        if correlation_id != due.correlation_id:
            raise UnexpectedAnswer(due.correlation_id)
        if due.treatment is _Treatment.PASS_ON:
            self._left = _LENGTH.size + length
            return self._passed_on()
        if due.treatment is _Treatment.REWRITE_END and length > COLLECT_BYTES:
            self._left = self._unwritten = length
            self._at_end = AddressesAtEnd(due.api_key, due.api_version, length, self._advertise)
            return Forward(chunks.take_exactly(_LENGTH.size))
        self._whole = _LENGTH.size + length
        return self._collected()

    def _passed_on(self) -> Forward | None:
        data = self._chunks.take(self._left)
        if not data:
            return None
        self._left -= len(data)
        if not self._left:
            self._due.popleft()
        return Forward(data)

    def _passed_on_but_its_end(self, at_end: AddressesAtEnd) -> Forward | None:
        chunks = self._chunks
        while self._left:
            piece = chunks.take(self._left)
            if not piece:
                return None
            self._left -= len(piece)
            at_end.receive_data(piece)
            data = at_end.take()
            if not self._left:
                data = self._end(at_end, data)
            if data:
                self._unwritten -= len(data)
                return Forward(data)
        return None

    def _end(self, at_end: AddressesAtEnd, data: bytes) -> bytes:
        """Finish an answer that was passed on: the client reads the next behind as many bytes as were announced."""
        data += b"".join(iter(at_end.take, b""))
        if len(data) != self._unwritten:
            raise LocalProtocolError(f"{self._unwritten} bytes of an answer became {len(data)}")
        self._at_end = None
        self._due.popleft()
        return data

    def _collected(self) -> Forward | OwnAnswer | None:
        if self._work is not None:
            return self._worked(self._work)
        whole = self._whole
        if self._chunks.size < whole:
            return None
        due = self._due[0]
        answer = self._chunks.take_exactly(whole)
        content = answer[_LENGTH.size :]
        if due.treatment in (_Treatment.OWN, _Treatment.OWN_LONG):
            self._given()
            return OwnAnswer(content)
        if len(content) > COLLECT_BYTES:
            self._work = _LongWork(content, rewriting(due.api_key, due.api_version, content, self._advertise))
            return self._worked(self._work)
        self._given()
        return Forward(self._rewritten(due, answer, content))

    def _rewritten(self, due: _Due, answer: bytes, content: bytes) -> bytes:
        """Rewrite a short answer at once; gives its frame."""
        if self._shapes.recognises(due.api_key, due.api_version, content):
            return answer
        rewritten = rewrite(due.api_key, due.api_version, content, self._advertise)
        if rewritten is not content:
            return frame(rewritten)
        self._shapes.learn(due.api_key, due.api_version, content)
        return answer

    def _worked(self, work: _LongWork) -> Forward | None:
        """Go on rewriting a long answer."""
        try:
            work.rewriting.send(None)
        except StopIteration as done:
            self._work = None
            self._given()
            return Forward(frame(done.value))
        return None

    def _given(self) -> None:
        """Take note that an answer that was collected is dealt with."""
        self._whole = 0
        self._due.popleft()


class _LongWork(NamedTuple):
    """A long answer that is being rewritten."""

    content: bytes
    rewriting: Generator[None, None, bytes]


class _Treatment(IntEnum):
    """What happens to an answer."""

    PASS_ON = auto()
    REWRITE = auto()
    REWRITE_END = auto()
    """If it is long."""
    OWN = auto()
    """It is not for the client."""
    OWN_LONG = auto()
    """Nor is this one, which may be long."""


class _Due(NamedTuple):
    """An answer that is to come."""

    correlation_id: int
    treatment: _Treatment
    api_key: int
    api_version: int

    @property
    def max_bytes(self) -> int:
        """The longest content that its treatment allows."""
        if self.treatment in (_Treatment.REWRITE, _Treatment.OWN_LONG):
            return MAX_COLLECTED_BYTES
        return MAX_OWN_BYTES if self.treatment is _Treatment.OWN else _MAX_LENGTH


@lru_cache(_MOST_TREATMENTS)
def _treatment(api_key: int, api_version: int) -> _Treatment:
    known = known_versions(api_key)
    if known is not None and api_version not in known:
        raise UnsupportedVersion(api_key, api_version)
    if not carries_addresses(api_key, api_version):
        return _Treatment.PASS_ON
    return _Treatment.REWRITE_END if ends_with_endpoints(api_key, api_version) else _Treatment.REWRITE


def _judge(length: int, due: _Due) -> None:
    max_bytes = due.max_bytes
    if not 0 <= length <= max_bytes:
        raise InvalidFrameLength(length, max_bytes)
    if length < _MIN_CONTENT_BYTES:
        raise MalformedMessage("no header")
