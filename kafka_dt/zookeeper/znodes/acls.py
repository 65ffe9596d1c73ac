"""The znodes of ACLs: where each is, and what its bytes mean.

The name of a resource stands in the path as it is, so a name that ZooKeeper does not take, or with a slash, cannot have
ACLs of its own. Literal and prefixed patterns lie in two trees, and their changes are announced in two forms.

Source: kafka.zk.ZkData (LiteralAclStore, ExtendedAclStore, ResourceZNode and the change stores),
org.apache.kafka.security.authorizer.AclEntry.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from kafka_dt.identity.acls.binding import (
    RESOURCE_TYPES,
    AccessControlEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kafka_dt.identity.acls.store import Entries
from kafka_dt.tokens.principal import InvalidPrincipal, Principal
from kafka_dt.zookeeper.errors import InvalidZnode
from kafka_dt.zookeeper.znodes import documents
from kafka_dt.zookeeper.znodes.kafka import is_node_name

MAX_RESOURCE_NAME_LENGTH: Final = 32767
"""What a string on the wire can hold."""


def can_be_resource(name: str) -> bool:
    """Tell whether a name can stand in a path."""
    return is_node_name(name, MAX_RESOURCE_NAME_LENGTH)


class AclZnode:
    """`/kafka-acl/<type>/<name>` and `/kafka-acl-extended/prefixed/<type>/<name>`: the ACLs of one pattern."""

    ROOTS: Final = {PatternType.LITERAL: "/kafka-acl", PatternType.PREFIXED: "/kafka-acl-extended/prefixed"}
    VERSION: Final = 1

    @classmethod
    def parent(cls, pattern_type: PatternType, resource_type: ResourceType) -> str:
        """Return the path below which the patterns of a type are."""
        return f"{cls.ROOTS[pattern_type]}/{resource_type.text}"

    @classmethod
    def path(cls, pattern: ResourcePattern) -> str:
        """Return the path of a pattern; `can_be_resource` must hold for its name."""
        return f"{cls.parent(pattern.pattern_type, pattern.resource_type)}/{pattern.name}"

    @classmethod
    def encode(cls, entries: Entries) -> bytes:
        """Write the entries of a pattern, keys in the order in which a broker's Java has them."""
        return documents.write({"acls": [_write(entry) for entry in entries], "version": cls.VERSION})

    @classmethod
    def decode(cls, data: bytes) -> Entries:
        """Read the entries of a pattern, equal ones once; a znode without data has none."""
        if not data:
            return ()
        document = documents.read(data)
        if documents.integer(document, "version") != cls.VERSION:
            raise InvalidZnode("this version of ACLs is not known")
        acls = document.get("acls")
        if not isinstance(acls, list):
            raise InvalidZnode("acls is missing or not a list")
        return tuple(dict.fromkeys(_read(acl) for acl in acls))


class LiteralAclChangeZnode:
    """`/kafka-acl-changes/acl_changes_<number>`: which literal pattern was changed, `USER:User:alice`."""

    PATTERN_TYPE: ClassVar = PatternType.LITERAL
    PARENT: ClassVar = "/kafka-acl-changes"
    PREFIX: ClassVar = f"{PARENT}/acl_changes_"

    @staticmethod
    def encode(pattern: ResourcePattern) -> bytes:
        """Write type and name."""
        return f"{pattern.resource_type.name}:{pattern.name}".encode()

    @staticmethod
    def decode(data: bytes) -> ResourcePattern:
        """Read which pattern was changed."""
        kind, _, name = data.decode("utf-8", "replace").partition(":")
        return _pattern(kind, name, PatternType.LITERAL)


class ExtendedAclChangeZnode:
    """`/kafka-acl-extended-changes/acl_changes_<number>`: which prefixed pattern was changed, as JSON."""

    PATTERN_TYPE: ClassVar = PatternType.PREFIXED
    PARENT: ClassVar = "/kafka-acl-extended-changes"
    PREFIX: ClassVar = f"{PARENT}/acl_changes_"
    VERSION: Final = 1

    @classmethod
    def encode(cls, pattern: ResourcePattern) -> bytes:
        """Write type, name and kind of pattern."""
        return documents.write(
            {
                "version": cls.VERSION,
                "resourceType": pattern.resource_type.name,
                "name": pattern.name,
                "patternType": pattern.pattern_type.name,
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> ResourcePattern:
        """Read which pattern was changed."""
        document = documents.read(data)
        if documents.integer(document, "version") > cls.VERSION:
            raise InvalidZnode("this version of an ACL change is not known")
        if documents.text(document, "patternType").upper() != PatternType.PREFIXED.name:
            raise InvalidZnode("a change of this kind of pattern is not known")
        kind, name = documents.text(document, "resourceType"), documents.text(document, "name")
        return _pattern(kind, name, PatternType.PREFIXED)


def _pattern(kind: str, name: str, pattern_type: PatternType) -> ResourcePattern:
    resource_type = next((each for each in RESOURCE_TYPES if each.name == kind.upper()), None)
    if resource_type is None or not can_be_resource(name):
        raise InvalidZnode("a change of ACLs names no pattern")
    return ResourcePattern(resource_type, name, pattern_type)


def _write(entry: AccessControlEntry) -> dict[str, str]:
    return {
        "principal": str(entry.principal),
        "permissionType": entry.permission_type.text,
        "host": entry.host,
        "operation": entry.operation.text,
    }


def _read(acl: Any) -> AccessControlEntry:
    if not isinstance(acl, dict):
        raise InvalidZnode("an ACL is not a JSON object")
    operation = AclOperation.of_name(documents.text(acl, "operation"))
    permission_type = AclPermissionType.of_name(documents.text(acl, "permissionType"))
    if AclOperation.ANY is operation or AclPermissionType.ANY is permission_type:
        raise InvalidZnode("an ACL says Any, which only filters may")
    try:
        principal = Principal.parse(documents.text(acl, "principal"))
    except InvalidPrincipal:
        raise InvalidZnode("the principal of an ACL is not of the form Type:name") from None
    return AccessControlEntry(principal, documents.text(acl, "host"), operation, permission_type)
