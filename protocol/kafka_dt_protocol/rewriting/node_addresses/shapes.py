"""Answers that hold no addresses, recognised by the few bytes that say so.

    shapes = Shapes()
    shapes.recognises(api_key, api_version, content)    # False
    rewrite(api_key, api_version, content, ...)         # gives `content` itself
    shapes.learn(api_key, api_version, content)

Hardly any answer to a Produce tells of a new leader, and those that a client gets look alike. To walk over such an
answer is to look at its lengths and counts alone: another one of the same length that has the same bytes at these
places has its end at the same place, and no addresses there. That is one comparison, however many partitions it tells
of.

Limits: short answers whose addresses would be in a tagged field, and the first so many kinds of them.

Source: KIP-951, KIP-482.
"""

from typing import Final

from kafka_dt_protocol.rewriting.node_addresses.nodes import find_nodes
from kafka_dt_protocol.rewriting.node_addresses.places import place_of
from kafka_dt_protocol.rewriting.node_addresses.skipping import OverBytes, Walk

MAX_CONTENT_BYTES: Final = 512
"""Of an answer that is remembered; a Produce of 14 partitions."""
MAX_SHAPES: Final = 16

_MAX_LENGTH_BYTES: Final = 5
"""What stands before a field to tell its length."""


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
