"""The SCRAM users of a cluster, as `kafka-configs.sh` writes them, in memory and kept up to date.

All users are read at the start; from then on `/config/changes` tells whose configuration has changed. A user whose
znode is not readable has no credentials, and one error in the log.

Source: kafka.server.ZkConfigManager, kafka.server.UserConfigHandler, org.apache.kafka.common.security.scram.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from kafka_dt.zookeeper.errors import InvalidZnode, NoNode, ZooKeeperError
from kafka_dt.zookeeper.stores.change_purge import ChangePurger, PurgeLimits
from kafka_dt.zookeeper.stores.changes import ChangeFollower
from kafka_dt.zookeeper.znodes.kafka import ConfigChangeZnode, UserZnode
from kafka_dt.zookeeper.znodes.sanitizer import desanitize

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from kafka_dt.zookeeper.connection.client import ZooKeeperClient
    from kafka_dt.zookeeper.connection.operations import Znode
    from kafka_dt_protocol.sasl.scram import ScramCredential, ScramMechanism

_LOG = logging.getLogger(__name__)

Credentials = dict["ScramMechanism", "ScramCredential"]


class ZooKeeperScramUsers:
    """The SCRAM credentials below `/config/users`.

    Args:
        client: a started client.
        now_ms: the wall clock, in milliseconds since 1970.
        limits: when the change znodes that nobody has removed are.
    """

    def __init__(
        self, client: ZooKeeperClient, *, now_ms: Callable[[], int], limits: PurgeLimits | None = None
    ) -> None:
        self._client = client
        self._credentials: dict[str, Credentials] = {}
        self._iterations: dict[ScramMechanism, Sequence[int]] = {}
        self._purger = ChangePurger(client, ConfigChangeZnode.PARENT, limits or PurgeLimits(), now_ms)
        self._changes = ChangeFollower(
            client,
            ConfigChangeZnode.PARENT,
            ConfigChangeZnode.PREFIX,
            refresh=self._refresh,
            compare=self._compare,
        )

    async def start(self) -> None:
        """Read all users, and follow changes from then on.

        Raises:
            ZooKeeperError: it did not work; it may be called again.
        """
        await self._client.ensure_path(UserZnode.PARENT)
        await self._client.ensure_path(ConfigChangeZnode.PARENT)
        await self._changes.start()
        self._purger.start()

    async def close(self) -> None:
        """Stop following; the client stays open."""
        await self._changes.close()
        await self._purger.close()

    def credential(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        """Return a user's credential.

        Args:
            user: the name as users write it.
            mechanism: the one they log in with.

        Returns:
            None if there is no such user, or none with this mechanism.
        """
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
        """Take charge of a change znode that this process has made.

        Args:
            change_path: as ZooKeeper named it.
        """
        self._purger.add(change_path)

    def __len__(self) -> int:
        """Return how many users have credentials."""
        return len(self._credentials)

    async def catch_up(self) -> None:
        """Return when every change acknowledged anywhere before this call is known.

        Raises:
            ZooKeeperError: it could not be found out.
        """
        await self._changes.catch_up()

    async def _refresh(self, changes: Collection[bytes]) -> None:
        await asyncio.gather(*(self._refresh_one(change) for change in changes))

    async def _refresh_one(self, change: bytes) -> None:
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
        if error is not None and not isinstance(error, NoNode):
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
