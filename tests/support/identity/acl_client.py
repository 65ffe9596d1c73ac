"""ACLs over a raw connection, in the words of the tests.

with RawConnection(address) as admin:
    admin.login_plain("admin", "...")
    assert create_acls(admin, Acl("alice", CREATE_TOKENS, USER, "User:bob")) == [0]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafka_dt.identity.acls.binding import AclOperation, AclPermissionType, PatternType, ResourceType
from kafka_dt_protocol.api.responses import element_type
from tests.support.protocol.raw import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS, RawConnection, request_type

NEWEST = 3


@dataclass(frozen=True, slots=True)
class Acl:
    """An ACL; `user` is the name of a User, or a whole principal if there is a colon in it."""

    user: str
    operation: int
    resource_type: int
    name: str
    permission: int = AclPermissionType.ALLOW
    pattern: int = PatternType.LITERAL
    host: str = "*"

    @property
    def principal(self) -> str:
        """As ACLs have it."""
        return self.user if ":" in self.user else f"User:{self.user}"


@dataclass(frozen=True, slots=True)
class BareAcl(Acl):
    """An ACL for a principal without a type, which cannot be."""

    @property
    def principal(self) -> str:
        """As it should not be."""
        return self.user


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of ACLs."""

    resource_type: int = ResourceType.ANY
    name: str | None = None
    pattern: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = AclOperation.ANY
    permission: int = AclPermissionType.ANY


def filter_of(acl: Acl) -> Filter:
    """A filter that matches exactly one ACL."""
    return Filter(acl.resource_type, acl.name, acl.pattern, acl.principal, acl.host, acl.operation, acl.permission)


def create_acls(connection: RawConnection, *acls: Acl, version: int = NEWEST) -> list[int]:
    """CreateAcls; the error of each."""
    connection_answer = ask_to_create(connection, *acls, version=version)
    return [each.error_code.value for each in connection_answer.results]


def ask_to_create(connection: RawConnection, *acls: Acl, version: int = NEWEST) -> Any:
    """CreateAcls; the whole answer."""
    creation = _element(CREATE_ACLS, version, "creations")
    creations = tuple(
        _fitting(
            creation,
            resource_type=acl.resource_type,
            resource_name=acl.name,
            resource_pattern_type=acl.pattern,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission,
        )
        for acl in acls
    )
    return connection.ask(CREATE_ACLS, version, creations=creations)


def delete_acls(connection: RawConnection, *filters: Filter, version: int = NEWEST) -> list[tuple[int, set[Acl]]]:
    """DeleteAcls; the error of each filter, and what it matched."""
    kind = _element(DELETE_ACLS, version, "filters")
    answer = connection.ask(DELETE_ACLS, version, filters=tuple(_fitting(kind, **_fields(each)) for each in filters))
    return [
        (
            result.error_code.value,
            {_acl(each, each) for each in result.matching_acls if not each.error_code.value},
        )
        for result in answer.filter_results
    ]


def describe_acls(connection: RawConnection, wanted: Filter, version: int = NEWEST) -> tuple[int, set[Acl]]:
    """DescribeAcls; its error, and what was found."""
    kind = request_type(DESCRIBE_ACLS, version)
    fields = {name: value for name, value in _fields(wanted).items() if name in kind.__dataclass_fields__}
    answer = connection.ask(DESCRIBE_ACLS, version, **fields)
    found = {_acl(resource, each) for resource in answer.resources for each in resource.acls}
    return answer.error_code.value, found


def _acl(resource: Any, entry: Any) -> Acl:
    return Acl(
        entry.principal,
        entry.operation,
        resource.resource_type,
        resource.resource_name,
        entry.permission_type,
        getattr(resource, "pattern_type", PatternType.LITERAL),
        entry.host,
    )


def _fields(wanted: Filter) -> dict[str, Any]:
    return {
        "resource_type_filter": wanted.resource_type,
        "resource_name_filter": wanted.name,
        "pattern_type_filter": wanted.pattern,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission,
    }


def _element(api_key: int, version: int, field: str) -> Any:
    return element_type(request_type(api_key, version), field)


def _fitting(kind: Any, **values: Any) -> Any:
    return kind(**{name: value for name, value in values.items() if name in kind.__dataclass_fields__})
