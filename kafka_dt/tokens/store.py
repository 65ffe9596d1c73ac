"""What the domain asks of the place that keeps the tokens.

`TokenStore` is the interface; `kafka_dt.zookeeper` implements it. One store object belongs to one process, has one
listener (the cache of that process) and is used from one event loop. The store keeps no tokens in memory; it knows the
ids it has reported, so that it can say which are gone after it has been cut off.

How a store is used:

    store.on_change(listener)       # first, and once
    await store.load()              # reports every token; from then on every change is reported
    stored = await store.create(token)
    stored = await store.update(changed_token, stored.version)
    await store.delete(token_id, stored.version)

The contract, which a cache and "no lost update, no resurrection" rest on:

1.  *One way in.* Whatever the store learns about a token, by load, by a change of another node, by its own create,
    update and delete, or by read, it tells the listener: the new state, or None when the token is gone. Nothing
    reaches the cache in another way.
2.  *Told before told.* create, update, delete and read have called the listener with their outcome before they return
    (or raise VersionConflict or TokenNotFound for a reason they have seen: see 5). So the node that made a change
    obeys it at once.
3.  *Order.* For one token id the listener hears states in the order in which they happened, never an older one after a
    newer one. It has to be called where the answer of the store arrives, in the order of arrival, before a task switch
    can let a later answer overtake. `revision` is the second line of defence: a listener may drop a state whose
    revision is not above that of the state it holds.
4.  *Guard.* A write happens only if the stored version is the given one, and it happens wholly (the token and the news
    of it for other nodes) or not at all.
5.  *Conflict.* If the version differs, nothing is written and VersionConflict is raised; the store need not read the
    new state, the caller does with `read`. If the token is gone, the listener is told None and TokenNotFound is raised.
6.  *Other nodes.* A change that was acknowledged anywhere is reported here within a second while connected, and after
    a time without connection it is found by comparing everything: each change since is reported, and None for every
    id reported before that is gone (but not for one created here in the meantime).
7.  *Unavailable.* While `connected` is false every coroutine here raises StoreUnavailable at once, without waiting for
    the connection to come back. If the connection breaks while a change is under way, its outcome is unknown:
    StoreUnavailable is raised, and should the change have been made, the listener hears of it by 6. A change is never
    sent a second time by the store on its own.
8.  *Unreadable.* A token that is there but cannot be read, because it does not decode or needs a secret key that is
    not in the ring, is logged once by the store and counts as gone. That includes those whose key leaves the ring
    later. The store remembers which these are, and `reread_unreadable` reads them again when the keys
    have changed.

The listener is called in the event loop's thread; it returns quickly, does not raise and does not call the store.

Source: DESIGN "No lost update, no resurrection"; kafka.server.DelegationTokenManagerZk, kafka.zk.KafkaZkClient
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kafka_dt.tokens.token import Token


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token as the store holds it."""

    token: Token
    version: int
    """What update and delete are guarded by; opaque otherwise. ZooKeeper: the version of the znode's data."""
    revision: int
    """The place of this state in the order of all changes of the store; a later state of the same id has a higher one,
    also after it was deleted and made again. ZooKeeper: mzxid. 0 where the store cannot tell, which is allowed for
    the answer of a create only: nothing older than that exists."""


ChangeListener = Callable[[str, StoredToken | None], None]
"""Called with the token id, and the new state or None when the token is gone."""


class TokenStore(Protocol):
    """The place that keeps the tokens; the module says what all methods promise together."""

    @property
    def connected(self) -> bool:
        """Whether requests can be made now."""

    def staleness_ms(self) -> int:
        """Return for how long changes of other nodes may have gone unreported, in milliseconds.

        That is the time since a moment until which everything acknowledged anywhere is proved to be reported; it grows
        until the next proof, also while connected. Only a completed catch-up is one.
        """

    def on_change(self, listener: ChangeListener) -> None:
        """Set the one listener; before load, and once."""

    async def load(self) -> None:
        """Report every stored token, and keep reporting changes from then on.

        Other coroutines get their turn while a large load runs. read, create, update and delete may be used during it;
        catch_up waits for it.

        Raises:
            StoreUnavailable: not connected, or cut off during the load; it may be called again.
        """

    async def read(self, token_id: str) -> StoredToken | None:
        """Return the token as it is now, None if there is none.

        "Now" is linearizable: every change acknowledged anywhere before this call is seen. Costs the store one read.

        Raises:
            StoreUnavailable: not connected, or cut off before the answer.
        """

    async def create(self, token: Token) -> StoredToken:
        """Write a new token; returns it with its version.

        Raises:
            VersionConflict: the id is taken; nothing is written, nothing is reported.
            TokenTooLarge: it cannot be stored; nothing is written, nothing is reported.
            TokenLimitExceeded: it has more bytes than the settings allow; nothing is written, nothing is reported.
            StoreUnavailable: not connected, or cut off before the answer (outcome unknown).
        """

    async def update(self, token: Token, version: int) -> StoredToken:
        """Write a token that is stored at `version`; returns it with its new version.

        Raises:
            VersionConflict: somebody else changed it; nothing is written.
            TokenNotFound: it is gone; the listener has been told.
            StoreUnavailable: not connected, or cut off before the answer (outcome unknown).
        """

    async def delete(self, token_id: str, version: int) -> None:
        """Delete a token that is stored at `version`; the listener has been told None when this returns.

        Raises:
            VersionConflict: somebody else changed it; nothing is deleted.
            TokenNotFound: it is gone already; the listener has been told.
            StoreUnavailable: not connected, or cut off before the answer (outcome unknown).
        """

    async def catch_up(self) -> None:
        """Return when every change acknowledged anywhere before this call has been reported to the listener.

        Costs more than a read (the list of recent changes), so callers share it; see `kafka_dt.tokens.sharing`.

        Raises:
            StoreUnavailable: not connected, or cut off before it was done.
        """

    async def prove(self) -> None:
        """Do as `catch_up`, also where a server that is cut off from the others would say that nothing is new.

        That costs the store a write. `staleness_ms` counts from this call when it returns, or from a later moment.

        Raises:
            StoreUnavailable: not connected, or cut off before it was done.
        """

    async def time_ms(self) -> int:
        """Return the time by the clock of the store, of a write that it makes now: milliseconds since 1970 in UTC.

        Raises:
            StoreUnavailable: not connected, or cut off before the answer.
        """

    @property
    def untried(self) -> Collection[str]:
        """The ids of the unreadable tokens that have not been tried with the keys of now."""

    def on_unknown_key(self, hook: Callable[[], None]) -> None:
        """Set the hook that is called when a token needs a key that is not in the ring; often many times in a row."""

    async def reread_unreadable(self) -> None:
        """Read again every token that could not be read, and report those that now can; after the keys have changed.

        Other tokens need not be read, nor those that have been tried with these keys. What is written while this runs
        is reported as ever.

        Raises:
            StoreUnavailable: not connected, or cut off before it was done; what is left waits for the next call.
        """
