"""Which ACLs are meant when they are listed or deleted.

Source: KIP-140, KIP-290; org.apache.kafka.common.acl.AclBindingFilter,
org.apache.kafka.common.acl.AccessControlEntryFilter, org.apache.kafka.common.resource.ResourcePatternFilter.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

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
    """As text, compared exactly; None = any. `User:*` means only the entries for every user."""
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
    """The filters of one request, in their order, so that an ACL need not be compared with each of them.

    To find the first filter that matches takes some accesses of dictionaries, however many filters there are. Where
    filters ask what a resource falls under (MATCH), the smallest of their numbers is taken for a prefixed pattern.
    """

    def __init__(self, filters: Sequence[AclBindingFilter]) -> None:
        by_entry: dict[_EntryKey, list[tuple[int, ResourcePatternFilter]]] = {}
        for number, each in enumerate(filters):
            entry = each.entry
            key = (entry.principal, entry.host, entry.operation, entry.permission_type)
            by_entry.setdefault(key, []).append((number, each.pattern))
        self._by_entry = {key: _FirstByPattern(numbered) for key, numbered in by_entry.items()}
        self._any_entry = _FirstByPattern([(number, each.pattern) for number, each in enumerate(filters)])
        self._forms = {_form(key) for key in by_entry}
        self._named = dict.fromkeys(pattern for each in filters for pattern in each.pattern.named())

    def named(self) -> Iterable[ResourcePattern]:
        """Give the patterns that filters name, each once."""
        return self._named

    def concerns(self, pattern: ResourcePattern) -> bool:
        """Say whether the pattern of any filter matches."""
        return self._any_entry.first(pattern) is not None

    def first(self, binding: AclBinding) -> int | None:
        """Give the number of the first filter that matches."""
        entry = binding.entry
        asked = (str(entry.principal), entry.host, entry.operation, entry.permission_type)
        found = [
            number
            for form in self._forms
            if (patterns := self._by_entry.get(_generalised(asked, form))) is not None
            and (number := patterns.first(binding.pattern)) is not None
        ]
        return min(found, default=None)


_EntryKey: TypeAlias = tuple[str | None, str | None, AclOperation, AclPermissionType]
_Form: TypeAlias = tuple[bool, bool, bool, bool]


def _form(key: _EntryKey) -> _Form:
    """Say which fields of a filter take any value."""
    return key[0] is None, key[1] is None, key[2] is AclOperation.ANY, key[3] is AclPermissionType.ANY


def _generalised(key: _EntryKey, form: _Form) -> _EntryKey:
    """Give the one filter of a form that can match an entry."""
    return (
        None if form[0] else key[0],
        None if form[1] else key[1],
        AclOperation.ANY if form[2] else key[2],
        AclPermissionType.ANY if form[3] else key[3],
    )


class _FirstByPattern:
    """The smallest number among filters of patterns that match a pattern; the numbers grow."""

    __slots__ = ("_exact", "_falling_under")

    def __init__(self, numbered: Sequence[tuple[int, ResourcePatternFilter]]) -> None:
        self._exact: dict[tuple[ResourceType, str | None, PatternType], int] = {}
        named: dict[ResourceType, dict[str, int]] = {}
        for number, each in numbered:
            self._exact.setdefault((each.resource_type, each.name, each.pattern_type), number)
            if each.pattern_type is PatternType.MATCH and each.name is not None:
                named.setdefault(each.resource_type, {}).setdefault(each.name, number)
        self._falling_under = {kind: _FirstByPrefix(numbers) for kind, numbers in named.items()}

    def first(self, pattern: ResourcePattern) -> int | None:
        kinds = (ResourceType.ANY, pattern.resource_type)
        forms = (PatternType.ANY, PatternType.MATCH, pattern.pattern_type)
        found = [self._exact.get(key) for key in product(kinds, (None, pattern.name), forms)]
        if pattern.pattern_type is PatternType.PREFIXED or pattern.name == ANY_NAME:
            prefix = pattern.name if pattern.pattern_type is PatternType.PREFIXED else ""
            found += [self._falling_under[kind].first(prefix) for kind in kinds if kind in self._falling_under]
        return min((number for number in found if number is not None), default=None)


class _FirstByPrefix:
    """The smallest number among names that begin with a prefix."""

    __slots__ = ("_names", "_numbers")

    def __init__(self, numbers: Mapping[str, int]) -> None:
        self._names = sorted(numbers)
        self._numbers = [numbers[name] for name in self._names]

    def first(self, prefix: str) -> int | None:
        start = bisect_left(self._names, prefix)
        end = bisect_right(self._names, prefix, start, key=lambda name: name[: len(prefix)])
        return min(self._numbers[start:end], default=None)


def _falls_under(name: str, pattern: ResourcePattern) -> bool:
    if pattern.pattern_type is PatternType.PREFIXED:
        return name.startswith(pattern.name)
    return pattern.name == ANY_NAME
