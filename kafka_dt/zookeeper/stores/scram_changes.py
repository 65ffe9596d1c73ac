"""Changes the SCRAM users in ZooKeeper as a broker does: `kafka_dt.identity.credentials.scram_changes.ScramUserStore`.

A change is one `multi`: the user's znode, guarded by its version, and a change znode that tells brokers and other nodes
of it. What else the znode holds, such as quotas, stays. A user who has nothing left, and no quotas of client ids below,
is removed.

Source: kafka.zk.AdminZkClient (changeUserOrUserClientIdConfig, tryCleanQuotaNodes), kafka.zk.ZkData.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka_dt.identity.credentials.scram_changes import NoSuchCredential
from kafka_dt.tokens import StoreUnavailable
from kafka_dt.zookeeper.connection.operations import Create, Delete, SetData
from kafka_dt.zookeeper.errors import MultiFailed, NoNode, ZooKeeperError
from kafka_dt.zookeeper.znodes.kafka import ConfigChangeZnode, UserZnode, is_node_name
from kafka_dt.zookeeper.znodes.sanitizer import sanitize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_dt.identity.credentials.scram_changes import Credentials
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient
    from kafka_dt.zookeeper.connection.operations import Operation, Znode
    from kafka_dt.zookeeper.stores.scram_users import ZooKeeperScramUsers
    from kafka_dt_protocol.sasl.scram import ScramMechanism

ATTEMPTS: Final = 10
"""How often a change is tried whose user somebody else changes at the same time."""


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
        try:
            await self._client.ensure_path(UserZnode.PARENT)
            await self._client.ensure_path(ConfigChangeZnode.PARENT)
            await self._try_until_alone(name, deleted, added)
            await self._users.catch_up()
        except ZooKeeperError as error:
            raise StoreUnavailable(str(error)) from error

    async def all(self) -> Mapping[str, Credentials]:
        """Give the credentials of all users that have any, by name, as of now."""
        try:
            await self._users.catch_up()
        except ZooKeeperError as error:
            raise StoreUnavailable(str(error)) from error
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


def _operation(name: str, znode: Znode | None, deleted: Sequence[ScramMechanism], added: Credentials) -> Operation:
    """Say what makes the change of a user's znode.

    Raises:
        NoSuchCredential: one that is to be deleted is not there.
    """
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
