"""A worker among the others of its cluster: it says which secret keys it has, and follows their files.

    membership = Membership(settings, files, keyring, client, store, number=0, broker_id=1001)
    await membership.join()          # when connected, before anything is served
    await membership.look()          # every second
    await membership.close()

What could not be read, and another ring of keys may open, is read again beside that: it may be much, and neither the
files nor a login that needs a key wait for it. What ZooKeeper was not there for is done at a later look.

Source: KIP-48, "Delegation Token Master Key Rotation"; DESIGN.md, "Command line" (`keys`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from kafka_dt.server.secret_keys import NodeKeys
from kafka_dt.tokens import StoreUnavailable
from kafka_dt.zookeeper.stores.nodes import NodeRegistry, live_brokers
from kafka_dt.zookeeper.znodes.own import NodeState

if TYPE_CHECKING:
    from kafka_dt.config import SecretKeyFiles, Settings
    from kafka_dt.tokens import Keyring
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient
    from kafka_dt.zookeeper.stores.tokens import ZooKeeperTokenStore

_LOG = logging.getLogger(__name__)

NAME_BYTES: Final = 8


class Membership:
    """What the others know of a worker.

    Args:
        settings: of its node.
        files: where the keys come from.
        keyring: follows them; None where tokens are disabled.
        client: a client that is to be started before `join`.
        store: reads again what a new key opens, and tells of keys that are missing.
        number: which worker of its node it is.
        broker_id: the id that its node shows to clients.
    """

    def __init__(
        self,
        settings: Settings,
        files: SecretKeyFiles,
        keyring: Keyring | None,
        client: ZooKeeperClient,
        store: ZooKeeperTokenStore,
        *,
        number: int,
        broker_id: int,
    ) -> None:
        self._seals = settings.metadata_encryption
        self._keyring = keyring
        self._client = client
        self._store = store
        self._number = number
        self._broker_id = broker_id
        self._registry = NodeRegistry(client, secrets.token_hex(NAME_BYTES))
        self._reread: asyncio.Task[None] | None = None
        self._keys = NodeKeys(files, keyring, self._keys_changed) if keyring else None
        if self._keys:
            store.on_unknown_key(self._keys.refresh_soon)

    async def join(self) -> None:
        """Say which keys we have, so that a rotation waits for us; then look whether one began before we had said it.

        Raises:
            ZooKeeperError: it does not work.
        """
        if self._number == 0 and self._keyring and self._seals:
            await self._warn_beside_brokers()
        await self._registry.announce(self._state())
        await self.look()

    async def look(self) -> None:
        """Take over keys whose files have changed."""
        if self._keys:
            await self._keys.refresh()
            self._begin_reread()

    async def close(self) -> None:
        """Stop announcing; what was said goes with the client's session."""
        if self._reread is not None:
            self._reread.cancel()
            await asyncio.gather(self._reread, return_exceptions=True)
        await self._registry.close()

    async def _warn_beside_brokers(self) -> None:
        if brokers := await live_brokers(self._client):
            _LOG.warning(
                "Brokers are live in the same ZooKeeper (ids %s) and cannot read the tokens that are sealed here: "
                "set delegation.token.metadata.encryption.enable=false, then `kafka-dt keys unseal`",
                ", ".join(brokers),
            )

    async def _keys_changed(self) -> None:
        await self._registry.announce(self._state())
        self._begin_reread()

    def _begin_reread(self) -> None:
        """Try the keys of now with what could not be read, if that is due and not under way."""
        if self._store.untried and (self._reread is None or self._reread.done()):
            self._reread = asyncio.get_running_loop().create_task(self._read_again())

    async def _read_again(self) -> None:
        try:
            await self._store.reread_unreadable()
        except StoreUnavailable:
            _LOG.debug("Without ZooKeeper new keys cannot be tried with what was not readable; the next look does it")
        except Exception:  # noqa: BLE001 - what is due stays due
            _LOG.exception("What was not readable cannot be read with the new keys; it is tried again")

    def _state(self) -> NodeState:
        keys = self._keyring.keys if self._keyring else ()
        return NodeState(
            host=socket.gethostname(),
            pid=os.getpid(),
            worker=self._number,
            broker_id=self._broker_id,
            current_key=keys[0].id if keys else None,
            keys=tuple(key.id for key in keys),
            seals=self._seals,
            version=version("kafka-dt"),
        )
