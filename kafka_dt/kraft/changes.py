"""Create, renew and expire tokens in the cluster: a TokenChanges.

The cluster decides. A client whose login passed to the cluster has a connection of its own there, and the change goes
over that. For the others the gateway makes the change. Then this node applies one of the cluster's rules, whether the
client may renew or expire the token, because the cluster sees the gateway instead of the client. The gateway is a
renewer of each token that a node creates. Of tokens that were made at brokers it may change those whose owners have
named it as a renewer.

A controller finds a new token when its own image has it, some tenths of a second after the create. So "not found" is
believed only when a proof says so, too; otherwise the node asks again. For the same reason a renewal that follows a
deletion at once may bring the token back: then the worker that has deleted it deletes it again.

A broker that hangs must not keep a stolen token alive. So a deletion that a broker does not answer goes to another one,
too. If the connection was the client's own, the gateway deletes the token then, as far as it and the client may. Other
changes go to one broker: done late, they could undo what came after them. They wait for that broker, and a deletion
does not wait for them: some connections are for deletions alone, and a deletion takes no turn among the changes of its
token.

A change that ends a token sooner is told to the other nodes, over whichever connection it was made.

Source: org.apache.kafka.controller.DelegationTokenControlManager; docs/decisions/0025-the-clusters-own-tokens.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from kafka_dt import client
from kafka_dt.kraft import requests
from kafka_dt.kraft.traced import TracedChannel
from kafka_dt.tokens import (
    DelegationToken,
    Expiry,
    Renewal,
    StoredToken,
    StoreUnavailable,
    TokenAuthorizationFailed,
    TokenError,
    TokenExpired,
    TokenNotFound,
    TokenOwnerMismatch,
    TokensDisabled,
)
from kafka_dt.tokens.sharing import KeyedLocks

if TYPE_CHECKING:
    from kafka_dt.client.connection import Connection
    from kafka_dt.client.login import Channel
    from kafka_dt.client.session import ClientSession
    from kafka_dt.kraft.knowledge import Knowledge
    from kafka_dt.kraft.source import ClusterTokens
    from kafka_dt.tokens import Change, KnownTokens, NewToken, OwnConnection, Principal, Token
    from kafka_dt.tracing import Spans

_LOG = logging.getLogger(__name__)

CONNECTIONS: Final = 8
"""How many changes a worker has under way at once, each on a connection of its own, besides deletions."""
DELETIONS: Final = 8
"""How many deletions it has under way at once."""
DELETION_PATIENCE_S: Final = (5.0, 10.0, 15.0)
"""How long a deletion waits for one broker before it goes to the next one, in seconds: together a request's timeout."""
MAX_ATTEMPTS: Final = 10
"""How often a change is sent that the controller finds no token for, though the brokers have it."""


class Connections:
    """The connections for changes; each carries one request at a time.

    `make` makes the session of one, which connects when it is first used.
    """

    def __init__(self, make: Callable[[], ClientSession]) -> None:
        self._make = make
        self._idle: list[ClientSession] = []
        self._places = asyncio.Semaphore(CONNECTIONS)
        self._for_deletions = asyncio.Semaphore(DELETIONS)

    @asynccontextmanager
    async def one(self, *, deletes: bool = False) -> AsyncIterator[Connection]:
        """Give a connection that no other task uses.

        Args:
            deletes: whether it is for a deletion, which waits for no other change.

        Raises:
            StoreUnavailable: the cluster cannot be asked, or the outcome of what was asked is not known.
        """
        async with self._for_deletions if deletes else self._places:
            session = self._idle.pop() if self._idle else self._make()
            try:
                with _unavailable():
                    yield await session.ready()
            except client.TokensDisabled:
                # The settings of this one broker; the next change goes to another.
                await session.close()
                raise
            finally:
                self._idle.append(session)

    async def close(self) -> None:
        """Close those that are not in use."""
        idle, self._idle = self._idle, []
        for session in idle:
            await session.close()


@contextmanager
def _unavailable() -> Iterator[None]:
    try:
        yield
    except (client.ConnectionFailed, client.LoginFailed, client.UnsupportedByServer) as error:
        raise StoreUnavailable(str(error)) from error


