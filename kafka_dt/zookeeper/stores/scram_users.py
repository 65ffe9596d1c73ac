"""The SCRAM users of a cluster in ZooKeeper, as `kafka-configs.sh` writes them: in memory, up to date, and changed.

All users are read at the start; from then on `/config/changes` tells whose configuration has changed. A user whose
znode is not readable has no credentials, and one error in the log.

A change is one `multi`: the user's znode, guarded by its version, and a change znode that tells brokers and other nodes
of it. What else the znode holds, such as quotas, stays. A user who has nothing left, and no quotas of client ids below,
is removed.

Source: kafka.server.ZkConfigManager, kafka.server.UserConfigHandler, org.apache.kafka.common.security.scram;
kafka.zk.AdminZkClient (changeUserOrUserClientIdConfig, tryCleanQuotaNodes), kafka.zk.ZkData.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.identity.credentials.scram_changes import NoSuchCredential
from kafka_dt.tokens import StoreUnavailable
from kafka_dt.zookeeper.connection.operations import Create, Delete, SetData
from kafka_dt.zookeeper.errors import DeniedByAcl, InvalidZnode, MultiFailed, NoNode, ZooKeeperError, raised_as
from kafka_dt.zookeeper.stores.changes import ChangeFollower
from kafka_dt.zookeeper.znodes.documents import desanitize, sanitize
from kafka_dt.zookeeper.znodes.kafka import ConfigChangeZnode, UserZnode, is_node_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from kafka_dt.identity.credentials.scram_changes import Credentials
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient
    from kafka_dt.zookeeper.connection.operations import Operation, Znode
    from kafka_dt.zookeeper.stores.change_purger import PurgeLimits
    from kafka_dt_protocol.sasl.scram import ScramCredential, ScramMechanism

_LOG = logging.getLogger(__name__)

ATTEMPTS: Final = 10
"""How often a change is tried whose user another process changes at the same time."""


class ZooKeeperScramUsers:
    """The SCRAM credentials below `/config/users`.

    Args:
        client: a started client.
        now_ms: the wall clock, in milliseconds since 1970.
        limits: when change znodes that no other process has removed are purged.
    """

    def __init__(
        self, client: ZooKeeperClient, *, now_ms: Callable[[], int], limits: PurgeLimits | None = None
    ) -> None:
        self._client = client
        self._credentials: dict[str, Credentials] = {}
        self._iterations: dict[ScramMechanism, Sequence[int]] = {}
        self._changes = ChangeFollower(
            client,
            ConfigChangeZnode.PARENT,
            ConfigChangeZnode.PREFIX,
            read_changed=self._read_changed,
            compare=self._compare,
            now_ms=now_ms,
            limits=limits,
        )

    async def start(self) -> None:
        """Read all users, and follow changes from then on; after a ZooKeeperError, call it again."""
        await self._client.ensure_path(UserZnode.PARENT)
        await self._client.ensure_path(ConfigChangeZnode.PARENT)
        await self._changes.start()

    async def close(self) -> None:
        """Stop following; the client stays open."""
        await self._changes.close()

    def credential(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        """Return the credential of a user, named as users write it; None if there is none with this mechanism."""
        return self._credentials.get(user, {}).get(mechanism)

    def iterations(self, mechanism: ScramMechanism) -> Sequence[int]:
        """Return the count of iterations of every user with a mechanism, in ascending order."""
        if mechanism not in self._iterations:
            held = (found[mechanism].iterations for found in self._credentials.values() if mechanism in found)
            self._iterations[mechanism] = sorted(held)
        return self._iterations[mechanism]

    def all(self) -> Mapping[str, Credentials]:
        """Return the credentials of all users, by name, as they are now."""
        return {user: dict(credentials) for user, credentials in self._credentials.items()}

    def announced(self, change_path: str) -> None:
        """Take charge of a change znode that this process has made, named as ZooKeeper did."""
        self._changes.purge_later(change_path)

    def __len__(self) -> int:
        """Return how many users have credentials."""
        return len(self._credentials)

    async def catch_up(self) -> None:
        """Return when every change acknowledged anywhere before this call is known."""
        await self._changes.catch_up()

    async def _read_changed(self, changes: Collection[bytes]) -> None:
        await asyncio.gather(*(self._read_one_changed(change) for change in changes))

    async def _read_one_changed(self, change: bytes) -> None:
        try:
            user = ConfigChangeZnode.decode(change)
        except InvalidZnode as error:
            _LOG.warning("a change below %s is not readable: %s", ConfigChangeZnode.PARENT, error)
            return
        if user is not None:
            await self._read(user)

    async def _compare(self) -> None:
        await self._client.ensure_path(UserZnode.PARENT)
        users = await self._client.children(UserZnode.PARENT)
        present = {_name(user) for user in users}
        for gone in self._credentials.keys() - present:
            del self._credentials[gone]
        self._iterations.clear()
        await asyncio.gather(*(self._read(user) for user in users if user != UserZnode.DEFAULT))
        _LOG.info("%d SCRAM users read", len(self._credentials))

    def _read(self, sanitized_user: str) -> asyncio.Future[None]:
        path = UserZnode.path(sanitized_user)
        future: asyncio.Future[Any] = self._client.get(path, arrived=partial(self._arrived, sanitized_user))
        return future

    def _arrived(self, sanitized_user: str, znode: Znode | None, error: ZooKeeperError | None) -> None:
        if isinstance(error, DeniedByAcl):
            path = UserZnode.path(sanitized_user)
            _LOG.error("the SCRAM credentials in %s are not readable: its ACL does not let this node read it", path)
        elif error is not None and not isinstance(error, NoNode):
            raise error
        user = _name(sanitized_user)
        if user is None:
            return
        credentials = {} if znode is None else _readable(sanitized_user, znode)
        self._iterations.clear()
        if credentials:
            self._credentials[user] = credentials
        else:
            self._credentials.pop(user, None)


class ZooKeeperScramUserStore:
    """Implements ScramUserStore; its module has the contract.

    Args:
        client: a started client.
        users: what logins on this node are checked against; `load` starts it.
    """

    def __init__(self, client: ZooKeeperClient, users: ZooKeeperScramUsers) -> None:
        self._client = client
        self._users = users

    async def load(self) -> None:
        """Read all users, and follow their changes from then on."""
        await self._users.start()

    def can_store(self, user: str) -> bool:
        """Say whether there can be a user of this name."""
        return is_node_name(sanitize(user))

    async def change(self, user: str, deleted: Sequence[ScramMechanism], added: Credentials) -> None:
        """Change the credentials of a user, all of it or nothing."""
        name = sanitize(user)
        with raised_as(StoreUnavailable):
            await self._client.ensure_path(UserZnode.PARENT)
            await self._client.ensure_path(ConfigChangeZnode.PARENT)
            await self._try_until_alone(name, deleted, added)
            await self._users.catch_up()

    async def all(self) -> Mapping[str, Credentials]:
        """Give the credentials of all users that have any, by name, as of now."""
        with raised_as(StoreUnavailable):
            await self._users.catch_up()
        return self._users.all()

    async def _try_until_alone(self, name: str, deleted: Sequence[ScramMechanism], added: Credentials) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            operation = _operation(name, await self._read(name), deleted, added)
            announcement = Create(ConfigChangeZnode.PREFIX, ConfigChangeZnode.encode(name), sequence=True)
            try:
                results = await self._client.multi([operation, announcement])
            except MultiFailed as failed:
                # Changed, made, removed, or given a child since it was read.
                if failed.index != 0 or attempt == ATTEMPTS:
                    raise
            else:
                self._users.announced(str(results[1]))
                return

    async def _read(self, name: str) -> Znode | None:
        path = UserZnode.path(name)
        self._client.sync(path)
        try:
            return await self._client.get(path)
        except NoNode:
            return None


def _name(sanitized_user: str) -> str | None:
    try:
        return desanitize(sanitized_user)
    except InvalidZnode:
        return None  # not written by Kafka: no user can be meant


def _readable(sanitized_user: str, znode: Znode) -> Credentials:
    try:
        return UserZnode.decode(znode.data)
    except InvalidZnode as error:
        reason = str(error)
    _LOG.error("the SCRAM credentials in %s are not readable: %s", UserZnode.path(sanitized_user), reason)
    return {}


def _operation(name: str, znode: Znode | None, deleted: Sequence[ScramMechanism], added: Credentials) -> Operation:
    """Say what makes the change of a user's znode; NoSuchCredential if one to be deleted is not there."""
    path = UserZnode.path(name)
    config: dict[str, Any] = {} if znode is None else UserZnode.decode_config(znode.data)
    if any(mechanism.value not in config for mechanism in deleted):
        raise NoSuchCredential
    kept = {key: value for key, value in config.items() if key not in {mechanism.value for mechanism in deleted}}
    data = UserZnode.encode_config(kept | UserZnode.texts(added))
    if znode is None:
        return Create(path, data)
    if not kept and not added and not znode.stat.child_count:
        return Delete(path, znode.stat.version)
    return SetData(path, data, znode.stat.version)
