"""The tokens of a cluster in ZooKeeper, as brokers keep them: `kafka_dt.tokens.guarded.VersionedStore` for production.

A change is a part of one `multi`: the token's znode, guarded by its version or deleted at any, and a change znode that
tells brokers and other nodes of it. So both happen or neither, in one round trip. Changes that wait share a `multi`:
see `group_commit`.

Reports to the listener are made as answers arrive, in ZooKeeper's order; `token_reports` does it, also for what has to
be opened first. The answer to a create does not tell its transaction, so its revision is 0 (nothing older exists);
changes made here are not read again when their change znode comes by.

When the connection breaks while a change is under way its outcome is unknown and StoreUnavailable says so. It is not
tried again here. A caller may: a create makes another token, an update is guarded by the version, and a token that is
deleted stays so.

Source: kafka.server.DelegationTokenManagerZk, kafka.zk.KafkaZkClient (setOrCreateDelegationToken).
"""

from __future__ import annotations

import asyncio
import logging
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.lanes import run_lanes
from kafka_dt.tokens.creation_limits import CreationLimits
from kafka_dt.tokens.errors import StoreUnavailable, TokenNotFound, TokenTooLarge
from kafka_dt.tokens.guarded import VersionConflict
from kafka_dt.tokens.staleness import Staleness
from kafka_dt.tokens.store import ChangeListener, StoredToken
from kafka_dt.zookeeper.connection.operations import ANY_VERSION, Create, Delete, SetData, Stat, Znode
from kafka_dt.zookeeper.connection.reads import BATCH, Reads, SharedSync, zookeeper_time_ms
from kafka_dt.zookeeper.errors import (
    DeniedByAcl,
    MultiFailed,
    NodeExists,
    NoNode,
    RequestTooLarge,
    VersionMismatch,
    ZooKeeperError,
    raised_as,
)
from kafka_dt.zookeeper.stores.changes import ChangeFollower
from kafka_dt.zookeeper.stores.group_commit import GroupCommit
from kafka_dt.zookeeper.stores.token_reports import Opening, TokenReports
from kafka_dt.zookeeper.znodes.kafka import TokenChangeZnode, TokenZnode, is_node_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from kafka_dt.tokens.token import Token
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient
    from kafka_dt.zookeeper.connection.operations import Operation
    from kafka_dt.zookeeper.sealing.token_codec import TokenCodec
    from kafka_dt.zookeeper.stores.change_purger import PurgeLimits

_LOG = logging.getLogger(__name__)

DEFAULT_MAX_STALENESS_MS = 30_000
READING_LANES = 2
"""How many batches of tokens are being read or opened at once; client and threads have places for users, too."""


