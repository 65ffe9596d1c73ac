"""Words of ACLs: their codes on the wire, their names in ZooKeeper."""

from __future__ import annotations

import pytest

from kafka_dt.identity.acls.binding import (
    EVERYBODY,
    IMPLIED_BY,
    PATTERN_TYPES,
    RESOURCE_TYPES,
    SUPPORTED_OPERATIONS,
    AccessControlEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kafka_dt.tokens import Principal

ALICE, BOB = Principal.user("alice"), Principal.user("bob")
NAMES = [
    (ResourceType.TOPIC, "Topic"),
    (ResourceType.GROUP, "Group"),
    (ResourceType.CLUSTER, "Cluster"),
    (ResourceType.TRANSACTIONAL_ID, "TransactionalId"),
    (ResourceType.DELEGATION_TOKEN, "DelegationToken"),
    (ResourceType.USER, "User"),
    (AclOperation.ALL, "All"),
    (AclOperation.CLUSTER_ACTION, "ClusterAction"),
    (AclOperation.DESCRIBE_CONFIGS, "DescribeConfigs"),
    (AclOperation.ALTER_CONFIGS, "AlterConfigs"),
    (AclOperation.IDEMPOTENT_WRITE, "IdempotentWrite"),
    (AclOperation.CREATE_TOKENS, "CreateTokens"),
    (AclOperation.DESCRIBE_TOKENS, "DescribeTokens"),
    (AclPermissionType.DENY, "Deny"),
    (AclPermissionType.ALLOW, "Allow"),
]


@pytest.mark.parametrize(("member", "name"), NAMES)
def test_names_are_those_of_zookeeper_and_read_in_any_case(
    member: ResourceType | AclOperation | AclPermissionType, name: str
) -> None:
    assert member.text == name
    for written in (name, name.upper(), name.lower()):
        assert type(member).of_name(written) is member


@pytest.mark.parametrize("name", ["", "TwoPhaseCommit", "CREATE_TOKENS", "Create Tokens"])
def test_other_names_are_unknown(name: str) -> None:
    assert AclOperation.of_name(name) is AclOperation.UNKNOWN


@pytest.mark.parametrize("kind", [ResourceType, PatternType, AclOperation, AclPermissionType])
@pytest.mark.parametrize("code", [0, 100, -1])
def test_other_codes_are_unknown(
    kind: type[ResourceType | PatternType | AclOperation | AclPermissionType], code: int
) -> None:
    assert kind(code).name == "UNKNOWN"


def test_what_is_no_code_is_an_error() -> None:
    with pytest.raises(ValueError, match="Allow"):
        AclPermissionType("Allow")  # type: ignore[arg-type]


def test_the_codes_are_those_of_kafka() -> None:
    assert [each.value for each in RESOURCE_TYPES] == [2, 3, 4, 5, 6, 7]
    assert [each.value for each in PATTERN_TYPES] == [3, 4]
    assert [AclOperation(code).name for code in (2, 3, 7, 8, 13, 14)] == [
        "ALL",
        "READ",
        "ALTER",
        "DESCRIBE",
        "CREATE_TOKENS",
        "DESCRIBE_TOKENS",
    ]


def test_every_type_of_resource_has_operations_and_none_needs_all() -> None:
    assert set(SUPPORTED_OPERATIONS) == set(RESOURCE_TYPES)
    assert all(AclOperation.ALL not in operations for operations in SUPPORTED_OPERATIONS.values())
    assert all(operation in implying for operation, implying in IMPLIED_BY.items())


@pytest.mark.parametrize(
    ("entry_principal", "entry_host", "covered"),
    [
        (ALICE, "*", True),
        (ALICE, "10.0.0.7", True),
        (EVERYBODY, "10.0.0.7", True),
        (EVERYBODY, "*", True),
        (ALICE, "10.0.0.8", False),
        (ALICE, "", False),
        (BOB, "*", False),
        (Principal("Group", "alice"), "*", False),
        (Principal("Group", "*"), "*", False),
    ],
)
def test_an_entry_is_about_a_principal_at_an_address(
    entry_principal: Principal, entry_host: str, covered: bool
) -> None:
    entry = AccessControlEntry(entry_principal, entry_host, AclOperation.READ, AclPermissionType.ALLOW)
    assert entry.covers(ALICE, "10.0.0.7") is covered


def test_an_entry_of_a_newer_kafka_says_so() -> None:
    allow, deny = AclPermissionType.ALLOW, AclPermissionType.UNKNOWN
    assert AccessControlEntry(ALICE, "*", AclOperation.UNKNOWN, allow).unknown
    assert AccessControlEntry(ALICE, "*", AclOperation.READ, deny).unknown
    assert not AccessControlEntry(ALICE, "*", AclOperation.READ, allow).unknown


def test_a_pattern_tells_what_it_is_about_without_line_breaks() -> None:
    text = str(ResourcePattern(ResourceType.USER, "User:a\nb", PatternType.PREFIXED))
    assert text == r"PREFIXED User:'User:a\nb'"
