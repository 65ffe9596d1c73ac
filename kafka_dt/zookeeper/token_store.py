"""The tokens of a cluster in ZooKeeper, as brokers keep them: `kafka_dt.tokens.store.TokenStore` for production.

A change is one `multi`: the token's znode, guarded by its version, and a change znode that tells brokers and other
nodes of it. So both happen or neither, in one round trip, and many may be under way at once.

All reports to the listener are made as answers arrive, in ZooKeeper's order. The answer to a create does not tell its
transaction, so its revision is 0 (nothing older exists); changes made here are not read again when their change znode
comes by.

When the connection breaks while a change is under way its outcome is unknown and StoreUnavailable says so. It is not
tried again here. A caller may: a create makes another token, update and delete are guarded by the version.

Source: kafka.server.DelegationTokenManagerZk, kafka.zk.KafkaZkClient (setOrCreateDelegationToken).
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from kafka_dt.tokens.errors import StoreUnavailable, TokenNotFound, TokenTooLarge, VersionConflict
from kafka_dt.tokens.store import ChangeListener, StoredToken
from kafka_dt.zookeeper.changes import ChangeFollower
from kafka_dt.zookeeper.errors import (
    InvalidZnode,
    MultiFailed,
    NodeExists,
    NoNode,
    RequestTooLarge,
    VersionMismatch,
    ZooKeeperError,
)
from kafka_dt.zookeeper.operations import Create, Delete, SetData, Stat, Znode
from kafka_dt.zookeeper.purge import ChangePurger, PurgeLimits
from kafka_dt.zookeeper.shared_sync import SharedSync
from kafka_dt.zookeeper.znodes import TokenChangeZnode, TokenZnode, is_node_name

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from kafka_dt.tokens.token import Token
    from kafka_dt.zookeeper.client import ZooKeeperClient
    from kafka_dt.zookeeper.operations import Operation

log = logging.getLogger(__name__)

LOAD_WINDOW = 128
"""How many reads of a full load are under way at once; the client has more places, for requests of users."""


class ZooKeeperTokenStore:
    """Implements TokenStore; its module has the contract.

    Args:
        client: a started client.
        now_ms: the wall clock, in milliseconds since 1970.
        limits: when change znodes are removed.
    """

    def __init__(
        self, client: ZooKeeperClient, *, now_ms: Callable[[], int], limits: PurgeLimits | None = None
    ) -> None:
        self._client = client
        self._listener: ChangeListener = _nobody
        self._sync = SharedSync(client.sync, TokenZnode.PARENT)
        self._known: set[str] = set()
        self._unreadable: dict[str, int] = {}
        self._purger = ChangePurger(client, TokenChangeZnode.PARENT, limits or PurgeLimits(), now_ms)
        self._changes = ChangeFollower(
            client,
            TokenChangeZnode.PARENT,
            TokenChangeZnode.PREFIX,
            refresh=self._refresh,
            compare=self._compare,
        )

    @property
    def connected(self) -> bool:
        """Whether requests can be made now."""
        return self._client.connected

    def staleness_ms(self) -> int:
        """Return for how long changes of other nodes may have gone unreported."""
        return self._changes.staleness_ms()

    def on_change(self, listener: ChangeListener) -> None:
        """Set the one listener."""
        self._listener = listener

    async def load(self) -> None:
        """Report every stored token, and keep reporting."""
        try:
            await self._client.ensure_path(TokenChangeZnode.PARENT)
            await self._client.ensure_path(TokenZnode.PARENT)
            await self._changes.start()
        except ZooKeeperError as error:
            raise StoreUnavailable(str(error)) from error
        self._purger.start()

    async def close(self) -> None:
        """Stop reporting and purging; the client stays open."""
        await self._changes.close()
        await self._purger.close()

    async def read(self, token_id: str) -> StoredToken | None:
        """Return the token as it is now; a text that cannot be an id costs nothing."""
        if not is_node_name(token_id):
            return None
        try:
            synced = await self._sync.sent()
            answer = self._get(token_id)
            await synced
            return await answer
        except ZooKeeperError as error:
            raise StoreUnavailable(str(error)) from error

    async def create(self, token: Token) -> StoredToken:
        """Write a new token."""
        path = TokenZnode.path(token.token_id)
        operation = Create(path, TokenZnode.encode(token))
        stored: StoredToken = await self._change(token.token_id, None, operation, lambda _: StoredToken(token, 0, 0))
        return stored

    async def update(self, token: Token, version: int) -> StoredToken:
        """Write a token that is stored at `version`."""
        operation = SetData(TokenZnode.path(token.token_id), TokenZnode.encode(token), version)
        stored: StoredToken = await self._change(
            token.token_id, version, operation, lambda stat: StoredToken(token, stat.version, stat.modified_zxid)
        )
        return stored

    async def delete(self, token_id: str, version: int) -> None:
        """Delete a token that is stored at `version`."""
        await self._change(token_id, version, Delete(TokenZnode.path(token_id), version), lambda _: None)

    async def catch_up(self) -> None:
        """Return when every change acknowledged anywhere before this call has been reported."""
        try:
            await self._changes.catch_up()
        except ZooKeeperError as error:
            raise StoreUnavailable(str(error)) from error

    async def _change(
        self,
        token_id: str,
        version: int | None,
        operation: Operation,
        state: Callable[[Any], StoredToken | None],
    ) -> Any:
        """Carry out a change and its announcement.

        Args:
            token_id: what is changed.
            version: the guard, for the error.
            operation: the change.
            state: makes the new state of the result of the operation.
        """
        announcement = Create(TokenChangeZnode.PREFIX, TokenChangeZnode.encode(token_id), sequence=True)

        def arrived(results: Sequence[str | Stat | None] | None, error: ZooKeeperError | None) -> StoredToken | None:
            if error is not None:
                raise self._refusal(token_id, version, error)
            result, change_path = results or (None, None)
            if isinstance(change_path, str):
                self._changes.own(change_path)
                self._purger.add(change_path)
            stored = state(result)
            self._report(token_id, stored)
            return stored

        try:
            return await self._client.multi([operation, announcement], arrived=arrived)
        except RequestTooLarge as error:
            raise TokenTooLarge(error.size, error.limit) from error
        except ZooKeeperError as error:  # it was not sent, or its answer will not come
            raise StoreUnavailable(str(error)) from error

    def _refusal(self, token_id: str, version: int | None, error: ZooKeeperError) -> Exception:
        cause = error.cause if isinstance(error, MultiFailed) and error.index == 0 else None
        if isinstance(cause, NodeExists | VersionMismatch):
            return VersionConflict(token_id, version)
        if isinstance(cause, NoNode) and version is not None:
            self._report(token_id, None)
            return TokenNotFound(token_id)
        unavailable = StoreUnavailable(str(error))
        unavailable.__cause__ = error
        return unavailable

    async def _refresh(self, change: bytes) -> None:
        """Read a token again that was changed by somebody else."""
        token_id = TokenChangeZnode.decode(change)
        if is_node_name(token_id):
            await self._get(token_id)

    async def _compare(self) -> None:
        """Read all tokens, and tell which of the known ones are gone."""
        await self._client.ensure_path(TokenZnode.PARENT)
        token_ids = await self._client.children(TokenZnode.PARENT, arrived=self._list_arrived)
        window: deque[asyncio.Future[StoredToken | None]] = deque()
        for token_id in token_ids:
            if len(window) == LOAD_WINDOW:
                await window.popleft()
            window.append(self._get(token_id))
        for read in window:
            await read
        log.info("%d delegation tokens read", len(token_ids))

    def _list_arrived(self, token_ids: list[str] | None, error: ZooKeeperError | None) -> list[str]:
        """Compare what is known with what there is, in the moment in which both are of the same time."""
        if error is not None or token_ids is None:
            raise error or NoNode(TokenZnode.PARENT)
        for token_id in self._known.difference(token_ids):
            self._report(token_id, None)
        return token_ids

    def _get(self, token_id: str) -> asyncio.Future[StoredToken | None]:
        future: asyncio.Future[Any] = self._client.get(
            TokenZnode.path(token_id), arrived=partial(self._token_arrived, token_id)
        )
        return future

    def _token_arrived(self, token_id: str, znode: Znode | None, error: ZooKeeperError | None) -> StoredToken | None:
        if error is not None and not isinstance(error, NoNode):
            raise error
        if znode is None:
            self._unreadable.pop(token_id, None)
        stored = None if znode is None else self._decoded(token_id, znode)
        self._report(token_id, stored)
        return stored

    def _decoded(self, token_id: str, znode: Znode) -> StoredToken | None:
        """Decode a token; one that is not readable counts as gone."""
        try:
            token = _token(token_id, znode)
        except InvalidZnode as error:
            self._tell_once(token_id, znode, error)
            return None
        return StoredToken(token, znode.stat.version, znode.stat.modified_zxid)

    def _tell_once(self, token_id: str, znode: Znode, error: InvalidZnode) -> None:
        """Log that a token is not readable, once for each time it was written."""
        if self._unreadable.get(token_id) != znode.stat.modified_zxid:
            self._unreadable[token_id] = znode.stat.modified_zxid
            log.error("the delegation token %s is not readable: %s", TokenZnode.path(token_id), error)

    def _report(self, token_id: str, stored: StoredToken | None) -> None:
        if stored is None:
            self._known.discard(token_id)
        else:
            self._known.add(stored.token.token_id)
            self._unreadable.pop(token_id, None)
        self._listener(token_id, stored)


def _token(token_id: str, znode: Znode) -> Token:
    token = TokenZnode.decode(znode.data)
    if token.token_id != token_id:
        raise InvalidZnode("it names another token")
    return token


def _nobody(token_id: str, stored: StoredToken | None) -> None:
    """Hear changes before anybody has asked for them."""
