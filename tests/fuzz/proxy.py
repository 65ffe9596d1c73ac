"""Any first bytes of a connection: a header is found, awaited or refused, and later bytes make no difference to it."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_dt_protocol import RemoteProtocolError
from kafka_dt_protocol.wire.proxy_header import (
    LONGEST_V2,
    V2_START,
    ProxyHeader,
    may_be_proxy_header,
    parse_proxy_header,
    proxy_header,
)


def seeds() -> Iterable[bytes]:
    """Give headers of both versions."""
    yield b"PROXY TCP4 192.0.2.7 198.51.100.1 51234 9092\r\n"
    yield b"PROXY TCP6 2001:db8::7 2001:db8::1 51234 9092\r\nrest"
    yield b"PROXY UNKNOWN\r\n"
    yield proxy_header(None, None)
    yield proxy_header(("192.0.2.7", 51234), ("198.51.100.1", 9092)) + b"rest"
    yield proxy_header(("2001:db8::7", 51234), ("2001:db8::1", 9092))
    yield V2_START + b"\x21\x31\x00\xd8" + bytes(216)


def check(data: bytes) -> None:
    """Read bytes that come one by one, and all at once."""
    if not may_be_proxy_header(data):
        return
    decided = next((found for size in range(len(data) + 1) if (found := _read(data[:size])) is not None), None)
    assert decided == _read(data), "chunks make a difference to what a header says"
    assert decided is not None or len(data) < LONGEST_V2, "a header is awaited without end"


def _read(received: bytes) -> ProxyHeader | str | None:
    try:
        return parse_proxy_header(received)
    except RemoteProtocolError as error:
        return str(error)
