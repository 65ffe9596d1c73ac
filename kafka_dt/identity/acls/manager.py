"""The rules of ACLs themselves: what a valid one is, how they are created, listed and deleted.

The caller checks whether a principal may do so (ALTER or DESCRIBE on the cluster). A change reads the entries of a
pattern as they are in the store and writes them guarded by their version; when another change was first, it begins
again. To create an ACL that exists, or delete one that does not, is no error and writes nothing.

Source: KIP-140, KIP-290; kafka.security.authorizer.AclAuthorizer (createAcls, deleteAcls, acls), kafka.server.AclApis.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kafka_dt.identity.acls.binding import (
    CLUSTER_NAME,
    PATTERN_TYPES,
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePattern,
    ResourceType,
)
from kafka_dt.identity.acls.cache import AclCache
from kafka_dt.identity.acls.filters import AclBindingFilter, FilterIndex
from kafka_dt.identity.acls.store import AclConflict, AclError, AclStore, AclStoreUnavailable, Entries, InvalidAcl
from kafka_dt.tokens.sharing import KeyedLocks

MAX_RETRIES: Final = 10
RETRY_SECONDS: Final = 0.1
COMPARISONS_A_TURN: Final = 5_000
"""How many ACLs are compared with one filter before other tasks have their turn: some milliseconds of work."""
PATTERNS_A_TURN: Final = 500
"""How many patterns are looked for among all filters of a request before that."""


@dataclass(frozen=True, slots=True)
class DeletedAcl:
    """An ACL that a filter matched."""

    binding: AclBinding
    error: AclError | None
    """Why it could not be deleted, if so."""


class AclManager:
    """Creates, lists and deletes ACLs; the store reports to the cache from now on."""

    def __init__(self, store: AclStore, cache: AclCache) -> None:
        self._store = store
        self._cache = cache
        self._locks = KeyedLocks()
        store.on_change(cache.put)

    async def start(self) -> None:
        """Fill the cache.

        Raises:
            AclStoreUnavailable: the store was cut off.
        """
        await self._store.load()

    async def until_current(self) -> None:
        """Return when the cache is new enough to decide by.

        Raises:
            AclStoreUnavailable: it is too old.
        """
        await self._store.until_current()

    async def describe(self, matching: AclBindingFilter) -> list[AclBinding]:
        """List ACLs, every change acknowledged anywhere before included.

        Raises:
            AclStoreUnavailable: whether there are others cannot be found out.
        """
        await self._store.catch_up()
        found: list[AclBinding] = []
        for number, binding in enumerate(self._cache, start=1):
            if matching.matches(binding) and not binding.entry.unknown:
                found.append(binding)
            if number % COMPARISONS_A_TURN == 0:
                await asyncio.sleep(0)
        return found

    async def create(self, bindings: Sequence[AclBinding]) -> list[AclError | None]:
        """Create ACLs; gives for each None, or why it was not created."""
        results: list[AclError | None] = [self._invalid(binding) for binding in bindings]
        valid: dict[ResourcePattern, list[int]] = {}
        for number, binding in enumerate(bindings):
            if results[number] is None:
                valid.setdefault(binding.pattern, []).append(number)
        for pattern, numbers in valid.items():
            error = await self._add(pattern, tuple(bindings[number].entry for number in numbers))
            for number in numbers:
                results[number] = error
        return results

    async def delete(self, filters: Sequence[AclBindingFilter]) -> list[list[DeletedAcl]]:
        """Delete ACLs; gives those that each filter matched. One that several match stands with the first of them.

        Raises:
            AclStoreUnavailable: which ones match cannot be found out; nothing was done.
        """
        await self._store.catch_up()
        results: list[list[DeletedAcl]] = [[] for _ in filters]
        index = FilterIndex(filters)
        for pattern in await self._concerned(index):
            matched: dict[AclBinding, int] = {}
            error = await self._delete_from(pattern, index, matched)
            for binding, number in matched.items():
                results[number].append(DeletedAcl(binding, error))
        return results

    async def _add(self, pattern: ResourcePattern, new: Entries) -> AclError | None:
        try:
            await self._update(pattern, lambda entries: tuple(dict.fromkeys(entries + new)))
        except AclError as error:
            return error
        return None

    async def _delete_from(
        self, pattern: ResourcePattern, filters: FilterIndex, matched: dict[AclBinding, int]
    ) -> AclError | None:
        """Delete from one pattern; what was matched, and by which filter, is entered in `matched`."""

        def without(entries: Entries) -> Entries:
            matched.clear()
            for entry in entries:
                if entry.unknown:
                    continue  # an answer could not say what was deleted
                binding = AclBinding(pattern, entry)
                by = filters.first(binding)
                if by is not None:
                    matched[binding] = by
            return tuple(entry for entry in entries if AclBinding(pattern, entry) not in matched)

        try:
            await self._update(pattern, without)
        except AclError as error:
            return error
        return None

    async def _concerned(self, filters: FilterIndex) -> list[ResourcePattern]:
        """Give the patterns that a filter may match; lets other tasks have their turn meanwhile."""
        known: list[ResourcePattern] = []
        for number, pattern in enumerate(self._cache.patterns(), start=1):
            if filters.concerns(pattern):
                known.append(pattern)
            if number % PATTERNS_A_TURN == 0:
                await asyncio.sleep(0)
        named = [pattern for pattern in filters.named() if self._store.can_hold(pattern.name)]
        return list(dict.fromkeys(known + named))

    async def _update(self, pattern: ResourcePattern, change: Callable[[Entries], Entries]) -> None:
        async with self._locks.hold(str(pattern)):
            for _ in range(MAX_RETRIES + 1):
                stored = await self._store.read(pattern)
                entries = change(stored.entries)
                if entries == stored.entries:
                    return
                try:
                    await self._store.write(pattern, entries, stored.version)
                except AclConflict:
                    await asyncio.sleep(RETRY_SECONDS)
                else:
                    return
        raise AclStoreUnavailable(f"the ACLs of {pattern} keep changing")

    def _invalid(self, binding: AclBinding) -> InvalidAcl | None:
        reason = _invalid_reason(binding)
        if reason is None and not self._store.can_hold(binding.pattern.name):
            reason = f"The store of ACLs cannot hold a resource name like {binding.pattern.name[:100]!r}."
        return None if reason is None else InvalidAcl(reason)


def _invalid_reason(binding: AclBinding) -> str | None:
    pattern, entry = binding.pattern, binding.entry
    if pattern.resource_type is ResourceType.CLUSTER and pattern.name != CLUSTER_NAME:
        return f"The only resource of type CLUSTER is {CLUSTER_NAME}."
    if not pattern.name:
        return "The resource name is empty."
    if pattern.resource_type <= ResourceType.ANY or pattern.pattern_type not in PATTERN_TYPES:
        return "The ACL does not name one type of resource and one type of pattern."
    if entry.operation <= AclOperation.ANY or entry.permission_type <= AclPermissionType.ANY:
        return "The ACL does not name one operation and one permission type."
    return None
