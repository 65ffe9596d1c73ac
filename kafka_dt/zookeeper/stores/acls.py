"""The ACLs of a cluster in ZooKeeper, as brokers keep them: `kafka_dt.identity.acls.store.AclStore` for production.

A change is one `multi`: the znode of the pattern, guarded by its version, and a change znode that tells brokers and
other nodes of it. All reports to the listener are made as answers arrive, in ZooKeeper's order.

An entry that cannot be read might be a denial. So a pattern whose znode is not readable counts as denied to every
principal until an operator repairs or deletes the znode. It is listed as a denial, and is one error in the log each
time it is written.

Source: kafka.zk.KafkaZkClient (createAclPaths, conditionalSetAclsForResource, createAclChangeNotification),
kafka.security.authorizer.AclAuthorizer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.identity.acls.binding import (
    ANY_HOST,
    EVERYBODY,
    RESOURCE_TYPES,
    AccessControlEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kafka_dt.identity.acls.store import AclConflict, AclStoreUnavailable, InvalidAcl, StoredAcls
from kafka_dt.zookeeper.connection.operations import Create, Delete, SetData
from kafka_dt.zookeeper.errors import (
    InvalidZnode,
    MultiFailed,
    NodeExists,
    NoNode,
    RequestTooLarge,
    VersionMismatch,
    ZooKeeperError,
    raised_as,
)
from kafka_dt.zookeeper.stores.changes import ChangeFollower
from kafka_dt.zookeeper.znodes.acls import AclZnode, ExtendedAclChangeZnode, LiteralAclChangeZnode, can_be_resource

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from kafka_dt.identity.acls.store import AclListener, Entries
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient
    from kafka_dt.zookeeper.connection.operations import Operation, Stat, Znode
    from kafka_dt.zookeeper.stores.change_purger import PurgeLimits

_LOG = logging.getLogger(__name__)

LOAD_WINDOW: Final = 128
"""How many reads of a full load are under way at once; the client has more places, for requests of users."""

UNREADABLE: Final = (AccessControlEntry(EVERYBODY, ANY_HOST, AclOperation.ALL, AclPermissionType.DENY),)
"""What counts where the meaning of an entry is unknown."""


class ZooKeeperAclStore:
    """Implements AclStore; its module has the contract.

    Args:
        client: a started client.
        now_ms: the wall clock, in milliseconds since 1970.
        limits: when change znodes are removed.
    """

    def __init__(
        self, client: ZooKeeperClient, *, now_ms: Callable[[], int], limits: PurgeLimits | None = None
    ) -> None:
        self._client = client
        self._listener: AclListener = _nobody
        self._trees: dict[PatternType, _Tree] = {}
        for change in (LiteralAclChangeZnode, ExtendedAclChangeZnode):
            self._trees[change.PATTERN_TYPE] = _Tree(client, change, self._report, now_ms, limits)

    def on_change(self, listener: AclListener) -> None:
        """Set the one listener."""
        self._listener = listener

    def can_hold(self, name: str) -> bool:
        """Say whether a name can stand in a path."""
        return can_be_resource(name)

    async def load(self) -> None:
        """Make the paths that a broker makes, report every stored ACL, and keep reporting."""
        with raised_as(AclStoreUnavailable):
            for tree in self._trees.values():
                await tree.changes.start()

    async def close(self) -> None:
        """Stop reporting and purging; the client stays open."""
        for tree in self._trees.values():
            await tree.changes.close()

    async def catch_up(self) -> None:
        """Return when every change acknowledged anywhere before this call has been reported."""
        with raised_as(AclStoreUnavailable):
            await asyncio.gather(*(tree.changes.catch_up() for tree in self._trees.values()))

    async def until_current(self) -> None:
        """Return at once: changes are reported as they happen."""

    async def read(self, pattern: ResourcePattern) -> StoredAcls:
        """Read the entries of a pattern as they are now."""
        with raised_as(AclStoreUnavailable):
            return await self._trees[pattern.pattern_type].read(pattern)

    async def write(self, pattern: ResourcePattern, entries: Entries, version: int | None) -> None:
        """Replace the entries of a pattern."""
        try:
            await self._trees[pattern.pattern_type].write(pattern, entries, version)
        except MultiFailed as error:
            if isinstance(error.cause, NodeExists | NoNode | VersionMismatch):
                raise AclConflict(pattern) from error
            raise AclStoreUnavailable(str(error)) from error
        except RequestTooLarge as error:
            raise InvalidAcl(f"These are too many ACLs for one resource: {error}.") from error
        except ZooKeeperError as error:
            raise AclStoreUnavailable(str(error)) from error

    def _report(self, pattern: ResourcePattern, entries: Entries) -> None:
        self._listener(pattern, entries)


class _Tree:
    """The patterns of one kind, and their changes."""

    def __init__(
        self,
        client: ZooKeeperClient,
        change: type[LiteralAclChangeZnode | ExtendedAclChangeZnode],
        report: AclListener,
        now_ms: Callable[[], int],
        limits: PurgeLimits | None,
    ) -> None:
        self._client = client
        self._pattern_type = change.PATTERN_TYPE
        self._change = change
        self._listener = report
        self._known: set[ResourcePattern] = set()
        self._unreadable: dict[ResourcePattern, int] = {}
        self.changes: Final = ChangeFollower(
            client,
            change.PARENT,
            change.PREFIX,
            read_changed=self._read_changed,
            compare=self._compare,
            now_ms=now_ms,
            limits=limits,
        )

    async def read(self, pattern: ResourcePattern) -> StoredAcls:
        self._client.sync(AclZnode.path(pattern))
        return await self._get(pattern)

    async def write(self, pattern: ResourcePattern, entries: Entries, version: int | None) -> None:
        announcement = Create(self._change.PREFIX, self._change.encode(pattern), sequence=True)

        def arrived(results: Sequence[str | Stat | None] | None, error: ZooKeeperError | None) -> None:
            if error is not None:
                raise error
            _, change_path = results or (None, None)
            if isinstance(change_path, str):
                self.changes.reported(change_path)
            self._report(pattern, entries)

        await self._client.multi([_operation(pattern, entries, version), announcement], arrived=arrived)

    async def _make_paths(self) -> None:
        for resource_type in RESOURCE_TYPES:
            await self._client.ensure_path(AclZnode.parent(self._pattern_type, resource_type))

    async def _read_changed(self, changes: Collection[bytes]) -> None:
        """Read patterns again that other processes changed."""
        await asyncio.gather(*(self._read_one_changed(change) for change in changes))

    async def _read_one_changed(self, change: bytes) -> None:
        try:
            pattern = self._change.decode(change)
        except InvalidZnode as error:
            _LOG.warning("a change below %s is not readable, so everything is: %s", self._change.PARENT, error)
            await self._compare()
        else:
            await self._get(pattern)

    async def _compare(self) -> None:
        """Read everything, and tell which of the known patterns are gone."""
        await self._make_paths()
        listed = [self._list(resource_type) for resource_type in RESOURCE_TYPES]
        patterns = [pattern for patterns in await asyncio.gather(*listed) for pattern in patterns]
        window: deque[asyncio.Future[StoredAcls]] = deque()
        for pattern in patterns:
            if len(window) == LOAD_WINDOW:
                await window.popleft()
            window.append(self._get(pattern))
        await asyncio.gather(*window)
        _LOG.info("ACLs of %d %s patterns read", len(patterns), self._pattern_type.name)

    def _list(self, resource_type: ResourceType) -> asyncio.Future[list[ResourcePattern]]:
        def arrived(names: list[str] | None, error: ZooKeeperError | None) -> list[ResourcePattern]:
            """Compare the known entries with those in ZooKeeper, at the moment at which both are of the same time."""
            if names is None:
                raise error or NoNode(resource_type.text)
            found = {ResourcePattern(resource_type, name, self._pattern_type): None for name in names}
            for gone in [each for each in self._known if each.resource_type is resource_type and each not in found]:
                self._report(gone, ())
            return list(found)

        future: asyncio.Future[Any] = self._client.children(
            AclZnode.parent(self._pattern_type, resource_type), arrived=arrived
        )
        return future

    def _get(self, pattern: ResourcePattern) -> asyncio.Future[StoredAcls]:
        future: asyncio.Future[Any] = self._client.get(AclZnode.path(pattern), arrived=partial(self._arrived, pattern))
        return future

    def _arrived(self, pattern: ResourcePattern, znode: Znode | None, error: ZooKeeperError | None) -> StoredAcls:
        if error is not None and not isinstance(error, NoNode):
            raise error
        if znode is None:
            self._report(pattern, ())
            return StoredAcls((), None)
        entries = self._readable(pattern, znode)
        self._report(pattern, entries)
        return StoredAcls(entries, znode.stat.version)

    def _readable(self, pattern: ResourcePattern, znode: Znode) -> Entries:
        try:
            return AclZnode.decode(znode.data)
        except InvalidZnode as error:
            self._tell_once(pattern, znode, error)
            return UNREADABLE

    def _tell_once(self, pattern: ResourcePattern, znode: Znode, error: InvalidZnode) -> None:
        """Log that a pattern is not readable, once for each time it was written."""
        if self._unreadable.get(pattern) != znode.stat.modified_zxid:
            self._unreadable[pattern] = znode.stat.modified_zxid
            _LOG.error("%s denies everybody: its ACLs are not readable: %s", AclZnode.path(pattern), error)

    def _report(self, pattern: ResourcePattern, entries: Entries) -> None:
        if entries:
            self._known.add(pattern)
        else:
            self._known.discard(pattern)
        if entries is not UNREADABLE:
            self._unreadable.pop(pattern, None)
        self._listener(pattern, entries)


def _operation(pattern: ResourcePattern, entries: Entries, version: int | None) -> Operation:
    path = AclZnode.path(pattern)
    if version is None:
        return Create(path, AclZnode.encode(entries))
    return SetData(path, AclZnode.encode(entries), version) if entries else Delete(path, version)


def _nobody(pattern: ResourcePattern, entries: Entries) -> None:
    """Take changes before a listener has asked for them."""
