"""An ACL, or a filter of ACLs, as one line of text for audit events.

    ALLOW Describe of LITERAL Cluster:'kafka-cluster' to User:alice from *

Made of the fields of requests and answers, which have them under a few names. What a filter leaves open is `(any)`.

Source: KIP-140, KIP-290; Kafka's CreateAclsRequest, DeleteAclsRequest, DeleteAclsResponse.
"""

from __future__ import annotations

from typing import Any

from kafka_dt.security.acls import AclOperation, AclPermissionType, PatternType, ResourcePattern, ResourceType


def acl_text(acl: Any) -> str:
    """Write an ACL.

    Args:
        acl: a creation of CreateAcls, or a match of DeleteAcls' answer.
    """
    return _text(acl, acl.resource_type, acl.resource_name, acl.principal, acl.host)


def filter_text(asked: Any) -> str:
    """Write a filter of DeleteAcls."""
    return _text(
        asked, asked.resource_type_filter, asked.resource_name_filter, asked.principal_filter, asked.host_filter
    )


def _text(part: Any, resource_type: int, name: str | None, principal: str | None, host: str | None) -> str:
    kind, pattern_type = ResourceType(resource_type), PatternType(_pattern_type(part))
    what = f"{pattern_type.name} {kind.text}:(any)"
    if name is not None:
        what = str(ResourcePattern(kind, name, pattern_type))
    operation, permission = AclOperation(part.operation), AclPermissionType(part.permission_type)
    return f"{permission.name} {operation.text} of {what} to {_or_any(principal)} from {_or_any(host)}"


def _pattern_type(part: Any) -> int:
    """Give the code of the type of pattern; v0 knows only literal ones."""
    for name in ("resource_pattern_type", "pattern_type_filter", "pattern_type"):
        if hasattr(part, name):
            return int(getattr(part, name))
    return PatternType.LITERAL


def _or_any(text: str | None) -> str:
    return "(any)" if text is None else text