class ZooKeeperTokenStore:
    """Implements VersionedStore; its module and `kafka_dt.tokens.store` have the contract.

    Args:
        client: a started client.
        codec: between tokens and the bytes of their znodes.
        now_ms: the wall clock, in milliseconds since 1970.
        limits: when change znodes are removed.
        max_staleness_ms: how stale what is reported may become; it is proved to be complete three times as often.
        begin_at: where among all tokens a look at everything begins, 0 to 1. Workers that share what they derive
            begin at different places, so that each opens a part of them and finds the others opened.
    """

    def __init__(
        self,
        client: ZooKeeperClient,
        codec: TokenCodec,
        *,
        now_ms: Callable[[], int],
        limits: PurgeLimits | None = None,
        max_staleness_ms: int = DEFAULT_MAX_STALENESS_MS,
        begin_at: float = 0,
        creations: CreationLimits | None = None,
    ) -> None:
        self.max_staleness_ms: Final = max_staleness_ms
        self._client = client
        self._creations = creations or CreationLimits()
        self._reads = Reads(client)
        self._writes = GroupCommit(client)
        self._codec = codec
        self._begin_at = begin_at
        self._reports = TokenReports(codec)
        self._sync = SharedSync(client.sync, TokenZnode.PARENT)
        self._staleness = Staleness(max_staleness_ms)
        self._changes = ChangeFollower(
            client,
            TokenChangeZnode.PARENT,
            TokenChangeZnode.PREFIX,
            read_changed=self._read_changed,
            compare=self._compare,
            now_ms=now_ms,
            limits=limits,
            staleness=self._staleness,
        )

    @property
    def connected(self) -> bool:
        """Whether requests can be made now."""
        return self._client.connected

    @property
    def unreadable(self) -> Mapping[str, str]:
        """The ids of the tokens that are there and cannot be served, each with the reason."""
        return self._reports.unreadable

    @property
    def unreadable_tokens(self) -> int:
        """How many these are."""
        return self._reports.unreadable_tokens

    def source_of(self, token_id: str | None) -> ZooKeeperTokenStore:  # noqa: ARG002 - there is no other
        """Return this source, for any token."""
        return self

    def staleness_ms(self) -> int:
        """Return for how long changes of other nodes may have gone unreported; see `Staleness`."""
        return self._staleness.ms()

    def forget_proofs(self) -> None:
        """Have the reported tokens count as too old until a catch-up has proved them again."""
        self._staleness.forget_proofs()

    def on_change(self, listener: ChangeListener) -> None:
        """Set the one listener."""
        self._reports.listener = listener

    def on_unknown_key(self, hook: Callable[[], None]) -> None:
        """Set the function to call when a token needs a key that is not in the ring, maybe many times in a row."""
        self._reports.on_unknown_key = hook

    async def load(self) -> None:
        """Report every stored token, and keep reporting."""
        with raised_as(StoreUnavailable):
            await self._client.ensure_path(TokenChangeZnode.PARENT)
            await self._client.ensure_path(TokenZnode.PARENT)
            await self._changes.start()
        self._codec.get_ready()

    async def close(self) -> None:
        """Stop reporting and purging; the client stays open."""
        await self._changes.close()
        self._reports.close()
        self._codec.close()

    async def read(self, token_id: str) -> StoredToken | None:
        """Return the token as it is now; a text that cannot be an id costs nothing."""
        if not is_node_name(token_id):
            return None
        with raised_as(StoreUnavailable):
            synced = await self._sync.sent()
            read: asyncio.Future[Any] = self._client.get(
                TokenZnode.path(token_id), arrived=lambda found, error: self._token_found(token_id, error or found)
            )
            await synced
            return await _reported(await read)

    async def create(self, token: Token) -> StoredToken:
        """Write a new token."""
        data = await self._codec.encode(token)
        self._creations.require_size(len(data))
        operation = Create(TokenZnode.path(token.token_id), data)
        stored: StoredToken = await self._change(token.token_id, None, operation, lambda _: StoredToken(token, 0, 0))
        return stored

    async def update(self, token: Token, version: int) -> StoredToken:
        """Write a token that is stored at `version`."""
        operation = SetData(TokenZnode.path(token.token_id), await self._codec.encode(token), version)
        stored: StoredToken = await self._change(
            token.token_id, version, operation, lambda stat: StoredToken(token, stat.version, stat.modified_zxid)
        )
        return stored

    async def delete(self, token_id: str, version: int | None) -> None:
        """Delete a token that is stored at `version`, None = at any."""
        guard = ANY_VERSION if version is None else version
        await self._change(token_id, guard, Delete(TokenZnode.path(token_id), guard), lambda _: None)

    async def catch_up(self) -> None:
        """Return when every change acknowledged anywhere before this call has been reported."""
        with raised_as(StoreUnavailable):
            await self._changes.catch_up()

    async def prove(self) -> None:
        """Do as `catch_up`, with a write that a quorum agrees on."""
        with raised_as(StoreUnavailable):
            await self._changes.prove()

    async def time_ms(self) -> int:
        """Return the time of ZooKeeper."""
        with raised_as(StoreUnavailable):
            return await zookeeper_time_ms(self._client)

    @property
    def untried(self) -> Collection[str]:
        """The ids of the unreadable tokens that have not been tried with the keys of now."""
        return self._reports.untried

    async def reread_unreadable(self) -> None:
        """Try the unreadable tokens again."""
        with raised_as(StoreUnavailable):
            await self._read_all(list(self.untried))

    async def _change(
        self,
        token_id: str,
        version: int | None,
        operation: Operation,
        state: Callable[[Any], StoredToken | None],
    ) -> Any:
        """Carry out a change and its announcement; `state` makes the new state of the result of the operation."""
        announcement = Create(TokenChangeZnode.PREFIX, TokenChangeZnode.encode(token_id), sequence=True)

        def arrived(results: Sequence[str | Stat | None] | None, error: ZooKeeperError | None) -> StoredToken | None:
            if error is not None:
                raise self._refusal(token_id, version, error)
            result, change_path = results or (None, None)
            if isinstance(change_path, str):
                self._changes.reported(change_path)
            stored = state(result)
            self._reports.tell(token_id, stored, operation.data if isinstance(operation, Create) else b"")
            return stored

        try:
            return await self._writes.multi([operation, announcement], arrived=arrived)
        except RequestTooLarge as error:
            raise TokenTooLarge(error.size, error.limit) from error
        except ZooKeeperError as error:  # it was not sent, or its answer will not come
            raise StoreUnavailable(str(error)) from error

    def _refusal(self, token_id: str, version: int | None, error: ZooKeeperError) -> Exception:
        cause = error.cause if isinstance(error, MultiFailed) and error.index == 0 else None
        if isinstance(cause, NodeExists | VersionMismatch):
            return VersionConflict(token_id, version)
        if isinstance(cause, NoNode) and version is not None:
            self._reports.tell(token_id, None)
            return TokenNotFound(token_id)
        unavailable = StoreUnavailable(str(error))
        unavailable.__cause__ = error
        return unavailable

    async def _read_changed(self, changes: Collection[bytes]) -> None:
        """Read tokens again that other processes changed."""
        token_ids = (TokenChangeZnode.decode(change) for change in changes)
        await self._read_all(filter(is_node_name, token_ids), if_changed=True)

    async def _compare(self) -> None:
        """Read all tokens, and tell which of the known ones are gone."""
        await self._client.ensure_path(TokenZnode.PARENT)
        token_ids = sorted(await self._client.children(TokenZnode.PARENT, arrived=self._list_arrived))
        begin = int(len(token_ids) * self._begin_at)
        await self._read_all(token_ids[begin:] + token_ids[:begin], if_changed=True)
        _LOG.info("%d delegation tokens read", len(token_ids))
        if unreadable := self._reports.unreadable:
            _LOG.warning("%d delegation tokens are not readable, and not served", len(unreadable))

    async def _read_all(self, token_ids: Iterable[str], *, if_changed: bool = False) -> None:
        """Read many tokens; all of them have been reported when this returns."""
        left = iter(token_ids)

        def arrived(path: str, found: Znode | ZooKeeperError) -> _Read:
            return self._token_found(path.rpartition("/")[2], found, if_changed=if_changed)

        async def lane() -> None:
            while batch := [TokenZnode.path(token_id) for token_id in islice(left, BATCH)]:
                for read in await self._reads.read(batch, arrived):
                    await _reported(read)

        await run_lanes(lane, READING_LANES, raises=ZooKeeperError)

    def _list_arrived(self, token_ids: list[str] | None, error: ZooKeeperError | None) -> list[str]:
        """Compare the known entries with those in ZooKeeper, at the moment at which both are of the same time."""
        if error is not None or token_ids is None:
            raise error or NoNode(TokenZnode.PARENT)
        self._reports.listed(token_ids)
        return token_ids

    def _token_found(self, token_id: str, found: Znode | ZooKeeperError, *, if_changed: bool = False) -> _Read:
        """Report a token that was read; `if_changed` as for TokenReports.read."""
        if isinstance(found, NoNode):
            self._reports.tell(token_id, None)
            return None
        if isinstance(found, DeniedByAcl):
            self._reports.denied(token_id)
            return None
        if isinstance(found, ZooKeeperError):
            raise found
        return self._reports.read(token_id, found, if_changed=if_changed)


async def _reported(read: _Read) -> StoredToken | None:
    """Wait until the token that was read has been reported; a caller that gives up does not stop the opening."""
    return await asyncio.shield(read) if isinstance(read, asyncio.Future) else read


_Read = StoredToken | Opening | None
