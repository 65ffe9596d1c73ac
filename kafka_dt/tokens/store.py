"""The interface of the place that keeps the tokens: a source of tokens, and changes of them.

`TokenSource` tells which tokens there are and what changes; `TokenChanges` makes, changes and removes them. A store has
both, for one process and one event loop; they may be one object. The interfaces ask for no versions, no numbered
changes and no keys. So there are two kinds of stores:

-   A store that only keeps tokens, such as ZooKeeper. This node makes the ids and the HMACs, applies the rules and
    guards its writes: `guarded.py` builds `TokenChanges` on any store that can compare and set.
-   A store that decides itself, such as a Kafka 4 cluster. It gets the request as it is, with the values of `NewToken`
    and `Change`, and tells the HMAC with each token.

How a store is used:

    source.on_change(listener)                  # first, and once
    await source.load()                         # reports every token; from then on every change is reported
    created = await changes.create(new_token)
    await changes.change(token_id, hmac, Renewal(...))

The contract, on which a cache and "a revoked token stays out" rest:

1.  *One way in.* Whatever the store learns about a token, by load, by a change of another node, by a change of this
    one, or by read, it tells the listener: the new state, or None when the token is gone. Nothing reaches the cache in
    another way.
2.  *Told before told.* create, change, remove and read have called the listener with their outcome before they return,
    or raise TokenNotFound for a reason they have seen. So the node that made a change obeys it at once.
3.  *Order.* For one token id the listener hears states in the order in which they happened, never an older one after a
    newer one. It has to be called where the answer of the store arrives, in the order of arrival, before a task switch
    can let a later answer overtake. Where the store numbers its states, the listener may drop one whose `revision` is
    not above that of the state it holds.
4.  *No lost update, no resurrection.* A change is decided on the state that it replaces, and happens wholly (the token
    and its change znode for other nodes) or not at all. A token that was deleted stays deleted.
5.  *Other nodes.* A change that was acknowledged anywhere is reported here within a second while connected, and after
    a time without connection it is found by comparing everything: each change since is reported, and None for every
    id reported before that is gone, but not for one created here in the meantime.
6.  *Staleness.* `staleness_ms` never says less than the age of the oldest change that may be missing here. Beyond
    `max_staleness_ms` nothing that is known is believed.
7.  *Unavailable.* While `connected` is false every coroutine raises StoreUnavailable at once, without waiting for the
    connection to come back. If the connection breaks while a change is under way, its outcome is unknown:
    StoreUnavailable is raised, and should the change have been made, the listener hears of it by 5. A change is never
    sent a second time by the store on its own.

The listener is called in the event loop's thread; it returns quickly, does not raise and does not call the store.

`docs/terms.md#staleness` says what catch-up, proof and staleness mean and who uses them.

Source: docs/decisions/0021-what-a-store-is-asked.md; kafka.server.DelegationTokenManagerZk,
org.apache.kafka.controller.DelegationTokenControlManager
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from kafka_dt.tokens.changes import Change, NewToken
    from kafka_dt.tokens.token import DelegationToken, Token


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token as a store reports it."""

    token: Token
    version: int = 0
    """The store's own guard of a change of this state; opaque to everything else. ZooKeeper: the version of the znode's
    data. 0 where the store needs none."""
    revision: int | None = None
    """The place of this state in the order of all changes of the store; a later state of the same id has a higher one,
    also after it was deleted and made again. None where the store does not number its changes. ZooKeeper: mzxid, and 0
    in the answer to a create, which does not tell it: nothing older than that exists."""
    hmac: bytes | None = field(default=None, repr=False)
    """The raw HMAC, where the store tells it; None where it is made of this node's secret keys."""


NEVER_MS: Final = 2**63
"""The staleness of what is not proved: above any limit that can be set."""

ChangeListener = Callable[[str, StoredToken | None], None]
"""Called with the token id, and the new state or None when the token is gone."""


