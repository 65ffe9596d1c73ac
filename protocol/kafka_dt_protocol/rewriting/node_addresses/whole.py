"""Answers that have arrived whole: their nodes' addresses are replaced, all other bytes stay as they are.

Nothing is decoded and encoded again, so that unknown tagged fields, their order and every other liberty of the wire
format come through. What stands behind the nodes is not even looked at.

Source: KIP-482 (the size of a tagged field changes with its content).
"""

from kafka_dt_protocol.rewriting.node_addresses.nodes import Advertise, Nodes, find_nodes, new_addresses
from kafka_dt_protocol.rewriting.node_addresses.places import place_of
from kafka_dt_protocol.rewriting.node_addresses.skipping import skip
from kafka_dt_protocol.wire.encoding import encode_varint


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
