"""Where an answer says how its cluster's nodes are reached.

A node is told by three fields side by side: its id, its host and its port. They stand in the answer itself
(FindCoordinator up to version 3), in the elements of an array, or in those of a tagged array; `place_of` reads from the
schema which of the three it is, and what has to be skipped to get there.

`FIRST_VERSIONS` is the one table that is written by hand: no schema is to be loaded to know that an answer has nothing
to rewrite. A test looks through all of kio for what is missing in it.

Source: Kafka's message schemas; KIP-951 (endpoints of new leaders), KIP-699 (coordinators in batches), KIP-932 (share
groups).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

from kio.index import load_response_schema
from kio.schema.index import api_key_map, schema_name_map

from kafka_dt_protocol.errors import UnsupportedVersion
from kafka_dt_protocol.rewriting.node_addresses.lengths import LengthReader, length_reader
from kafka_dt_protocol.rewriting.node_addresses.skipping import Program, program
from kafka_dt_protocol.wire.layout import EntityLayout, FieldLayout, entity_layout

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
_NODES: Final = (("node_id", "host", "port"), ("broker_id", "host", "port"))
"""How the fields of a node are called."""


@dataclass(frozen=True, slots=True)
class Place:
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
    behind_records: bool
    """The fields before the nodes hold records, so that the answer may be long."""


def carries_addresses(api_key: int, api_version: int) -> bool:
    """Tell whether answers of this version have to be rewritten, also when nothing is known of the version."""
    first = FIRST_VERSIONS.get(api_key)
    return first is not None and api_version >= first


def known_versions(api_key: int) -> range | None:
    """Tell in which versions an API can be let through.

    Returns:
        The versions that have no addresses or whose layout is known; None for an API that has addresses in none, of
        which any version may pass. Kafka and kio forget old versions; those of before the first address are known to
        have none, and a broker of Kafka 4 still offers Produce 0 to 2, which librdkafka looks for.
    """
    first = FIRST_VERSIONS.get(api_key)
    if first is None:
        return None
    versions = schema_name_map[api_key_map[api_key]]
    lowest = min(versions)
    return range(0 if lowest < first else lowest, max(versions) + 1)


def has_records(api_key: int, api_version: int) -> bool:
    """Tell whether an answer has addresses behind records, so that a long one is to be streamed (`AddressesAtEnd`).

    Raises:
        UnsupportedVersion: the answer carries addresses, in a layout that is not known.
    """
    return carries_addresses(api_key, api_version) and place_of(api_key, api_version).behind_records


@cache
def place_of(api_key: int, api_version: int) -> Place:
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
    return Place(
        head=program(header.plain, tagged=header.flexible) + program(ahead, tagged=False),
        tag=None if array is None else array.tag,
        read_count=None if array is None else length_reader(array, of_array=True),
        before=() if array is None else program(element.plain[:index], tagged=False),
        read_host_length=length_reader(element.plain[index + 1], of_array=False),
        after=() if array is None else program(behind, tagged=element.flexible),
        to_fenced=_to_fenced(behind),
        flexible=body.flexible,
        at_the_end=body.flexible and (array is body.plain[-1] or array in body.tagged),
        behind_records=any(map(_holds_records, ahead)),
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


def _holds_records(field: FieldLayout) -> bool:
    if field.entity is None:
        return field.kafka_type == "records"
    layout = entity_layout(field.entity)
    return any(map(_holds_records, (*layout.plain, *layout.tagged)))
