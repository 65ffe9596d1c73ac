"""Which ACLs are meant when they are listed or deleted.

Source: KIP-140, KIP-290; org.apache.kafka.common.acl.AclBindingFilter, AccessControlEntryFilter,
org.apache.kafka.common.resource.ResourcePatternFilter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kafka_dt.identity.acls.binding import (
    ANY_NAME,
    PATTERN_TYPES,
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)


@dataclass(frozen=True, slots=True)
class ResourcePatternFilter:
    """Matches patterns."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    """None = any."""
    pattern_type: PatternType = PatternType.ANY

    def matches(self, pattern: ResourcePattern) -> bool:
        """Say whether a pattern is meant."""
        if self.resource_type not in (ResourceType.ANY, pattern.resource_type):
            return False
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, pattern.pattern_type):
            return False
        if self.name is None or self.name == pattern.name:
            return True
        return self.pattern_type is PatternType.MATCH and _falls_under(self.name, pattern)

    def named(self) -> tuple[ResourcePattern, ...]:
        """Give the only patterns that can match, where the filter names them; else nothing."""
        if self.name is None or self.resource_type <= ResourceType.ANY:
            return ()
        if self.pattern_type is PatternType.ANY:
            return tuple(ResourcePattern(self.resource_type, self.name, kind) for kind in PATTERN_TYPES)
        if self.pattern_type in PATTERN_TYPES:
            return (ResourcePattern(self.resource_type, self.name, self.pattern_type),)
        return ()


@dataclass(frozen=True, slots=True)
class AccessControlEntryFilter:
    """Matches entries."""

    principal: str | None = None
    """As text, compared exactly; None = any. `User:*` means only the entries for everybody."""
    host: str | None = None
    """Compared exactly; None = any."""
    operation: AclOperation = AclOperation.ANY
    permission_type: AclPermissionType = AclPermissionType.ANY

    def matches(self, entry: AccessControlEntry) -> bool:
        """Say whether an entry is meant."""
        return (
            (self.principal is None or self.principal == str(entry.principal))
            and (self.host is None or self.host == entry.host)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission_type in (AclPermissionType.ANY, entry.permission_type)
        )


@dataclass(frozen=True, slots=True)
class AclBindingFilter:
    """Matches ACLs."""

    pattern: ResourcePatternFilter = ResourcePatternFilter()
    entry: AccessControlEntryFilter = AccessControlEntryFilter()

    def matches(self, binding: AclBinding) -> bool:
        """Say whether an ACL is meant."""
        return self.pattern.matches(binding.pattern) and self.entry.matches(binding.entry)


class FilterIndex:
    """The filters of one request, so that a pattern need not be compared with each of them.

    Filters that name their patterns, of which there may be thousands, are found by the pattern. The others are open.

    Args:
        filters: in the order of the request.
    """

    def __init__(self, filters: Sequence[AclBindingFilter]) -> None:
        self._filters = filters
        self._by_pattern: dict[ResourcePattern, list[int]] = {}
        self._open: list[int] = []
        for number, each in enumerate(filters):
            named = each.pattern.named()
            for pattern in named:
                self._by_pattern.setdefault(pattern, []).append(number)
            if not named:
                self._open.append(number)

    @property
    def open_filters(self) -> int:
        """How many filters each pattern is compared with."""
        return len(self._open)

    def named(self) -> Iterable[ResourcePattern]:
        """Give the patterns that filters name, each once."""
        return self._by_pattern.keys()

    def matching(self, pattern: ResourcePattern) -> list[int]:
        """Give the numbers of the filters whose pattern matches, in the order of the request."""
        found = [number for number in self._open if self._filters[number].pattern.matches(pattern)]
        return sorted(found + self._by_pattern.get(pattern, []))


def _falls_under(name: str, pattern: ResourcePattern) -> bool:
    if pattern.pattern_type is PatternType.PREFIXED:
        return name.startswith(pattern.name)
    return pattern.name == ANY_NAME
