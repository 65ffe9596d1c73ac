"""Replace the addresses in answers that have arrived whole; all other bytes stay as they are.

Nothing is decoded and encoded again, so that unknown tagged fields, their order and every other liberty of the wire
format come through. The bytes behind the nodes are not looked at.

Most answers hold no addresses. `Shapes` recognises them by the few bytes that say so:

    shapes = Shapes()
    shapes.recognises(api_key, api_version, content)    # False
    rewrite(api_key, api_version, content, ...)         # gives `content` itself
    shapes.learn(api_key, api_version, content)

Hardly any answer to a Produce tells of a new leader, and those that a client gets look alike. To walk over such an
answer is to look at its lengths and counts alone: another one of the same length that has the same bytes at these
places has its end at the same place, and no addresses there. That is one comparison, however many partitions it tells
of. `Shapes` keeps short answers whose addresses would be in a tagged field, and the first so many kinds of them.

Source: KIP-482 (the size of a tagged field changes with its content), KIP-951.
"""

from __future__ import annotations

from typing import Final

from kafka_dt_protocol.rewriting.node_addresses import Advertise, Nodes, find_nodes, new_addresses, place_of
from kafka_dt_protocol.rewriting.skipping import OverBytes, Walk, skip
from kafka_dt_protocol.wire.encoding import encode_varint

MAX_CONTENT_BYTES: Final = 512
"""Of an answer that is remembered; a Produce of 14 partitions."""
MAX_SHAPES: Final = 16

_MAX_LENGTH_BYTES: Final = 5
"""The longest form of the length in front of a field."""


def rewrite(api_key: int, api_version: int, content: bytes, advertise: Advertise) -> bytes:
    """Replace the addresses in an answer.

    Args:
        api_key: of the request that it answers; the API carries addresses in this version.
        api_version: of that request.
        content: of the answer's frame, header included.
        advertise: tells how this client reaches a node.

    Returns:
        The new content; `content` itself when nothing has changed.

    Raises:
        MalformedMessage: the bytes are no such answer.
        UnsupportedVersion: the layout of this version is not known; no client has been offered it.
        LocalProtocolError: what was advertised does not fit the wire.
    """
    place = place_of(api_key, api_version)
    found = find_nodes(place, content, skip(place.head, content, 0))
    addresses = new_addresses(place, found.nodes, advertise)
    if not any(addresses):
        return content
    return _spliced(content, found, addresses)


def _spliced(content: bytes, found: Nodes, addresses: list[bytes | None]) -> bytes:
    pieces: list[bytes] = []
    field = found.field
    done = field.content if field is not None else 0
    for node, address in zip(found.nodes, addresses, strict=True):
        if address is not None:
            pieces += content[done : node.address], address
            done = node.address_end
    if field is None:
        return b"".join((*pieces, content[done:]))
    inside = b"".join((*pieces, content[done : field.end]))
    return b"".join((content[: field.size], encode_varint(len(inside)), inside, content[field.end :]))


class Shapes:
    """What the answers of one connection look like."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int], tuple[int, int]] = {}

    def recognises(self, api_key: int, api_version: int, content: bytes) -> bool:
        """Tell whether an answer is known to hold no addresses, by its form.

        Args:
            api_key: of the request that it answers.
            api_version: of that request.
            content: of the answer's frame, header included; all of it has arrived.
        """
        known = self._known.get((api_key, api_version, len(content)))
        return known is not None and int.from_bytes(content) & known[0] == known[1]

    def learn(self, api_key: int, api_version: int, content: bytes) -> None:
        """Remember the form of an answer, if it has no tagged fields.

        Raises:
            MalformedMessage: the bytes are no such answer.
        """
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
