"""Replace the addresses in answers that are sent on while they arrive: they hold records, and addresses behind those.

    answer = AddressesAtEnd(api_key, api_version, length, advertise)
    answer.receive_data(chunk)
    send(answer.take())

All that comes before the addresses goes through as it is, chunk by chunk and not copied where a chunk is all of it;
only the lengths in it are looked at. The end is collected and goes on in as many bytes (`fit`), since the length of
the answer has been sent long before. If the new addresses are shorter, a tagged field of zeros that no client knows
takes up the room that is left; if they are longer, the last nodes are left out. Both are what KIP-482 and KIP-951
allow: a reader skips a tagged field that it does not know, and a client that finds no endpoint for a new leader asks
Metadata, as it did before there were any. A tagged field has two bytes or more. Where just one is left, a node has to
go as well.

Limits: beside the chunk that was just received, `MAX_TAIL_BYTES` are held.

Source: KIP-482, KIP-932, KIP-951; org.apache.kafka.clients.Metadata.updatePartitionLeadership.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from kafka_dt_protocol.errors import LocalProtocolError, MalformedMessage
from kafka_dt_protocol.rewriting.node_addresses import Advertise, Nodes, Place, find_nodes, new_addresses, place_of
from kafka_dt_protocol.rewriting.skipping import Walk
from kafka_dt_protocol.wire.encoding import encode_varint

MAX_TAIL_BYTES: Final = 1024 * 1024
"""The endpoints of some ten thousand brokers."""

_PADDING_TAGS: Final = (range(127, 0, -1), range(16383, 127, -1))
"""Numbers for the field of zeros, of one byte and of two; Kafka counts its own from 0."""

_MAX_SIZE_BYTES: Final = 5


class AddressesAtEnd:
    """One answer with addresses behind its records.

    Args:
        api_key: of the request that it answers; `has_records` is true of it.
        api_version: of that request.
        length: bytes of the content of the answer's frame.
        advertise: tells how this client reaches a node.

    Raises:
        UnsupportedVersion: the layout of this version is not known; no client has been offered it.
        LocalProtocolError: the addresses of this API are not at the end.
    """

    def __init__(self, api_key: int, api_version: int, length: int, advertise: Advertise) -> None:
        self._place = place_of(api_key, api_version)
        if not self._place.at_the_end:
            raise LocalProtocolError(f"the answers of API key {api_key} do not end with addresses")
        self._advertise = advertise
        self._missing = length
        self._walk = Walk(self._place.head)
        self._skip = 0
        """How many bytes the walk passes over before it looks at the next one."""
        self._undecided = b""
        """The last bytes received, as far as they belong to a length that is not all there; they have been given on."""
        self._in_tail = False
        self._tail = bytearray()
        self._ready: list[bytes] = []

    def receive_data(self, data: bytes) -> None:
        """Take the next bytes of the answer's content.

        Args:
            data: none of the next answer.

        Raises:
            MalformedMessage: the bytes are no such answer. Its first bytes may have been taken by then; the connection
                is to be closed.
            LocalProtocolError: they are more than were announced, or what was advertised does not fit the wire.
        """
        if len(data) > self._missing:
            raise LocalProtocolError(f"{len(data)} bytes of an answer that has {self._missing} more")
        self._missing -= len(data)
        if self._in_tail:
            self._collect(data)
        elif self._skip > len(data):
            self._skip -= len(data)
            self._ready.append(data)
        else:
            self._look_at(data)
        self._expect_more()

    def take(self) -> bytes:
        """Give what may be sent on now; empty if there is nothing."""
        ready = self._ready
        if not ready:
            return b""
        self._ready = []
        return ready[0] if len(ready) == 1 else b"".join(ready)

    def _look_at(self, data: bytes) -> None:
        given_on = len(self._undecided)
        buffer = self._undecided + data if given_on else data
        offset = self._walk.skip(buffer, self._skip)
        self._undecided = b""
        self._skip = max(0, offset - len(buffer))
        if not self._walk.finished or self._skip:
            self._undecided = buffer[offset:]
            self._ready.append(data)
            return
        self._in_tail = True
        self._ready.append(data[: offset - given_on])
        self._collect(data[offset - given_on :])

    def _collect(self, data: bytes) -> None:
        self._tail += data
        if len(self._tail) > MAX_TAIL_BYTES:
            raise MalformedMessage("more behind its records than there can be")

    def _expect_more(self) -> None:
        if self._skip > self._missing:
            raise MalformedMessage("a length beyond its end")
        if self._missing:
            return
        if not self._in_tail:
            raise MalformedMessage("it ends early")
        self._ready.append(fit(self._place, bytes(self._tail), self._advertise))
        self._tail.clear()


def fit(place: Place, tail: bytes, advertise: Advertise) -> bytes:
    """Replace the addresses at the end of an answer.

    Args:
        place: where its API and version have them, at the end.
        tail: all that comes behind what `place.head` skips.
        advertise: tells how this client reaches a node.

    Returns:
        As many bytes; `tail` itself when nothing has changed.

    Raises:
        MalformedMessage: the bytes are not what the place says.
        LocalProtocolError: what was advertised does not fit the wire.
    """
    found = find_nodes(place, tail, 0)
    addresses = new_addresses(place, found.nodes, advertise)
    if not any(addresses):
        return tail
    ending = _Ending(place, tail, found, addresses)
    # How many nodes there is room for; with one less there is room for the field of zeros, too.
    most = bisect_right(range(len(found.nodes) + 1), found.end, key=lambda kept: len(ending.with_nodes(kept))) - 1
    for kept in range(most, max(most - 2, -1), -1):
        if (fitted := ending.padded(kept)) is not None:
            return fitted + tail[found.end :]
    raise MalformedMessage("more tagged fields than there can be")


class _Ending:
    """The nodes and tagged fields of an answer, to be put together with fewer nodes and a field of zeros."""

    def __init__(self, place: Place, tail: bytes, found: Nodes, addresses: list[bytes | None]) -> None:
        self._tag = place.tag
        self._room = found.end
        self._nodes = [
            tail[node.start : node.end]
            if address is None
            else tail[node.start : node.address] + address + tail[node.address_end : node.end]
            for node, address in zip(found.nodes, addresses, strict=True)
        ]
        self._others = [(field.tag, tail[field.start : field.end]) for field in found.others]

    def with_nodes(self, kept: int, *padding: tuple[int, bytes]) -> bytes:
        """Keep the first nodes; tagged fields are written by their numbers."""
        array = encode_varint(kept + 1) + b"".join(self._nodes[:kept])
        fields = [*self._others, *padding]
        if self._tag is None:
            return array + _tagged_fields(fields)
        if kept:
            fields.append((self._tag, encode_varint(self._tag) + encode_varint(len(array)) + array))
        return _tagged_fields(fields)

    def padded(self, kept: int) -> bytes | None:
        """Keep the first nodes and take up the room of the others; None if that cannot be done."""
        bare = self.with_nodes(kept)
        if len(bare) == self._room:
            return bare
        used = {tag for tag, _ in self._others}
        for missing in (self._room - len(bare), self._room - len(bare) - 1):  # their count may grow by a byte
            padding = _padding(missing, used)
            if padding is not None and len(padded := self.with_nodes(kept, padding)) == self._room:
                return padded
        return None


def _tagged_fields(fields: Iterable[tuple[int, bytes]]) -> bytes:
    ordered = sorted(fields, key=lambda field: field[0])
    return encode_varint(len(ordered)) + b"".join(content for _, content in ordered)


def _padding(size: int, used: set[int]) -> tuple[int, bytes] | None:
    """Make a tagged field of zeros of so many bytes."""
    for tags in _PADDING_TAGS:
        tag = next((tag for tag in tags if tag not in used), None)
        if tag is None:
            continue
        number = encode_varint(tag)
        for size_bytes in range(1, _MAX_SIZE_BYTES + 1):
            zeros = size - len(number) - size_bytes
            if zeros >= 0 and len(length := encode_varint(zeros)) == size_bytes:
                return tag, number + length + bytes(zeros)
    return None
