"""Replace the addresses in answers; all other bytes stay as they are.

- `rewrite` takes an answer that has arrived whole; `rewriting` does so in parts. Nothing is decoded and encoded again,
  so that unknown tagged fields, their order and every other liberty of the wire format come through.
- `Shapes` recognises answers without addresses by the few bytes that say so. Hardly any answer to a Produce tells of a
  new leader. An answer of the same length that has the same lengths and counts at the same places has no addresses
  either. That is one comparison, however many partitions the answer tells of.
- `AddressesAtEnd` takes a long answer while it arrives: records or partitions, with addresses behind them. All that
  comes before the addresses goes on at once. The end is collected and goes on in as many bytes (`fit`), since the
  length of the answer has been sent long before. If the new addresses are shorter, a tagged field of zeros takes up the
  room that is left; if they are longer, the last nodes are left out. A reader skips a tagged field that it does not
  know (KIP-482), and a client that finds no endpoint for a new leader asks Metadata (KIP-951).

Limits: beside the chunk that was just received, `AddressesAtEnd` holds `MAX_TAIL_BYTES`.

Source: KIP-482, KIP-932, KIP-951; org.apache.kafka.clients.Metadata.updatePartitionLeadership.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterable
from typing import Final

from kafka_dt_protocol.errors import LocalProtocolError, MalformedMessage
from kafka_dt_protocol.rewriting.node_addresses import (
    Advertise,
    Nodes,
    NodesPlace,
    each_node,
    find_nodes,
    new_address,
    place_of,
)
from kafka_dt_protocol.rewriting.skipping import OverBytes, Walk, skip
from kafka_dt_protocol.wire.encoding import encode_varint

NODES_IN_A_ROW: Final = 500
"""How many nodes are looked at in a row, which takes some milliseconds."""
MAX_TAIL_BYTES: Final = 1024 * 1024
"""The endpoints of some ten thousand brokers."""
MAX_CONTENT_BYTES: Final = 512
"""Of an answer that `Shapes` remembers; a Produce of 14 partitions."""
MAX_SHAPES: Final = 16
"""How many kinds of answers of a connection are remembered: the first ones."""

_PADDING_TAGS: Final = (range(127, 0, -1), range(16383, 127, -1))
"""Numbers for the field of zeros, of one byte and of two; Kafka counts its own from 0."""
_MAX_LENGTH_BYTES: Final = 5
"""The longest form of the length in front of a field."""


def rewrite(api_key: int, api_version: int, content: bytes, advertise: Advertise) -> bytes:
    """Replace the addresses in the content of an answer's frame; gives `content` itself when nothing has changed.

    Args:
        api_key: of the request that it answers; the API carries addresses in this version.
        api_version: of that request.
        content: of the answer's frame, header included.
        advertise: tells how this client reaches a node.

    Raises:
        MalformedMessage: the bytes are no such answer.
        UnsupportedVersion: the layout of this version is not known; no client has been offered it.
        LocalProtocolError: what was advertised does not fit the wire.
    """
    work = rewriting(api_key, api_version, content, advertise)
    while True:
        try:
            next(work)
        except StopIteration as done:
            return bytes(done.value)


def rewriting(api_key: int, api_version: int, content: bytes, advertise: Advertise) -> Generator[None, None, bytes]:
    """Do as `rewrite`, and stop after every `NODES_IN_A_ROW` nodes: of coordinators a client may ask for a million."""
    place = place_of(api_key, api_version)
    offset = skip(place.head, content, 0)
    if place.tag is not None:
        return _with_field(content, place, find_nodes(place, content, offset), advertise)
    pieces = bytearray()
    done = 0
    for number, node in enumerate(each_node(place, content, offset), start=1):
        address = new_address(place, node, advertise)
        if address is not None:
            pieces += content[done : node.address]
            pieces += address
            done = node.address_end
        if number % NODES_IN_A_ROW == 0:
            yield
    if not done:
        return content
    pieces += content[done:]
    return bytes(pieces)


def _with_field(content: bytes, place: NodesPlace, found: Nodes, advertise: Advertise) -> bytes:
    """Replace the addresses in the tagged field, if there is one."""
    field = found.field
    if field is None:
        return content
    pieces: list[bytes] = []
    done = field.content
    for node in found.nodes:
        address = new_address(place, node, advertise)
        if address is not None:
            pieces += content[done : node.address], address
            done = node.address_end
    if not pieces:
        return content
    inside = b"".join((*pieces, content[done : field.end]))
    return b"".join((content[: field.size], encode_varint(len(inside)), inside, content[field.end :]))


class Shapes:
    """What the answers of one connection look like: short ones whose addresses would be in a tagged field."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int], tuple[int, int]] = {}

    def recognises(self, api_key: int, api_version: int, content: bytes) -> bool:
        """Tell whether an answer is known to hold no addresses, by its form; arguments are those of `rewrite`."""
        known = self._known.get((api_key, api_version, len(content)))
        return known is not None and int.from_bytes(content) & known[0] == known[1]

    def learn(self, api_key: int, api_version: int, content: bytes) -> None:
        """Remember the form of an answer, if it has no tagged fields; arguments and errors are those of `rewrite`."""
        key = (api_key, api_version, len(content))
        place = place_of(api_key, api_version)
        room = len(self._known) < MAX_SHAPES and key not in self._known
        if place.tag is None or len(content) > MAX_CONTENT_BYTES or not room:
            return
        looked_at = bytearray(len(content))
        walk, offset = Walk(place.head), 0
        while not walk.finished:
            step = place.head[walk.place]
            behind = step(walk, content, offset)
            if not isinstance(step, OverBytes):
                _mark(looked_at, offset, min(behind, offset + _MAX_LENGTH_BYTES))
            offset = behind
        found = find_nodes(place, content, offset)
        if found.field is None and not found.others:
            _mark(looked_at, offset, found.end)
            mask = int.from_bytes(looked_at)
            self._known[key] = mask, int.from_bytes(content) & mask


def _mark(looked_at: bytearray, start: int, end: int) -> None:
    looked_at[start:end] = b"\xff" * (end - start)


class AddressesAtEnd:
    """One answer with addresses behind its records.

    Args:
        api_key: of the request that it answers; `ends_with_endpoints` is true of it.
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
        """Take the next bytes of the answer's content, and none of the next answer.

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


def fit(place: NodesPlace, tail: bytes, advertise: Advertise) -> bytes:
    """Replace the addresses in `tail`, all that comes behind what `place.head` skips, and give as many bytes.

    Raises:
        MalformedMessage: the bytes are not what the place says.
        LocalProtocolError: what was advertised does not fit the wire.
    """
    found = find_nodes(place, tail, 0)
    addresses = [new_address(place, node, advertise) for node in found.nodes]
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

    def __init__(self, place: NodesPlace, tail: bytes, found: Nodes, addresses: list[bytes | None]) -> None:
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
        for size_bytes in range(1, _MAX_LENGTH_BYTES + 1):
            zeros = size - len(number) - size_bytes
            if zeros >= 0 and len(length := encode_varint(zeros)) == size_bytes:
                return tag, number + length + bytes(zeros)
    return None
