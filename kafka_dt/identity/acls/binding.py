"""ACLs as values: which principal may or may not do what, to which resources, from which address.

An `AclBinding` is a pattern of resources and one entry about it. A code or name of a newer Kafka is UNKNOWN: it is kept
where it stands, and matches nothing.

Source: KIP-11, KIP-290, KIP-373; org.apache.kafka.common.acl, org.apache.kafka.common.resource,
org.apache.kafka.security.authorizer.AclEntry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from kafka_dt.tokens import USER_TYPE, Principal
from kafka_dt_protocol.api.acls import AclOperation, AclPermissionType, PatternType, ResourceType

__all__ = [
    "ANY_HOST",
    "ANY_NAME",
    "CLUSTER_NAME",
    "EVERYBODY",
    "IMPLIED_BY",
    "PATTERN_TYPES",
    "RESOURCE_TYPES",
    "SUPPORTED_OPERATIONS",
    "AccessControlEntry",
    "AclBinding",
    "AclOperation",
    "AclPermissionType",
    "PatternType",
    "ResourcePattern",
    "ResourceType",
]


ANY_NAME: Final = "*"
"""The name of the literal pattern of every resource of a type."""
ANY_HOST: Final = "*"
EVERYBODY: Final = Principal(USER_TYPE, "*")
CLUSTER_NAME: Final = "kafka-cluster"
"""The one resource of type CLUSTER."""

RESOURCE_TYPES: Final = tuple(kind for kind in ResourceType if kind > ResourceType.ANY)
"""The types of real resources."""
PATTERN_TYPES: Final = (PatternType.LITERAL, PatternType.PREFIXED)
"""The types of real patterns."""

IMPLIED_BY: Final[Mapping[AclOperation, frozenset[AclOperation]]] = MappingProxyType(
    {
        AclOperation.DESCRIBE: frozenset(
            {
                AclOperation.DESCRIBE,
                AclOperation.READ,
                AclOperation.WRITE,
                AclOperation.DELETE,
                AclOperation.ALTER,
            }
        ),
        AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}),
    }
)
"""Which allowed operations allow another one, itself included; a denial implies no other."""

SUPPORTED_OPERATIONS: Final[Mapping[ResourceType, tuple[AclOperation, ...]]] = MappingProxyType(
    {
        ResourceType.TOPIC: (
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.CREATE,
            AclOperation.DESCRIBE,
            AclOperation.DELETE,
            AclOperation.ALTER,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
        ),
        ResourceType.GROUP: (AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DELETE),
        ResourceType.CLUSTER: (
            AclOperation.CREATE,
            AclOperation.CLUSTER_ACTION,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
            AclOperation.IDEMPOTENT_WRITE,
            AclOperation.ALTER,
            AclOperation.DESCRIBE,
        ),
        ResourceType.TRANSACTIONAL_ID: (AclOperation.DESCRIBE, AclOperation.WRITE),
        ResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
        ResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
    }
)
"""What can be done to a resource of each type."""


@dataclass(frozen=True, slots=True)
class ResourcePattern:
    """Which resources an ACL is about."""

    resource_type: ResourceType
    name: str
    """A name, the beginning of names, or `*`; for the type User it is a principal (`User:alice`)."""
    pattern_type: PatternType

    def __str__(self) -> str:
        return f"{self.pattern_type.name} {self.resource_type.text}:{self.name!r}"


@dataclass(frozen=True, slots=True)
class AccessControlEntry:
    """Who may or may not do what, from where."""

    principal: Principal
    """`User:*` stands for every user."""
    host: str
    """An address as Java writes it (`10.0.0.7`, `0:0:0:0:0:0:0:1`); `*` is every one. Names are not resolved."""
    operation: AclOperation
    """ALL is every one."""
    permission_type: AclPermissionType

    @property
    def unknown(self) -> bool:
        """Whether a newer Kafka wrote it, with words that are not known here."""
        return AclOperation.UNKNOWN is self.operation or AclPermissionType.UNKNOWN is self.permission_type

    def covers(self, principal: Principal, host: str) -> bool:
        """Say whether the entry applies to a principal at an address."""
        return self.principal in (principal, EVERYBODY) and self.host in (host, ANY_HOST)


@dataclass(frozen=True, slots=True)
class AclBinding:
    """One ACL."""

    pattern: ResourcePattern
    entry: AccessControlEntry
