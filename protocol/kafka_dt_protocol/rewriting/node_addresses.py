"""Where an answer says how its cluster's nodes are reached, and the bytes that are to stand there instead.

An answer names a node by three fields side by side: its id, its host and its port. They stand in the answer itself
(FindCoordinator up to version 3), in the elements of an array, or in those of a tagged array; `place_of` reads from the
schema which of the three it is. `FIRST_VERSIONS` is written by hand: without it a schema would have to be loaded to
know that an answer has nothing to rewrite. A test looks through all of kio for what is missing in it.

A node without id, host or port is none: that is how an answer says that it knows no coordinator. No client goes to a
fenced broker, which DescribeCluster tells if it is asked to, so its address stays.

Source: Kafka's message schemas, as kio has them; Kafka protocol guide, "Protocol Primitive Types"; KIP-482; KIP-951
(endpoints of new leaders), KIP-699 (coordinators in batches), KIP-932 (share groups), KIP-1073 (fenced brokers);
org.apache.kafka.common.Node.noNode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final, TypeAlias

from kio.index import load_response_schema
from kio.schema.index import api_key_map, schema_name_map

from kafka_dt_protocol.errors import LocalProtocolError, MalformedMessage, UnsupportedVersion
from kafka_dt_protocol.rewriting.skipping import (
    ENDS_EARLY,
    LengthReader,
    Program,
    length_reader,
    program,
    read_int32,
    skip,
)
from kafka_dt_protocol.wire.decoding import read_varint
from kafka_dt_protocol.wire.encoding import encode_varint
from kafka_dt_protocol.wire.layout import MAX_TEXT_BYTES, EntityLayout, FieldLayout, entity_layout

FIRST_VERSIONS: Final[Mapping[int, int]] = MappingProxyType(
    {
        0: 10,  # Produce
        1: 16,  # Fetch
        3: 0,  # Metadata
        10: 0,  # FindCoordinator
        60: 0,  # DescribeCluster
        78: 0,  # ShareFetch
        79: 0,  # ShareAcknowledge
    }
)
"""API key -> the first version whose answers carry addresses of nodes that clients connect to; all later ones do."""

_FENCED: Final = "is_fenced"
_ENDPOINTS: Final = "node_endpoints"
_EARLY: Final = "it ends early"
_NO_UTF8: Final = "text that is not UTF-8"
_NODES: Final = (("node_id", "host", "port"), ("broker_id", "host", "port"))
"""How the fields of a node are called."""

Advertise: TypeAlias = Callable[[int, str, int], tuple[str, int]]
"""Node id, host and port as the upstream has them -> host and port for this client."""


@dataclass(frozen=True, slots=True)
class NodesPlace:
    """Where the nodes stand in an answer."""

    head: Program
    """Over all that comes before: the answer's header, and the fields before the array or the tagged fields."""
    tag: int | None
    """Of the tagged field that holds the array."""
    read_count: LengthReader | None
    """Of the array's length; None: there is one node, and it stands in the answer itself."""
    before: Program
    """Over an element's fields before its node."""
    read_host_length: LengthReader
    after: Program
    """Over an element's fields behind its node."""
    to_fenced: Program | None
    """Over those of them before the one that says whether the node is fenced, if there is one."""
    flexible: bool
    at_the_end: bool
    """Nothing but tagged fields stands behind the nodes."""
    endpoints: bool
    """The nodes are the addresses of leaders that the answer tells of (KIP-951): it is of use without them."""


def carries_addresses(api_key: int, api_version: int) -> bool:
    """Tell whether answers of this version have to be rewritten, also when nothing is known of the version."""
    first = FIRST_VERSIONS.get(api_key)
    return first is not None and api_version >= first


def known_versions(api_key: int) -> range | None:
    """Tell in which versions an API can be let through: those without addresses, and those whose layout is known.

    None stands for an API that has addresses in no version, of which any may pass. Kafka and kio forget old versions;
    those before the first address are known to have none, and a broker of Kafka 4 still offers Produce 0 to 2, which
    librdkafka looks for.
    """
    first = FIRST_VERSIONS.get(api_key)
    if first is None:
        return None
    versions = schema_name_map[api_key_map[api_key]]
    lowest = min(versions)
    return range(0 if lowest < first else lowest, max(versions) + 1)


def ends_with_endpoints(api_key: int, api_version: int) -> bool:
    """Tell whether an answer ends with endpoints of leaders, so that a long one is to be streamed (`AddressesAtEnd`).

    Raises:
        UnsupportedVersion: the answer carries addresses, in a layout that is not known.
    """
    if not carries_addresses(api_key, api_version):
        return False
    place = place_of(api_key, api_version)
    return place.at_the_end and place.endpoints


