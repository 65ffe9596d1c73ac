"""DescribeAcls v0-3, CreateAcls v0-3, DeleteAcls v0-3.

v0 has no type of pattern: patterns are literal, as are those that its filters match. v2 is flexible, v3 allows the
resource type User and is no different on the wire.

A code of 0 (UNKNOWN) where there should be one closes the connection, as at a broker. Where a broker answers "unknown
server error" because a principal has no type, or because Any stands in an ACL, the answer is INVALID_REQUEST.

Source: KIP-140, KIP-290, KIP-373; kafka.server.AclApis, org.apache.kafka.common.requests.DescribeAclsRequest,
org.apache.kafka.common.requests.CreateAclsRequest, org.apache.kafka.common.requests.DeleteAclsRequest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from kio.schema.errors import ErrorCode

from kafka_dt.audit import EventType
from kafka_dt.audit.encoding import shortened
from kafka_dt.audit.recorder import Facts
from kafka_dt.identity.acls.authorizer import Authorizer
from kafka_dt.identity.acls.binding import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kafka_dt.identity.acls.filters import AccessControlEntryFilter, AclBindingFilter, ResourcePatternFilter
from kafka_dt.identity.acls.manager import AclManager, DeletedAcl
from kafka_dt.identity.acls.store import AclError, InvalidAcl
from kafka_dt.server.audited.requests import AnsweredRequest, AuditedTokens, RefusedEntries, RequestAudit, Told
from kafka_dt.server.errors import error_code
from kafka_dt.server.handlers import RequestContext, ServedApi
from kafka_dt.tokens import InvalidPrincipal, Principal
from kafka_dt_protocol import ApiKey, MalformedMessage, build, element_type

_DISABLED: Final = "There are no ACLs: authorizer.class.name is not set"
_PATTERN_TYPE_FIELDS: Final = ("pattern_type_filter", "resource_pattern_type", "pattern_type")


class AclHandlers:
    """Answers the three ACL APIs."""

    def __init__(self, acls: AclManager, authorizer: Authorizer) -> None:
        self._acls = acls
        self._authorizer = authorizer

    def served(self) -> tuple[ServedApi, ...]:
        """Give what serves each API."""
        return (
            ServedApi(ApiKey.DESCRIBE_ACLS, self.describe),
            ServedApi(ApiKey.CREATE_ACLS, self.create, RequestAudit(EventType.ACL_CREATED, _creations_told)),
            ServedApi(ApiKey.DELETE_ACLS, self.delete, RequestAudit(EventType.ACL_DELETED, _deletions_told)),
        )

    async def describe(self, context: RequestContext, body: Any) -> Any:
        """Answer a DescribeAcls."""
        kind = context.response_type
        _require_known([body])
        if not self._authorizer.allows_cluster(context.caller, AclOperation.DESCRIBE):
            return context.refusal(body, ErrorCode.cluster_authorization_failed)
        if not self._authorizer.enabled:
            return build(kind, error_code=ErrorCode.security_disabled, error_message=_DISABLED, resources=())
        try:
            found = await self._acls.describe(_filter(body))
        except AclError as error:
            return build(kind, error_code=error_code(error), error_message=str(error), resources=())
        return build(
            kind,
            error_code=ErrorCode.none,
            error_message=None,
            resources=_resources(element_type(kind, "resources"), found),
        )

    async def create(self, context: RequestContext, body: Any) -> Any:
        """Answer a CreateAcls."""
        _require_known(body.creations)
        kind = context.response_type
        result = element_type(kind, "results")
        refused = self._refused(context)
        if refused:
            return build(kind, results=(build(result, **refused),) * len(body.creations))
        asked = [_binding(creation) for creation in body.creations]
        made = iter(await self._acls.create([each for each in asked if isinstance(each, AclBinding)]))
        errors = [next(made) if isinstance(each, AclBinding) else each for each in asked]
        return build(kind, results=tuple(build(result, **_error(error)) for error in errors))

    async def delete(self, context: RequestContext, body: Any) -> Any:
        """Answer a DeleteAcls."""
        _require_known(body.filters)
        kind = context.response_type
        result = element_type(kind, "filter_results")
        refused = self._refused(context)
        if refused:
            return build(kind, filter_results=(build(result, matching_acls=(), **refused),) * len(body.filters))
        try:
            matched = await self._acls.delete([_filter(each) for each in body.filters])
        except AclError as error:
            unmade = build(result, matching_acls=(), **_error(error))
            return build(kind, filter_results=(unmade,) * len(body.filters))
        matching = element_type(result, "matching_acls")
        return build(
            kind,
            filter_results=tuple(
                build(result, matching_acls=tuple(_deleted(matching, each) for each in deleted), **_error(None))
                for deleted in matched
            ),
        )

    def _refused(self, context: RequestContext) -> dict[str, Any]:
        """Give the error of every part of a change that must not be made; empty if it may be."""
        if not self._authorizer.allows_cluster(context.caller, AclOperation.ALTER):
            return {"error_code": ErrorCode.cluster_authorization_failed, "error_message": None}
        if not self._authorizer.enabled:
            return {"error_code": ErrorCode.security_disabled, "error_message": _DISABLED}
        return {}


def _require_known(parts: Iterable[Any]) -> None:
    """Refuse what no client means.

    Raises:
        MalformedMessage: a code is 0.
    """
    for part in parts:
        codes = (_resource_code(part), _pattern_code(part), part.operation, part.permission_type)
        if 0 in codes:
            raise MalformedMessage("an ACL or filter has a code of 0")


def _resource_code(part: Any) -> int:
    code: int = part.resource_type if hasattr(part, "resource_type") else part.resource_type_filter
    return code


def _pattern_code(part: Any) -> int:
    """Give the code of the type of pattern; v0 knows only literal ones."""
    return next((getattr(part, name) for name in _PATTERN_TYPE_FIELDS if hasattr(part, name)), PatternType.LITERAL)


def _filter(part: Any) -> AclBindingFilter:
    return AclBindingFilter(
        ResourcePatternFilter(
            ResourceType(_resource_code(part)), part.resource_name_filter, PatternType(_pattern_code(part))
        ),
        AccessControlEntryFilter(
            part.principal_filter,
            part.host_filter,
            AclOperation(part.operation),
            AclPermissionType(part.permission_type),
        ),
    )


def _binding(creation: Any) -> AclBinding | InvalidAcl:
    try:
        principal = Principal.parse(creation.principal)
    except InvalidPrincipal as error:
        return InvalidAcl(str(error))
    return AclBinding(
        ResourcePattern(
            ResourceType(creation.resource_type), creation.resource_name, PatternType(_pattern_code(creation))
        ),
        AccessControlEntry(
            principal, creation.host, AclOperation(creation.operation), AclPermissionType(creation.permission_type)
        ),
    )


def _resources(resource: Any, bindings: Iterable[AclBinding]) -> tuple[Any, ...]:
    by_pattern: dict[ResourcePattern, list[AccessControlEntry]] = {}
    for binding in bindings:
        by_pattern.setdefault(binding.pattern, []).append(binding.entry)
    description = element_type(resource, "acls")
    return tuple(
        build(
            resource,
            resource_type=pattern.resource_type,
            resource_name=pattern.name,
            pattern_type=pattern.pattern_type,
            acls=tuple(build(description, **_entry(entry)) for entry in entries),
        )
        for pattern, entries in by_pattern.items()
    )


def _deleted(matching: Any, deleted: DeletedAcl) -> Any:
    pattern = deleted.binding.pattern
    return build(
        matching,
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        **_entry(deleted.binding.entry),
        **_error(deleted.error),
    )


def _entry(entry: AccessControlEntry) -> dict[str, Any]:
    return {
        "principal": str(entry.principal),
        "host": entry.host,
        "operation": entry.operation,
        "permission_type": entry.permission_type,
    }


def _error(error: AclError | None) -> dict[str, Any]:
    if error is None:
        return {"error_code": ErrorCode.none, "error_message": None}
    return {"error_code": error_code(error), "error_message": str(error)}


def _creations_told(_: AuditedTokens, request: AnsweredRequest) -> Told:
    refused = RefusedEntries("acl")
    for creation, result in zip(request.body.creations, request.answer.results, strict=True):
        if result.error_code is ErrorCode.none:
            yield ErrorCode.none, Facts(acl=acl_text(creation))
        else:
            refused.add(result.error_code, partial(acl_text, creation, shortened))
    yield from refused.told()


def _deletions_told(_: AuditedTokens, request: AnsweredRequest) -> Told:
    refused = RefusedEntries("acl")
    for asked, result in zip(request.body.filters, request.answer.filter_results, strict=True):
        if result.error_code is not ErrorCode.none:
            refused.add(result.error_code, partial(filter_text, asked, shortened))
        for deleted in result.matching_acls:
            if deleted.error_code is ErrorCode.none:
                yield ErrorCode.none, Facts(acl=acl_text(deleted))
            else:
                refused.add(deleted.error_code, partial(acl_text, deleted, shortened))
    yield from refused.told()


def acl_text(acl: Any, shorten: Callable[[str], str] = str) -> str:
    """Write an ACL as one line of text: `ALLOW Describe of LITERAL Cluster:'kafka-cluster' to User:alice from *`."""
    return _text(acl, acl.resource_type, (acl.resource_name, acl.principal, acl.host), shorten)


def filter_text(asked: Any, shorten: Callable[[str], str] = str) -> str:
    """Write a filter of DeleteAcls as `acl_text` writes an ACL; what it leaves open is `(any)`."""
    chosen = (asked.resource_name_filter, asked.principal_filter, asked.host_filter)
    return _text(asked, asked.resource_type_filter, chosen, shorten)


def _text(part: Any, resource_type: int, chosen: Iterable[str | None], shorten: Callable[[str], str]) -> str:
    resource, principal, host = (None if each is None else shorten(each) for each in chosen)
    kind, pattern_type = ResourceType(resource_type), PatternType(_pattern_code(part))
    what = f"{pattern_type.name} {kind.text}:(any)"
    if resource is not None:
        what = str(ResourcePattern(kind, resource, pattern_type))
    operation, permission = AclOperation(part.operation), AclPermissionType(part.permission_type)
    return f"{permission.name} {operation.text} of {what} to {_or_any(principal)} from {_or_any(host)}"


def _or_any(text: str | None) -> str:
    return "(any)" if text is None else text
