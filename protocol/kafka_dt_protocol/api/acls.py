"""The codes of ACLs on the wire, and their names: those of ZooKeeper and the tools (`DelegationToken`, `CreateTokens`).

A code or name of a newer Kafka is UNKNOWN.

Source: KIP-11, KIP-290, KIP-373; org.apache.kafka.common.acl, org.apache.kafka.common.resource.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class _Coded(IntEnum):
    """A closed set whose members have a code on the wire and a name in ZooKeeper."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return cls["UNKNOWN"] if isinstance(value, int) else super()._missing_(value)

    @classmethod
    def of_name(cls, name: str) -> Self:
        """Give the member of a name, in any case of its letters; UNKNOWN if there is none."""
        wanted = name.upper()
        return next((member for member in cls if member.text.upper() == wanted), cls["UNKNOWN"])

    @property
    def text(self) -> str:
        """The name as ZooKeeper and the tools have it: `DelegationToken`."""
        return self.name.title().replace("_", "")


class ResourceType(_Coded):
    """What kind of thing is protected."""

    UNKNOWN = 0
    ANY = 1
    """In filters only."""
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Coded):
    """How the name of a pattern is compared with that of a resource."""

    UNKNOWN = 0
    ANY = 1
    """In filters only: any pattern of that name."""
    MATCH = 2
    """In filters only: any pattern that a resource of that name falls under."""
    LITERAL = 3
    """Exactly, but `*` is every resource of the type."""
    PREFIXED = 4
    """The resource's name begins with it; `*` is just a character."""


class AclOperation(_Coded):
    """What is done to a resource."""

    UNKNOWN = 0
    ANY = 1
    """In filters only."""
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    """KIP-373, on a User: make tokens that this user owns."""
    DESCRIBE_TOKENS = 14
    """KIP-373, on a User: see the tokens that this user owns."""


class AclPermissionType(_Coded):
    """Whether an entry allows or denies."""

    UNKNOWN = 0
    ANY = 1
    """In filters only."""
    DENY = 2
    ALLOW = 3
