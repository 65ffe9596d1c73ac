"""Fuzzed bytes as several messages, so that one input can hold a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def split(data: bytes) -> Iterator[bytes]:
    """Read messages: each has its length in two bytes in front; the last one may be shorter than it says."""
    while data:
        length = int.from_bytes(data[:2], "big")
        yield data[2 : 2 + length]
        data = data[2 + length :]


def join(messages: Iterable[bytes]) -> bytes:
    """Write messages so that `split` reads them."""
    return b"".join(len(message).to_bytes(2, "big") + message for message in messages)


def chunks(data: bytes, size: int) -> Iterator[bytes]:
    """Cut bytes into chunks of `size`, as a network might."""
    for begin in range(0, len(data), size):
        yield data[begin : begin + size]
