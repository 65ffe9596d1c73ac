"""The bytes of ACLs in ZooKeeper, as a broker writes them and as it may find them."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.identity.acls.binding import (
    RESOURCE_TYPES,
    AccessControlEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kafka_dt.tokens import Principal
from kafka_dt.zookeeper.errors import InvalidZnode
from kafka_dt.zookeeper.znodes.acls import AclZnode, ExtendedAclChangeZnode, LiteralAclChangeZnode, can_be_resource
from tests.support.zookeeper.node_names import NODE_NAMES

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ENTRY = AccessControlEntry(Principal.user("Zoë"), "10.0.0.7", AclOperation.CREATE_TOKENS, AclPermissionType.DENY)
WRITTEN = (
    '{"acls":[{"principal":"User:Zoë","permissionType":"Deny","host":"10.0.0.7","operation":"CreateTokens"}],'
    '"version":1}'
).encode()
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
ENTRIES = st.builds(
    AccessControlEntry,
    st.builds(Principal, TEXTS.filter(lambda text: ":" not in text), TEXTS),
    TEXTS,
    st.sampled_from([each for each in AclOperation if each is not AclOperation.ANY]),
    st.sampled_from([each for each in AclPermissionType if each is not AclPermissionType.ANY]),
)


def test_an_acl_is_written_as_a_broker_does() -> None:
    assert AclZnode.encode((ENTRY,)) == WRITTEN
    assert AclZnode.decode(WRITTEN) == (ENTRY,)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (ResourcePattern(ResourceType.USER, "User:Zoë *%", LITERAL), "/kafka-acl/User/User:Zoë *%"),
        (ResourcePattern(ResourceType.DELEGATION_TOKEN, "*", LITERAL), "/kafka-acl/DelegationToken/*"),
        (
            ResourcePattern(ResourceType.TRANSACTIONAL_ID, "t", PREFIXED),
            "/kafka-acl-extended/prefixed/TransactionalId/t",
        ),
    ],
)
def test_names_stand_in_paths_as_they_are(pattern: ResourcePattern, path: str) -> None:
    assert AclZnode.path(pattern) == path


@given(st.lists(ENTRIES, unique=True, max_size=5).map(tuple))
def test_what_was_written_is_read(entries: tuple[AccessControlEntry, ...]) -> None:
    assert AclZnode.decode(AclZnode.encode(entries)) == entries


def test_a_znode_without_data_has_no_acls_and_equal_ones_count_once() -> None:
    assert AclZnode.decode(b"") == ()
    assert AclZnode.decode(AclZnode.encode((ENTRY, ENTRY))) == (ENTRY,)


def test_names_are_read_in_any_case_and_those_of_a_newer_kafka_are_kept() -> None:
    acl = {"principal": "User:a", "permissionType": "ALLOW", "operation": "createtokens", "host": "*", "more": 1}
    newer = {**acl, "operation": "TwoPhaseCommit"}
    entries = AclZnode.decode(json.dumps({"version": 1, "acls": [acl, newer]}).encode())
    assert [(each.operation, each.permission_type) for each in entries] == [
        (AclOperation.CREATE_TOKENS, AclPermissionType.ALLOW),
        (AclOperation.UNKNOWN, AclPermissionType.ALLOW),
    ]


ACL = {"principal": "User:a", "permissionType": "Allow", "operation": "Read", "host": "*"}


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"version": 1},
        {"acls": [ACL]},
        {"version": 2, "acls": [ACL]},
        {"version": "1", "acls": [ACL]},
        {"version": 1, "acls": {}},
        {"version": 1, "acls": [1]},
        {"version": 1, "acls": [{**ACL, "principal": "alice"}]},
        {"version": 1, "acls": [{**ACL, "principal": None}]},
        {"version": 1, "acls": [{**ACL, "host": 1}]},
        {"version": 1, "acls": [{**ACL, "operation": "Any"}]},
        {"version": 1, "acls": [{**ACL, "permissionType": "any"}]},
        {"version": 1, "acls": [{key: value for key, value in ACL.items() if key != "operation"}]},
    ],
)
def test_anything_else_is_not_readable(document: object) -> None:
    with pytest.raises(InvalidZnode):
        AclZnode.decode(json.dumps(document).encode())


@given(st.binary(max_size=60))
def test_any_bytes_are_acls_or_not_readable(data: bytes) -> None:
    for read in (AclZnode.decode, LiteralAclChangeZnode.decode, ExtendedAclChangeZnode.decode):
        with contextlib.suppress(InvalidZnode):
            read(data)


def test_changes_are_written_as_a_broker_does() -> None:
    literal = ResourcePattern(ResourceType.DELEGATION_TOKEN, "a:b", LITERAL)
    prefixed = ResourcePattern(ResourceType.USER, "User:Zoë", PREFIXED)
    assert LiteralAclChangeZnode.encode(literal) == b"DELEGATION_TOKEN:a:b"
    assert ExtendedAclChangeZnode.encode(prefixed) == (
        '{"version":1,"resourceType":"USER","name":"User:Zoë","patternType":"PREFIXED"}'.encode()
    )


@given(st.sampled_from(RESOURCE_TYPES), NODE_NAMES)
def test_a_change_that_was_written_is_read(resource_type: ResourceType, name: str) -> None:
    literal = ResourcePattern(resource_type, name, LITERAL)
    prefixed = ResourcePattern(resource_type, name, PREFIXED)
    assert LiteralAclChangeZnode.decode(LiteralAclChangeZnode.encode(literal)) == literal
    assert ExtendedAclChangeZnode.decode(ExtendedAclChangeZnode.encode(prefixed)) == prefixed


@pytest.mark.parametrize(
    "data", [b"", b"USER", b"USER:", b"ANY:x", b"UNKNOWN:x", b"Nothing:x", b"USER:a/b", b"USER:.."]
)
def test_a_literal_change_names_a_pattern(data: bytes) -> None:
    with pytest.raises(InvalidZnode):
        LiteralAclChangeZnode.decode(data)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"resourceType": "ANY"},
        {"patternType": "LITERAL"},
        {"patternType": "MATCH"},
        {"name": "a/b"},
        {"name": 1},
    ],
    ids=str,
)
def test_an_extended_change_names_a_pattern(change: dict[str, object]) -> None:
    document = {"version": 1, "resourceType": "User", "name": "x", "patternType": "Prefixed"}
    assert ExtendedAclChangeZnode.decode(json.dumps(document).encode()).name == "x"
    with pytest.raises(InvalidZnode):
        ExtendedAclChangeZnode.decode(json.dumps({**document, **change}).encode())


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0", "\x1f", "\ud800", "\ue000", "🐘", "x" * 32768])
def test_not_every_name_can_stand_in_a_path(name: str) -> None:
    assert not can_be_resource(name)


@pytest.mark.parametrize("name", ["*", "User:a", "a b", "%2F", "\u00eb", "x" * 32767])
def test_most_names_can(name: str) -> None:
    assert can_be_resource(name)