@cache
def place_of(api_key: int, api_version: int) -> NodesPlace:
    """Find the nodes in the answers of an API that carries addresses.

    Raises:
        UnsupportedVersion: the layout is not known.
    """
    if api_version not in schema_name_map[api_key_map[api_key]]:
        raise UnsupportedVersion(api_key, api_version)
    response = load_response_schema(api_key, api_version)
    header, body = entity_layout(response.__header_schema__), entity_layout(response)
    array, element = next(_arrays_of_nodes(body), (None, body))
    ahead = _fields_ahead(body, array)
    index = _node_index(element)
    behind = () if array is None else element.plain[index + 3 :]
    return NodesPlace(
        head=program(header.plain, tagged=header.flexible) + program(ahead, tagged=False),
        tag=None if array is None else array.tag,
        read_count=None if array is None else length_reader(array, of_array=True),
        before=() if array is None else program(element.plain[:index], tagged=False),
        read_host_length=length_reader(element.plain[index + 1], of_array=False),
        after=() if array is None else program(behind, tagged=element.flexible),
        to_fenced=_to_fenced(behind),
        flexible=body.flexible,
        at_the_end=body.flexible and (array is body.plain[-1] or array in body.tagged),
        endpoints=array is not None and array.name == _ENDPOINTS,
    )


def _fields_ahead(body: EntityLayout, array: FieldLayout | None) -> tuple[FieldLayout, ...]:
    if array is None:
        return body.plain[: _node_index(body)]
    return body.plain if array.tag is not None else body.plain[: body.plain.index(array)]


def _arrays_of_nodes(body: EntityLayout) -> Iterator[tuple[FieldLayout, EntityLayout]]:
    """Give the arrays whose elements have a node, with the layout of the elements."""
    for field in (*body.plain, *body.tagged):
        if field.is_array and field.entity is not None:
            element = entity_layout(field.entity)
            if any(names in _NODES for names in _names_side_by_side(element)):
                yield field, element


def _node_index(layout: EntityLayout) -> int:
    """Give the index of the node's id among the plain fields."""
    return next(index for index, names in enumerate(_names_side_by_side(layout)) if names in _NODES)


def _to_fenced(fields: tuple[FieldLayout, ...]) -> Program | None:
    names = [field.name for field in fields]
    return program(fields[: names.index(_FENCED)], tagged=False) if _FENCED in names else None


def _names_side_by_side(layout: EntityLayout) -> Iterator[tuple[str, ...]]:
    names = [field.name for field in layout.plain]
    return zip(names, names[1:], names[2:], strict=False)


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


def find_nodes(place: NodesPlace, buffer: bytes, offset: int) -> Nodes:
    """Read the nodes of an answer, or of the end of one; all of it has arrived.

    Args:
        place: where its API and version have them.
        buffer: the bytes.
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
        raise MalformedMessage(_EARLY) from None
    except UnicodeDecodeError:
        raise MalformedMessage(_NO_UTF8) from None


def each_node(place: NodesPlace, buffer: bytes, offset: int) -> Iterator[Node]:
    """Read the nodes that stand in an answer or in an array of it, one by one; else it is as `find_nodes`."""
    try:
        yield from _each(place, buffer, *_count(place, buffer, offset))
    except ENDS_EARLY:
        raise MalformedMessage(_EARLY) from None
    except UnicodeDecodeError:
        raise MalformedMessage(_NO_UTF8) from None


def new_address(place: NodesPlace, node: Node, advertise: Advertise) -> bytes | None:
    """Give a node's host and port as they are to stand on the wire; None if they stay as they are.

    Raises:
        LocalProtocolError: what was advertised does not fit the wire.
    """
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


def _nodes_in_tagged_field(place: NodesPlace, buffer: bytes, offset: int) -> Nodes:
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


def _read_nodes(place: NodesPlace, buffer: bytes, offset: int) -> tuple[tuple[Node, ...], int]:
    count, offset = _count(place, buffer, offset)
    nodes = tuple(_each(place, buffer, count, offset))
    return nodes, nodes[-1].end if nodes else offset


def _count(place: NodesPlace, buffer: bytes, offset: int) -> tuple[int, int]:
    """Say how many nodes there are, and the offset of the first."""
    return (1, offset) if place.read_count is None else place.read_count(buffer, offset)


def _each(place: NodesPlace, buffer: bytes, count: int, offset: int) -> Iterator[Node]:
    for _ in range(count):
        node = _read_node(place, buffer, offset)
        offset = node.end
        yield node


def _read_node(place: NodesPlace, buffer: bytes, start: int) -> Node:
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
