"""The ACLs of the cluster in memory, indexed for what requests ask: what is said about this resource.

The cache is the listener of the store (`put`), and nothing else fills it. A lookup costs one access for the exact name
and one for each different length of the prefixed patterns of its type up to that of the name, however many patterns
there are.

Source: kafka.security.authorizer.AclAuthorizer (updateCache, matchingAcls).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kafka_dt.identity.acls.binding import (
    ANY_NAME,
    PATTERN_TYPES,
    AclBinding,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kafka_dt.identity.acls.store import Entries


class AclCache:
    """What this process knows of the ACLs. For one event loop."""

    def __init__(self) -> None:
        self._literal: dict[ResourceType, dict[str, Entries]] = {kind: {} for kind in ResourceType}
        self._prefixed: dict[ResourceType, dict[str, Entries]] = {kind: {} for kind in ResourceType}
        self._lengths: dict[ResourceType, Counter[int]] = {kind: Counter() for kind in ResourceType}
        self._in_order: dict[ResourceType, tuple[int, ...]] = dict.fromkeys(ResourceType, ())

    def __len__(self) -> int:
        """Return how many patterns have entries."""
        return len(self.patterns())

    def __iter__(self) -> Iterator[AclBinding]:
        """Give every ACL."""
        for pattern in self.patterns():
            for entry in self._entries(pattern.pattern_type, pattern.resource_type).get(pattern.name, ()):
                yield AclBinding(pattern, entry)

    def patterns(self) -> list[ResourcePattern]:
        """Give every pattern that has entries."""
        return [
            ResourcePattern(resource_type, name, pattern_type)
            for pattern_type in PATTERN_TYPES
            for resource_type in ResourceType
            for name in self._entries(pattern_type, resource_type)
        ]

    def put(self, pattern: ResourcePattern, entries: Entries) -> None:
        """Take over what is said about a pattern; nothing = forget it."""
        held = self._entries(pattern.pattern_type, pattern.resource_type)
        known = pattern.name in held
        if entries:
            held[pattern.name] = entries
        elif known:
            del held[pattern.name]
        if pattern.pattern_type is PatternType.PREFIXED and known != bool(entries):
            self._count_length(pattern, 1 if entries else -1)

    def of_all(self, resource_type: ResourceType) -> Entries:
        """Give what is said about every resource of a type (the literal pattern `*`)."""
        return self._literal[resource_type].get(ANY_NAME, ())

    def of_name(self, resource_type: ResourceType, name: str) -> Sequence[Entries]:
        """Give what is said about a resource by its name, exactly or by a prefix, and not about all of its type.

        Returns:
            The entries of each pattern: the same object for every name that falls under the pattern.
        """
        literal = self._literal[resource_type].get(name) if name != ANY_NAME else None
        found = [literal] if literal else []
        prefixed = self._prefixed[resource_type]
        for length in self._in_order[resource_type]:
            if length > len(name):
                break
            if entries := prefixed.get(name[:length]):
                found.append(entries)
        return found

    def _entries(self, pattern_type: PatternType, resource_type: ResourceType) -> dict[str, Entries]:
        return (self._prefixed if pattern_type is PatternType.PREFIXED else self._literal)[resource_type]

    def _count_length(self, pattern: ResourcePattern, change: int) -> None:
        lengths = self._lengths[pattern.resource_type]
        lengths[len(pattern.name)] += change
        if not lengths[len(pattern.name)]:
            del lengths[len(pattern.name)]
        if len(lengths) != len(self._in_order[pattern.resource_type]):
            self._in_order[pattern.resource_type] = tuple(sorted(lengths))
