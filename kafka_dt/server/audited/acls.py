"""An ACL, or a filter of ACLs, as one line of text for audit events.

    ALLOW Describe of LITERAL Cluster:'kafka-cluster' to User:alice from *

Made of the fields of requests and answers, which have them under a few names. What a filter leaves open is `(any)`.

Source: KIP-140, KIP-290; org.apache.kafka.common.requests.CreateAclsRequest,
org.apache.kafka.common.requests.DeleteAclsRequest, org.apache.kafka.common.requests.DeleteAclsResponse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kafka_dt.identity.acls.binding import AclOperation, AclPermissionType, PatternType, ResourcePattern, ResourceType


def acl_text(acl: Any, shorten: Callable[[str], str] = str) -> str:
    """Write an ACL.

    Args:
        acl: a creation of CreateAcls, or a match of DeleteAcls' answer.
        shorten: cuts the names in it, before anything is made of them.
    """
    names = _Names(*(shorten(each) for each in (acl.resource_name, acl.principal, acl.host)))
    return _text(acl, acl.resource_type, names)


def filter_text(asked: Any, shorten: Callable[[str], str] = str) -> str:
    """Write a filter of DeleteAcls.

    Args:
        asked: the filter.
        shorten: as for `acl_text`.
    """
    texts = (asked.resource_name_filter, asked.principal_filter, asked.host_filter)
    names = _Names(*(None if each is None else shorten(each) for each in texts))
    return _text(asked, asked.resource_type_filter, names)


class _Names(NamedTuple):
    """What clients choose; None is left open."""

    resource: str | None
    principal: str | None
    host: str | None


def _text(part: Any, resource_type: int, names: _Names) -> str:
    kind, pattern_type = ResourceType(resource_type), PatternType(_pattern_type(part))
    what = f"{pattern_type.name} {kind.text}:(any)"
    if names.resource is not None:
        what = str(ResourcePattern(kind, names.resource, pattern_type))
    operation, permission = AclOperation(part.operation), AclPermissionType(part.permission_type)
    return f"{permission.name} {operation.text} of {what} to {_or_any(names.principal)} from {_or_any(names.host)}"


def _pattern_type(part: Any) -> int:
    """Give the code of the type of pattern; v0 knows only literal ones."""
    for name in ("resource_pattern_type", "pattern_type_filter", "pattern_type"):
        if hasattr(part, name):
            return int(getattr(part, name))
    return PatternType.LITERAL


def _or_any(text: str | None) -> str:
    return "(any)" if text is None else text