class TokenSource(Protocol):
    """Tells which tokens there are; the module says what all methods promise together."""

    @property
    def connected(self) -> bool:
        """Whether requests can be made now."""

    @property
    def max_staleness_ms(self) -> int:
        """How old what is known may be before token logins stop, in milliseconds."""

    def source_of(self, token_id: str | None) -> TokenSource:
        """Return the source that answers for a token, or for new tokens (None): this one, unless it is made of several.

        A source of several (`two_stores.py`) answers itself for a token that none of them has reported.
        """

    def staleness_ms(self) -> int:
        """Return for how long changes of other nodes may have gone unreported, in milliseconds.

        That is the time since a moment until which everything acknowledged anywhere is proved to be reported; it grows
        until the next proof, also while connected. Only a completed catch-up is one. NEVER_MS if nothing is proved.
        """

    def on_change(self, listener: ChangeListener) -> None:
        """Set the one listener; before load, and once."""

    async def load(self) -> None:
        """Report every stored token, and keep reporting changes from then on; after StoreUnavailable, call it again.

        Other coroutines get their turn while a large load runs. All other requests may be made during it; catch_up
        waits for it.
        """

    async def read(self, token_id: str) -> StoredToken | None:
        """Return the token as it is now, None if there is none; costs the store one read.

        Every change acknowledged anywhere before this call is seen. A store that cannot promise that says how late it
        may be by `staleness_ms`.
        """

    async def catch_up(self) -> None:
        """Return when every change acknowledged anywhere before this call has been reported to the listener.

        Costs more than a read (the list of recent changes), so callers share it; see `kafka_dt.tokens.sharing`.
        """

    async def prove(self) -> None:
        """Do as `catch_up`, also where a server that is cut off from the others would say that nothing is new.

        That costs the store a write. `staleness_ms` counts from this call when it returns, or from a later moment.
        """

    async def time_ms(self) -> int:
        """Return the time by the clock of the store, of a write that it makes now: milliseconds since 1970 in UTC."""


class TokenChanges(Protocol):
    """Makes, changes and removes tokens; the module says what all methods promise together."""

    @property
    def hmac_sizes(self) -> Collection[int]:
        """The lengths of HMACs, in bytes; bytes of another length are the HMAC of no token."""

    @property
    def removes_expired(self) -> bool:
        """Whether the store removes expired tokens by itself; then it is not asked for its time, nor to remove any."""

    async def create(self, wanted: NewToken) -> DelegationToken:
        """Make a token, and return it with its HMAC.

        Raises:
            TokenTooLarge, TokenLimitExceeded: its bytes; nothing is written, nothing is reported.
        """

    async def change(self, token_id: str, hmac: bytes, change: Change) -> int:
        """Apply a change to the token with that id and that HMAC, as `change.decide` says, or as the store decides.

        Returns:
            The token's expiry timestamp in milliseconds; now, if it was deleted.

        Raises:
            TokenNotFound: there is no such token, or it is gone now; the listener has been told.
            StoreUnavailable: also if others change this token all the time.
            TokenError: what the change raises; TokenExpired only if the store says so, too.
        """

    async def remove(self, token_id: str, past_ms: int) -> Token | None:
        """Delete a token if it expired before an instant, and return it; None if it is not deleted here.

        `past_ms` is milliseconds since 1970 in UTC, and has passed by any clock.
        """


class KeyedTokens(Protocol):
    """Tokens that a store cannot read without a secret key.

    A token that is there but cannot be read, because it does not decode or needs a secret key that is not in the ring,
    is logged once by the store and counts as gone. That includes those whose key leaves the ring later. The store
    remembers which these are.
    """

    @property
    def unreadable_tokens(self) -> int:
        """How many there are that cannot be read."""

    @property
    def untried(self) -> Collection[str]:
        """The ids of those that have not been tried with the keys of now."""

    def on_unknown_key(self, hook: Callable[[], None]) -> None:
        """Set the hook that is called when a token needs a key that is not in the ring; often many times in a row."""

    async def reread_unreadable(self) -> None:
        """Read again every token that could not be read, and report those that now can; after the keys have changed.

        Other tokens need not be read, nor those that have been tried with these keys. What is written while this runs
        is reported as ever. If the store is cut off, what is left waits for the next call.
        """