class ClusterChanges:
    """Changes tokens.

    Args:
        connections: to the brokers, as the gateway's own user.
        gateway: that user's principal.
        source: proves what the cluster has.
        knowledge: is told the outcome of each change.
        cache: what the node knows of the tokens.
        now_ms: the clock, in milliseconds since 1970.
        tell: is called with the id and the HMAC of a token that was ended, and when it ends now (None: it was
            deleted), for the other nodes.
        spans: of requests; None where they are not traced.
    """

    hmac_sizes: Final = (64,)
    """Kafka's are HMAC-SHA512."""
    removes_expired: Final = True
    """The controllers do."""

    def __init__(
        self,
        connections: Connections,
        gateway: Principal,
        source: ClusterTokens,
        knowledge: Knowledge,
        cache: KnownTokens,
        *,
        now_ms: Callable[[], int],
        tell: Callable[[str, bytes, int | None], None] = lambda *_: None,
        spans: Spans | None = None,
    ) -> None:
        self._connections = connections
        self._spans = spans
        self._gateway = gateway
        self._source = source
        self._knowledge = knowledge
        self._cache = cache
        self._now_ms = now_ms
        self._tell = tell
        self._locks = KeyedLocks()
        self._deleting: dict[str, asyncio.Task[None]] = {}
        """What deletes tokens again, by their ids."""
        knowledge.on_return(self._returned)

    async def create(self, wanted: NewToken) -> DelegationToken:
        """Create a token, for its owner and with the gateway as a renewer."""
        try:
            async with self._connection(wanted.own) as connection:
                created = await requests.create(connection, wanted, self._gateway)
        except client.TokenAuthorizationFailed as refusal:
            refused = self._gateway if wanted.own is None else wanted.requester
            raise TokenAuthorizationFailed(refused, wanted.owner) from refusal
        except client.RequestRefused as refusal:
            raise _in_the_domain(refusal) from refusal
        self._knowledge.changed(created.token.token_id, StoredToken(created.token, hmac=created.hmac))
        return created

    async def change(self, token_id: str, hmac: bytes, change: Change) -> int:
        """Renew or expire a token, again while only the controller does not know it yet."""
        # A client whose own connection is slow must not hold up the others, who may be revoking the token. Nor may a
        # broker that hangs with a renewal: what a deletion finds out is not undone by a later answer.
        waits = change.own is None and not change.deletes
        async with self._locks.hold(token_id) if waits else nullcontext():
            for _ in range(MAX_ATTEMPTS):
                held = self._cache.get(token_id)
                if held is None or not held.has_hmac(hmac):
                    raise TokenNotFound(token_id)
                try:
                    return await self._send(held, change, self._own_connection(held.token, change))
                except client.TokenNotFound:
                    await self._source.prove()
        raise StoreUnavailable(f"the controllers do not find token {token_id}, which the brokers have")

    async def remove(self, token_id: str, past_ms: int) -> Token | None:  # noqa: ARG002 - the interface's
        """Remove nothing: the controllers remove expired tokens."""
        return None

    async def close(self) -> None:
        """Send no more."""
        tasks = tuple(self._deleting.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._connections.close()

    def _returned(self, stored: StoredToken) -> None:
        """Delete a token again that this worker has deleted; the next proof tells whether it has gone."""
        token_id = stored.token.token_id
        if token_id in self._deleting:
            return
        _LOG.warning("Delegation token %s has come back after it was deleted: deleting it again", token_id)
        task = self._deleting[token_id] = asyncio.create_task(self._delete_again(stored))
        task.add_done_callback(lambda _: self._deleting.pop(token_id))

    async def _delete_again(self, stored: StoredToken) -> None:
        assert stored.hmac is not None  # noqa: S101 - a cluster tells the HMAC of each token
        with suppress(StoreUnavailable, TimeoutError, client.RequestRefused):
            try:
                async with (
                    asyncio.timeout(DELETION_PATIENCE_S[0]),
                    self._connections.one(deletes=True) as connection,
                ):
                    await requests.change(connection, stored.hmac, Expiry(self._gateway, period_ms=-1))
                self._tell(stored.token.token_id, stored.hmac, None)
            except client.TokenOwnerMismatch:
                # It was deleted on the connection of its owner, who alone can do so again.
                _LOG.error("The gateway is no renewer of delegation token %s: expire it again", stored.token.token_id)
                self._knowledge.give_up(stored.token.token_id)

    async def _send(self, held: DelegationToken, change: Change, own: OwnConnection | None) -> int:
        """Send a change, as the client itself or as the gateway, and tell its outcome; raises client.TokenNotFound."""
        token_id = held.token.token_id
        deleted = change.deletes
        try:
            if deleted:
                expiry_timestamp_ms = await self._delete(held, change, own)
            else:
                expiry_timestamp_ms = await self._request(held, change, own)
        except client.TokenNotFound:
            raise
        except client.TokenExpired as refusal:
            raise TokenExpired(token_id) from refusal
        except client.TokenOwnerMismatch as refusal:
            if own is not None:
                raise TokenOwnerMismatch(change.requester) from refusal
            _LOG.warning(
                "The gateway is no renewer of delegation token %s, which was made at a broker: only there can it be "
                "renewed and expired, or name %s as a renewer of such tokens",
                *(token_id, self._gateway),
            )
            raise TokenOwnerMismatch(self._gateway) from refusal
        except client.RequestRefused as refusal:
            raise _in_the_domain(refusal) from refusal
        if deleted or expiry_timestamp_ms < held.token.end_timestamp_ms:
            self._tell(token_id, held.hmac, None if deleted else expiry_timestamp_ms)
        if deleted:
            self._knowledge.changed(token_id, None)
        elif self._cache.get(token_id) is held:
            token = replace(held.token, expiry_timestamp_ms=expiry_timestamp_ms)
            self._knowledge.changed(token_id, StoredToken(token, hmac=held.hmac))
        else:
            # Another change was seen meanwhile, which may be later than this one.
            await self._source.prove()
        return expiry_timestamp_ms

    async def _delete(self, held: DelegationToken, change: Change, own: OwnConnection | None) -> int:
        """Delete a token, if need be at several brokers, then as the gateway; raises client.TokenNotFound."""
        token_id = held.token.token_id
        as_client, reason = own is not None, ""
        for patience_s in DELETION_PATIENCE_S:
            try:
                async with asyncio.timeout(patience_s):
                    return await self._request(held, change, own)
            except client.TokenNotFound:
                # A broker that has not answered may have deleted it.
                if reason:
                    await self._source.prove()
                if not reason or self._cache.get(token_id) is not None:
                    raise
                return self._now_ms()
            except client.TokenOwnerMismatch as refusal:
                if reason and as_client:
                    raise StoreUnavailable(reason) from refusal
                raise
            except (TimeoutError, StoreUnavailable) as error:
                reason = str(error) or f"no broker has answered within {patience_s:g} s"
                _LOG.warning("Delegation token %s may not have been deleted: %s", token_id, reason)
                if as_client and not held.token.may_renew(change.requester):
                    break  # the cluster alone could say that it may
                own = None
        raise StoreUnavailable(reason)

    async def _request(self, held: DelegationToken, change: Change, own: OwnConnection | None) -> int:
        async with self._connection(own, deletes=change.deletes) as connection:
            return await requests.change(connection, held.hmac, change)

    def _own_connection(self, token: Token, change: Change) -> OwnConnection | None:
        """Return the client's own connection, on which the cluster decides; None if the gateway makes the change.

        A client without one that may not change the token is refused here, as the cluster would: of a renewal an
        expired token comes first.

        Raises:
            TokenOwnerMismatch, TokenExpired: the client is neither the owner nor a renewer.
        """
        change.on_token(token)
        if token.may_renew(change.requester):
            return change.own
        if isinstance(change, Expiry) and change.by_super_user:
            return None
        if change.own is not None:
            return change.own
        if isinstance(change, Renewal) and token.is_expired(self._now_ms()):
            raise TokenExpired(token.token_id)
        raise TokenOwnerMismatch(change.requester)

    @asynccontextmanager
    async def _connection(self, own: OwnConnection | None, *, deletes: bool = False) -> AsyncIterator[Channel]:
        """Give the client's own connection, else one of the gateway's; raises as `Connections.one`."""
        if own is None:
            async with self._connections.one(deletes=deletes) as connection:
                yield self._traced(connection)
            return
        with _unavailable():
            yield self._traced(cast("Channel", own))

    def _traced(self, channel: Channel) -> Channel:
        return channel if self._spans is None else TracedChannel(channel, self._spans)


def _in_the_domain(refusal: client.RequestRefused) -> TokenError:
    """Return the error of the domain for a refusal that has no other meaning here."""
    if isinstance(refusal, client.TokensDisabled):
        return TokensDisabled("delegation.token.secret.key of the upstream cluster")
    return StoreUnavailable(str(refusal))
