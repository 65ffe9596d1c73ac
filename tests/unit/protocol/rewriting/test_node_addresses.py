"""No answer of Kafka's schema tells an address that is neither rewritten nor known to be none of a broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kio.schema.index import api_key_map, schema_name_map
from kio.static.constants import EntityType
from kio.static.protocol import Entity

from kafka_dt_protocol.errors import UnsupportedVersion
from kafka_dt_protocol.rewriting.node_addresses import carries_addresses, ends_with_endpoints, known_versions
from kafka_dt_protocol.rewriting.replacing import AddressesAtEnd, rewrite
from kafka_dt_protocol.wire.layout import entity_layout
from tests.support.protocol.kio_entities import entity_id
from tests.unit.protocol.rewriting.node_answers import answer_in, content_of, response_type, rich_answer

RESPONSE_TYPES = [
    response_type(api_key, version)
    for api_key, name in api_key_map.items()
    for version, kinds in schema_name_map[name].items()
    if EntityType.response in kinds
]
ADDRESS_WORDS = {"host", "port", "endpoint", "endpoints", "listener", "listeners", "address", "addresses", "url", "uri"}
ACL = "the host of an ACL: that of the client that it is for"
MEMBER = "the host of a group's member, which is a client"
APPLICATION = "where instances of an application reach each other"
CONTROLLER = "where controllers reach each other; no client is led there"
BETWEEN_CONTROLLERS = "an API between controllers, which a broker does not serve"
NO_ADDRESS = "a number about endpoints"
REASONS = {
    ("describe_acls", "resources.acls.host"): ACL,
    ("delete_acls", "filter_results.matching_acls.host"): ACL,
    ("describe_groups", "groups.members.client_host"): MEMBER,
    ("consumer_group_describe", "groups.members.client_host"): MEMBER,
    ("share_group_describe", "groups.members.client_host"): MEMBER,
    ("streams_group_describe", "groups.members.client_host"): MEMBER,
    ("streams_group_describe", "groups.members.user_endpoint.host"): APPLICATION,
    ("streams_group_describe", "groups.members.user_endpoint.port"): APPLICATION,
    ("streams_group_heartbeat", "partitions_by_user_endpoint.user_endpoint.host"): APPLICATION,
    ("streams_group_heartbeat", "partitions_by_user_endpoint.user_endpoint.port"): APPLICATION,
    ("streams_group_heartbeat", "endpoint_information_epoch"): NO_ADDRESS,
    ("describe_cluster", "endpoint_type"): NO_ADDRESS,
    ("describe_quorum", "nodes.listeners.host"): CONTROLLER,
    ("describe_quorum", "nodes.listeners.port"): CONTROLLER,
    ("vote", "node_endpoints.host"): BETWEEN_CONTROLLERS,
    ("vote", "node_endpoints.port"): BETWEEN_CONTROLLERS,
    ("begin_quorum_epoch", "node_endpoints.host"): BETWEEN_CONTROLLERS,
    ("begin_quorum_epoch", "node_endpoints.port"): BETWEEN_CONTROLLERS,
    ("end_quorum_epoch", "node_endpoints.host"): BETWEEN_CONTROLLERS,
    ("end_quorum_epoch", "node_endpoints.port"): BETWEEN_CONTROLLERS,
    ("fetch_snapshot", "node_endpoints.host"): BETWEEN_CONTROLLERS,
    ("fetch_snapshot", "node_endpoints.port"): BETWEEN_CONTROLLERS,
    ("update_raft_voter", "current_leader.host"): BETWEEN_CONTROLLERS,
    ("update_raft_voter", "current_leader.port"): BETWEEN_CONTROLLERS,
}
"""API and field -> why it is left as it is."""


def address_paths(entity_type: type[Entity]) -> Iterator[str]:
    layout = entity_layout(entity_type)
    for field in (*layout.plain, *layout.tagged):
        if field.entity is not None:
            yield from (f"{field.name}.{path}" for path in address_paths(field.entity))
        elif ADDRESS_WORDS & set(field.name.split("_")):
            yield field.name


def values_at(value: Any, path: str) -> list[object]:
    name, _, rest = path.partition(".")
    inner = getattr(value, name)
    items = inner if isinstance(inner, tuple) else (inner,)
    return [found for item in items for found in values_at(item, rest)] if rest else list(items)


def in_every_address(entity_type: type[Any]) -> Any:
    """Rewrite an answer in which every field has a value."""
    api_key, version = entity_type.__api_key__, entity_type.__version__
    rewritten = rewrite(api_key, version, content_of(rich_answer(api_key, version)), lambda *_: ("gateway", 1))
    return answer_in(rewritten, entity_type)


def found_paths() -> set[tuple[str, str]]:
    return {(api_key_map[kind.__api_key__], path) for kind in RESPONSE_TYPES for path in address_paths(kind)}


@pytest.mark.parametrize("entity_type", RESPONSE_TYPES, ids=entity_id)
def test_every_address_in_every_answer_is_rewritten_or_there_is_a_reason(entity_type: type[Any]) -> None:
    name = api_key_map[entity_type.__api_key__]
    paths = [path for path in address_paths(entity_type) if (name, path) not in REASONS]
    assert carries_addresses(entity_type.__api_key__, entity_type.__version__) == bool(paths)
    for path in paths:
        assert set(values_at(in_every_address(entity_type), path)) <= {"gateway", 1}


def test_no_reason_is_given_for_what_there_is_not() -> None:
    assert set(REASONS) <= found_paths()


def test_versions_whose_layout_is_known_may_be_offered() -> None:
    versions = {api_key: known_versions(api_key) for api_key in api_key_map}
    assert {api_key: known for api_key, known in versions.items() if known is not None} == {
        0: range(14),  # kio begins with 3; librdkafka looks for 0 to 2, which have no addresses
        1: range(19),
        3: range(14),
        10: range(7),
        60: range(3),
        78: range(1, 3),  # version 0 of a preview has addresses, in a layout of its own
        79: range(1, 3),
    }


def test_of_an_api_of_the_future_nothing_is_known() -> None:
    assert not carries_addresses(9999, 0)
    assert known_versions(9999) is None


def test_answers_about_partitions_end_with_endpoints_of_leaders() -> None:
    streamed = [(kind.__api_key__, kind.__version__) for kind in RESPONSE_TYPES if known_to_end_with_endpoints(kind)]
    produce, fetch = [(0, version) for version in range(10, 14)], [(1, version) for version in range(16, 19)]
    assert sorted(streamed) == [*produce, *fetch, (78, 1), (78, 2), (79, 1), (79, 2)]


def known_to_end_with_endpoints(entity_type: type[Any]) -> bool:
    return ends_with_endpoints(entity_type.__api_key__, entity_type.__version__)


@pytest.mark.parametrize(("api_key", "version"), [(1, 99), (3, 99), (78, 0)])
def test_an_answer_with_addresses_in_an_unknown_layout_does_not_pass(api_key: int, version: int) -> None:
    assert carries_addresses(api_key, version)
    with pytest.raises(UnsupportedVersion):
        rewrite(api_key, version, bytes(100), lambda *_: ("gateway", 1))
    with pytest.raises(UnsupportedVersion):
        AddressesAtEnd(api_key, version, 100, lambda *_: ("gateway", 1))
    with pytest.raises(UnsupportedVersion):
        ends_with_endpoints(api_key, version)
