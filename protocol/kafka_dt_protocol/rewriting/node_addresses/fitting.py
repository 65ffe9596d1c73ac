"""The end of an answer whose beginning has been sent: its nodes' addresses are replaced in the same number of bytes.

The length of an answer goes before it and cannot be taken back. If the new addresses are shorter, a tagged field of
zeros that no client knows takes up the room that is left; if they are longer, the last nodes are left out. Both are
what KIP-482 and KIP-951 allow: a reader skips a tagged field that it does not know, and a client that finds no endpoint
for a new leader asks Metadata, as it did before there were any.

A tagged field has two bytes or more. Where just one is left, a node has to go as well.

Source: KIP-482, KIP-951; updatePartitionLeadership in Kafka's Metadata.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from kafka_dt_protocol.errors import MalformedMessage
from kafka_dt_protocol.rewriting.node_addresses.nodes import Advertise, Nodes, find_nodes, new_addresses
from kafka_dt_protocol.rewriting.node_addresses.places import Place
from kafka_dt_protocol.wire.encoding import encode_varint

_PADDING_TAGS: Final = (range(127, 0, -1), range(16383, 127, -1))
"""Numbers for the field of zeros, of one byte and of two; Kafka counts its own from 0."""

_MAX_SIZE_BYTES: Final = 5


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
