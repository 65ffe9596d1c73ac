"""Authorizers for tests, and ACLs in a few words.

acl(USER, "User:bob", "alice", AclOperation.CREATE_TOKENS)     # Allow, literal, from everywhere
"""

from __future__ import annotations

from collections.abc import Iterable

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
from kafka_dt.identity.acls.cache import AclCache
from kafka_dt.identity.acls.store import AclConflict, AclListener, AclStoreUnavailable, Entries, StoredAcls
from kafka_dt.tokens import Principal
from kafka_dt.zookeeper.znodes.acls import can_be_resource

ADMIN = Principal.user("admin")
"""The super user of `authorizer`."""


def acl(
    resource_type: ResourceType,
    name: str,
    user: str,
    operation: AclOperation,
    *,
    permission: AclPermissionType = AclPermissionType.ALLOW,
    pattern: PatternType = PatternType.LITERAL,
    host: str = "*",
) -> AclBinding:
    """Make an ACL about `User:<user>`."""
    entry = AccessControlEntry(Principal.user(user), host, operation, permission)
    return AclBinding(ResourcePattern(resource_type, name, pattern), entry)


def cache_of(bindings: Iterable[AclBinding]) -> AclCache:
    """Make a cache that holds ACLs."""
    by_pattern: dict[ResourcePattern, Entries] = {}
    for binding in bindings:
        by_pattern[binding.pattern] = (*by_pattern.get(binding.pattern, ()), binding.entry)
    cache = AclCache()
    for pattern, entries in by_pattern.items():
        cache.put(pattern, entries)
    return cache


def authorizer(
    *bindings: AclBinding, allow_everyone: bool = False, enabled: bool = True, revoke_any: bool = True
) -> Authorizer:
    """Make an authorizer over ACLs that do not change, whose super user is `ADMIN`."""
    return Authorizer(
        cache_of(bindings),
        enabled=enabled,
        super_users=frozenset({ADMIN}),
        allow_everyone=allow_everyone,
        super_users_revoke_any=revoke_any,
    )


class MemoryAclStore:
    """Implements AclStore: names as ZooKeeper takes them; changes of others (`put`) are heard at `catch_up`."""

    def __init__(self) -> None:
        self.stored: dict[ResourcePattern, StoredAcls] = {}
        self.conflicts = 0
        """How many of the next writes are refused because another writer was first."""
        self.connected = True
        self.writes = 0
        self._listeners: list[AclListener] = []
        self._unheard: list[ResourcePattern] = []

    def on_change(self, listener: AclListener) -> None:
        self._listeners = [listener]

    def can_hold(self, name: str) -> bool:
        return can_be_resource(name)

    def put(self, pattern: ResourcePattern, *entries: AccessControlEntry) -> None:
        """Change a pattern as another node does."""
        before = self.stored.get(pattern, StoredAcls((), None)).version
        self.stored[pattern] = StoredAcls(entries, 0 if before is None else before + 1)
        self._unheard.append(pattern)

    async def load(self) -> None:
        await self.catch_up()

    async def catch_up(self) -> None:
        self._require_connection()
        for pattern in self._unheard:
            self._report(pattern)
        self._unheard.clear()

    async def until_current(self) -> None:
        self._require_connection()

    async def read(self, pattern: ResourcePattern) -> StoredAcls:
        self._require_connection()
        return self.stored.get(pattern, StoredAcls((), None))

    async def write(self, pattern: ResourcePattern, entries: Entries, version: int | None) -> None:
        self._require_connection()
        self.writes += 1
        if self.conflicts or version != self.stored.get(pattern, StoredAcls((), None)).version:
            self.conflicts -= 1
            raise AclConflict(pattern)
        if entries:
            self.stored[pattern] = StoredAcls(entries, 0 if version is None else version + 1)
        else:
            self.stored.pop(pattern, None)
        self._report(pattern)

    def _report(self, pattern: ResourcePattern) -> None:
        for listener in self._listeners:
            listener(pattern, self.stored.get(pattern, StoredAcls((), None)).entries)

    def _require_connection(self) -> None:
        if not self.connected:
            raise AclStoreUnavailable("it is not connected")
