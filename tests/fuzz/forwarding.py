"""Any bytes of a client or of a cluster, in any chunks: a gateway forwards them or closes, and chunks do not matter."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Final

from kafka_dt_protocol import RemoteProtocolError
from kafka_dt_protocol.rewriting.answer_stream import AnswerStream, Forward
from kafka_dt_protocol.rewriting.request_stream import RequestStart, RequestStream
from tests.fuzz.frames import VECTORS
from tests.fuzz.pieces import chunks

MAX_BYTES: Final = 65536
ANSWERS: Final = 4
"""How many answers one input may hold."""


def seeds() -> Iterable[bytes]:
    """Give requests and answers that Kafka's own classes wrote."""
    for recorded in sorted(VECTORS.glob("*.jsonl")):
        for line in recorded.read_text(encoding="utf-8").splitlines():
            vector = json.loads(line)
            frame = bytes.fromhex(vector["frame"])
            if vector["kind"] == "request":
                yield b"\x00\x00\x00\x00" + frame
            else:
                yield bytes((1, 0, vector["api_key"] & 0xFF, vector["version"] & 0xFF)) + frame


def check(data: bytes) -> None:
    """Forward bytes whole and in chunks.

    The four bytes in front say the direction, the size of the chunks, and the API and version of the answers.
    """
    how, sent = data[:4], data[4:]
    if len(how) < 4:
        return
    direction, size, api_key, api_version = how
    forward: Callable[[Iterable[bytes]], tuple[bytes, str]]
    if direction & 1:
        correlation_id = int.from_bytes(sent[4:8], "big", signed=True)
        starts = [RequestStart(api_key, api_version, correlation_id, answered=True)] * ANSWERS

        def forward(pieces: Iterable[bytes]) -> tuple[bytes, str]:
            return _answers(pieces, starts)
    else:
        forward = _requests
    assert forward([sent]) == forward(chunks(sent, size + 1)), "chunks make a difference to what is forwarded"


def _requests(pieces: Iterable[bytes]) -> tuple[bytes, str]:
    """Forward a client's requests; gives what went on and why it ended."""
    stream, forwarded, starts = RequestStream(MAX_BYTES), b"", []
    try:
        for piece in pieces:
            stream.receive_data(piece)
            while True:
                if stream.finished:
                    if (start := stream.next_start()) is None:
                        break
                    starts.append(start)
                if not (taken := stream.take()):
                    break
                forwarded += taken
    except RemoteProtocolError as error:
        return b"", f"{starts} {error}"
    return forwarded, str(starts)


def _answers(pieces: Iterable[bytes], starts: Iterable[RequestStart]) -> tuple[bytes, str]:
    """Forward a cluster's answers; gives what went on and why it ended."""
    stream, forwarded = AnswerStream(lambda node_id, _host, _port: (f"gateway-{node_id}", 9092)), b""
    try:
        for start in starts:
            stream.expect(start)
        for piece in pieces:
            stream.receive_data(piece)
            while (given := stream.next()) is not None:
                assert isinstance(given, Forward)
                forwarded += given.data
    except RemoteProtocolError as error:
        return b"", str(error)
    return forwarded, ""
