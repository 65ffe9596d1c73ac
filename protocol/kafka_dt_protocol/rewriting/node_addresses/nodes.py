"""The nodes of one answer: where their addresses stand, and the bytes that are to stand there instead.

`find_nodes` reads them from the bytes, `new_addresses` asks for each node how this client reaches it. A node without
id, host or port is none: that is how an answer says that it knows no coordinator. No client goes to a fenced broker,
which DescribeCluster tells if it is asked to, so its address stays.

Source: Kafka protocol guide, "Protocol Primitive Types"; KIP-482; KIP-1073 (fenced brokers); Node.noNode in Kafka's
clients.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from kafka_dt_protocol.errors import LocalProtocolError, MalformedMessage
from kafka_dt_protocol.rewriting.node_addresses.lengths import ENDS_EARLY, read_int32, read_varint
from kafka_dt_protocol.rewriting.node_addresses.places import Place
from kafka_dt_protocol.rewriting.node_addresses.skipping import skip
from kafka_dt_protocol.wire.encoding import encode_varint
from kafka_dt_protocol.wire.layout import MAX_TEXT_BYTES

Advertise: TypeAlias = Callable[[int, str, int], tuple[str, int]]
"""Node id, host and port as the upstream has them -> host and port for this client."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node in the bytes of an answer; all places are offsets."""

    node_id: int
    host: str
    port: int
    fenced: bool
    start: int
    """Of the element that tells of it."""
    address: int
    """Of its host, length included, and its port."""
    address_end: int
    end: int
    """Behind the element."""


@dataclass(frozen=True, slots=True)
class TaggedField:
    """One tagged field in the bytes of an answer; all places are offsets."""

    tag: int
    start: int
    size: int
    """Of the varint that tells the size of its content."""
    content: int
    end: int


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of an answer, and what stands around them."""

    nodes: tuple[Node, ...]
    field: TaggedField | None
    """The tagged field that holds them."""
    others: tuple[TaggedField, ...]
    """The answer's tagged fields that hold none; empty unless the nodes are at its end."""
    end: int
    """Behind all this."""


def find_nodes(place: Place, buffer: bytes, offset: int) -> Nodes:
    """Read the nodes of an answer.

    Args:
        place: where its API and version have them.
        buffer: the answer, or the end of it; all of it has arrived.
        offset: of the array, the tagged fields or the single node: behind what `place.head` skips.

    Raises:
        MalformedMessage: the bytes are not what the place says.
    """
    try:
        if place.tag is not None:
            return _nodes_in_tagged_field(place, buffer, offset)
        nodes, end = _read_nodes(place, buffer, offset)
        others, end = _read_tagged_fields(buffer, end) if place.at_the_end else ((), end)
        return Nodes(nodes, None, others, end)
    except ENDS_EARLY:
        raise MalformedMessage("it ends early") from None
    except UnicodeDecodeError:
        raise MalformedMessage("text that is not UTF-8") from None


def new_addresses(place: Place, nodes: tuple[Node, ...], advertise: Advertise) -> list[bytes | None]:
    """Ask how each node is reached.

    Returns:
        For each node its host and port as they are to stand on the wire; None where they stay as they are.

    Raises:
        LocalProtocolError: what was advertised does not fit the wire.
    """
    return [_new_address(place, node, advertise) for node in nodes]


def _new_address(place: Place, node: Node, advertise: Advertise) -> bytes | None:
    if node.node_id < 0 or not node.host or node.port <= 0 or node.fenced:
        return None
    host, port = advertise(node.node_id, node.host, node.port)
    if (host, port) == (node.host, node.port):
        return None
    try:
        text = host.encode()
        if len(text) > MAX_TEXT_BYTES:
            raise LocalProtocolError(f"a host of {len(text)} bytes cannot be advertised")
        length = encode_varint(len(text) + 1) if place.flexible else len(text).to_bytes(2)
        return length + text + port.to_bytes(4, signed=True)
    except (UnicodeEncodeError, OverflowError) as error:
        raise LocalProtocolError(f"an address that does not fit the wire cannot be advertised: {error}") from error


def _nodes_in_tagged_field(place: Place, buffer: bytes, offset: int) -> Nodes:
    fields, end = _read_tagged_fields(buffer, offset)
    own = [field for field in fields if field.tag == place.tag]
    if not own:
        return Nodes((), None, fields, end)
    if len(own) > 1:
        raise MalformedMessage("a known tagged field twice")
    nodes, nodes_end = _read_nodes(place, buffer, own[0].content)
    if nodes_end != own[0].end:
        raise MalformedMessage("a tagged field of another size than announced")
    return Nodes(nodes, own[0], tuple(field for field in fields if field is not own[0]), end)


def _read_nodes(place: Place, buffer: bytes, offset: int) -> tuple[tuple[Node, ...], int]:
    if place.read_count is None:
        node = _read_node(place, buffer, offset)
        return (node,), node.end
    count, offset = place.read_count(buffer, offset)
    nodes: list[Node] = []
    for _ in range(count):
        node = _read_node(place, buffer, offset)
        offset = node.end
        nodes.append(node)
    return tuple(nodes), offset


def _read_node(place: Place, buffer: bytes, start: int) -> Node:
    node_id, address = read_int32(buffer, skip(place.before, buffer, start))
    length, text = place.read_host_length(buffer, address)
    if length > MAX_TEXT_BYTES:
        raise MalformedMessage("text that is too long")
    text_end = text + max(length, 0)
    port, address_end = read_int32(buffer, text_end)
    host = buffer[text:text_end].decode()
    fenced = place.to_fenced is not None and buffer[skip(place.to_fenced, buffer, address_end)] != 0
    return Node(node_id, host, port, fenced, start, address, address_end, skip(place.after, buffer, address_end))


def _read_tagged_fields(buffer: bytes, offset: int) -> tuple[tuple[TaggedField, ...], int]:
    count, offset = read_varint(buffer, offset)
    fields: list[TaggedField] = []
    for _ in range(count):
        start = offset
        tag, size_at = read_varint(buffer, start)
        size, content = read_varint(buffer, size_at)
        offset = content + size
        if offset > len(buffer):
            raise MalformedMessage("a tagged field beyond its end")
        fields.append(TaggedField(tag, start, size_at, content, offset))
    return tuple(fields), offset
