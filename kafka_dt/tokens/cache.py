"""What this process knows of the tokens: a copy of the store in memory, with the indexes that requests need.

The cache is the store's listener (`apply`), and nothing else fills it. It asks no store and has no clock: the manager
decides how old it may be. A lookup by id or by HMAC is one dictionary access; what concerns a principal is indexed. It
is made for 100,000 tokens and more: an HMAC is computed once, when its token arrives, and equal principals are one
object.

A token whose secret key is not in the keyring has no HMAC and is not held: when a key leaves the ring its tokens go at
once, and when it comes back the store reports them again. A token that may be of any key is known by the HMACs of the
new ring at once, which takes about ten microseconds a token. All of this belongs to the event loop's thread.

Source: org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache; KIP-373;
kafka.server.DelegationTokenManager.getTokens, filterToken
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from kafka_dt.tokens.store import StoredToken
from kafka_dt.tokens.token import DelegationToken, Token

if TYPE_CHECKING:
    from kafka_dt.tokens.keyring import Keyring
    from kafka_dt.tokens.principal import Principal
    from kafka_dt.tokens.sharing import Turns

_DELEGATION: Final = attrgetter("delegation")

_Principals: TypeAlias = "tuple[Principal, Principal, tuple[Principal, ...]]"
"""The owner, the requester and the renewers of a token."""

TokenListener = Callable[[str, Token | None, Token | None], None]
"""Called with the token id, what was known before (None: nothing) and what is known now (None: it is gone).

Both are equal if the token is only shown with another HMAC now.
"""


@dataclass(frozen=True, slots=True)
class CachedToken:
    """A token with its secret, and where it stands in the store."""

    delegation: DelegationToken
    version: int
    """What a change of this state is guarded by."""
    revision: int | None
    """The place of this state in the order of all changes of the store; None where the store does not number them."""
    keyed: bool
    """Whether its HMAC is made with the secret keys of this node; if not, its store has told it."""

    def is_as_new_as(self, revision: int | None) -> bool:
        """Say whether this state is known to be as new as, or newer than, one of that place."""
        return self.revision is not None and revision is not None and revision <= self.revision

    @property
    def token(self) -> Token:
        """The token without its secret."""
        return self.delegation.token


class KnownTokens(Protocol):
    """What a store asks of the cache that it reports to: the tokens that it has reported."""

    def get(self, token_id: str) -> DelegationToken | None:
        """Return the token with that id, expired or not."""

    def held(self, token_id: str) -> CachedToken | None:
        """Return the token with that id and the version that guards a change of it."""

    def copied_ids(self) -> Collection[str]:
        """Return the ids of all of them, as they are now."""


class TokenCache:
    """The tokens by id, by HMAC and by the principals they concern.

    Args:
        keyring: makes the HMACs that the store does not tell; None where it tells all of them, and where tokens are
            disabled; then the cache stays empty.
    """

    __slots__ = ("_concerned", "_ids", "_listeners", "_token_ids", "_tokens", "keyring")

    def __init__(self, keyring: Keyring | None) -> None:
        self.keyring = keyring
        self._tokens: dict[str, CachedToken] = {}
        self._ids: dict[str, None] = {}
        """The keys of `_tokens`; to copy those takes ten times as long."""
        self._token_ids: dict[bytes, str] = {}
        self._concerned = _ConcernedPrincipals()
        self._listeners: tuple[TokenListener, ...] = ()
        if keyring is not None:
            keyring.on_change(lambda: self._keys_changed(keyring))

    def __len__(self) -> int:
        return len(self._tokens)

    def get(self, token_id: str) -> DelegationToken | None:
        """Return the token with that id, expired or not."""
        held = self._tokens.get(token_id)
        return None if held is None else held.delegation

    def held(self, token_id: str) -> CachedToken | None:
        """Return the token with that id and the version that guards a change of it."""
        return self._tokens.get(token_id)

    def by_hmac(self, hmac: bytes) -> DelegationToken | None:
        """Return the token that is known by exactly that HMAC.

        The time this takes tells nothing about near misses: Python's hash of bytes is keyed anew in each process.
        """
        token_id = self._token_ids.get(hmac)
        return None if token_id is None else self._tokens[token_id].delegation

    def concerning(self, principals: Iterable[Principal] | None) -> list[DelegationToken]:
        """Return the tokens that concern one of `principals`, each once; None = all tokens."""
        if principals is None:
            return list(map(_DELEGATION, self._tokens.values()))
        return list(map(_DELEGATION, map(self._tokens.__getitem__, self._concerned.token_ids(principals))))

    async def select(
        self,
        requester: Principal,
        owners: Collection[Principal] | None,
        visible: Callable[[Token], bool],
        turns: Turns,
    ) -> AsyncIterator[list[str]]:
        """Give the ids of the tokens that concern `owners` and that `requester` may see, in batches.

        The selection begins with the ids that are there. A token that has gone when its turn comes is left out; all
        tokens of a batch are there when it is given. To copy the ids is the one step without a pause; decision 0018
        says how long it takes.

        Args:
            requester: who asks; it sees the tokens that concern it.
            owners: whose tokens are asked for; None = everybody's.
            visible: asked for the other tokens, once each.
            turns: the work pauses between these.
        """
        own, tokens = self._concerned.ids(requester), self._tokens
        async for batch in turns.take(await self._copied_ids(owners, turns)):
            yield [
                token_id
                for token_id in batch
                if token_id in own or ((held := tokens.get(token_id)) is not None and visible(held.delegation.token))
            ]

    def copied_ids(self, principal: Principal | None = None) -> Collection[str]:
        """Return the ids of the tokens that concern `principal`, as they are now; None = all tokens."""
        return self._ids.copy() if principal is None else self._concerned.copied_ids(principal)

    def count_concerning(self, principal: Principal) -> int:
        """Return how many tokens concern `principal`."""
        return len(self._concerned.ids(principal))

    def count_owned(self, principal: Principal) -> int:
        """Return how many tokens `principal` owns, expired ones included; takes no longer where they are many."""
        return self._concerned.count_owned(principal)

    def on_change(self, listener: TokenListener) -> None:
        """Call `listener` after every change of the cache, at once and in order; it must not raise.

        `kafka_dt.tokens.token.ends_sooner` says which changes are revocations.
        """
        self._listeners = (*self._listeners, listener)

    def apply(self, token_id: str, stored: StoredToken | None) -> None:
        """Take over a state the store reports: this is the listener that a TokenSource is given."""
        if stored is None:
            self.remove(token_id)
        else:
            self.put(stored)

    def put(self, stored: StoredToken) -> None:
        """Take over a token's state, unless the one that is held is as new or newer.

        A store reports in order; should an answer overtake another all the same, the older one has no effect here.
        """
        token_id = stored.token.token_id
        before = self._tokens.get(token_id)
        if before is not None:
            if before.is_as_new_as(stored.revision):
                return
            if stored.token.key_id is None and before.token.key_id is not None:
                # A broker that renews a token writes it without the key's id; which key made it stays true.
                stored = replace(stored, token=replace(stored.token, key_id=before.token.key_id))
        keyed = stored.hmac is None
        if stored.hmac is not None:
            hmacs: tuple[bytes, ...] = (stored.hmac,)
        elif before is not None and before.token.key_id == stored.token.key_id:
            hmacs = before.delegation.hmacs
        else:
            hmacs = self._hmacs(stored.token)
        if not hmacs:
            self.remove(token_id)
            return
        token = self._shared(stored.token, None if before is None else before.token)
        delegation = DelegationToken(token, hmacs[0], hmacs[1:])
        self._enter(CachedToken(delegation, stored.version, stored.revision, keyed), before)

    def remove(self, token_id: str) -> None:
        """Forget a token; one that is not held is no error."""
        before = self._tokens.pop(token_id, None)
        if before is None:
            return
        del self._ids[token_id]
        for hmac in before.delegation.hmacs:
            del self._token_ids[hmac]
        self._concerned.remove(before.token)
        self._tell(token_id, before.token, None)

    async def _copied_ids(self, owners: Collection[Principal] | None, turns: Turns) -> Collection[str]:
        """Return the ids of the tokens that concern `owners`, each once, as they are now."""
        if owners is None or len(owners) == 1:
            return self.copied_ids(*(owners or ()))
        found: dict[str, None] = {}
        async for batch in turns.take(dict.fromkeys(owners)):
            for owner in batch:
                async for ids in turns.take(self.copied_ids(owner)):
                    found.update(dict.fromkeys(ids))
        return found

    def _enter(self, held: CachedToken, before: CachedToken | None) -> None:
        """Hold a state of a token by its id and its HMACs, and tell the listeners what has changed."""
        token, hmacs = held.token, held.delegation.hmacs
        self._tokens[token.token_id] = held
        self._ids[token.token_id] = None
        # The id that is the key of one dictionary is the value of the other: one text a token, not three.
        for hmac in hmacs:
            self._token_ids[hmac] = token.token_id
        if before is None:
            self._tell(token.token_id, None, token)
        elif gone := [hmac for hmac in before.delegation.hmacs if hmac not in hmacs]:
            for hmac in gone:
                del self._token_ids[hmac]
            # A client may have logged in by the old HMAC: to the sessions this token is another.
            self._tell(token.token_id, before.token, None)
            self._tell(token.token_id, None, token)
        elif before.token != token or before.delegation.hmac != held.delegation.hmac:
            self._tell(token.token_id, before.token, token)

    def _take_hmacs(self, before: CachedToken, hmacs: tuple[bytes, ...]) -> None:
        """Know a token by other HMACs."""
        if hmacs == before.delegation.hmacs:
            return
        # Of equal bytes those that are held already, which are keys of the index.
        held = {hmac: hmac for hmac in before.delegation.hmacs}
        shown, *others = (held.get(hmac, hmac) for hmac in hmacs)
        delegation = DelegationToken(before.token, shown, tuple(others))
        self._enter(replace(before, delegation=delegation), before)

    def _shared(self, token: Token, before: Token | None) -> Token:
        """Return an equal token made of what is held already, and enter it in the index of principals."""
        if before is None:
            owner, requester, renewers = self._concerned.add(token)
        else:
            owner, requester, renewers = self._concerned.change(before, token)
        return Token(
            token_id=token.token_id if before is None else before.token_id,
            owner=owner,
            requester=requester,
            renewers=renewers,
            issue_timestamp_ms=token.issue_timestamp_ms,
            max_timestamp_ms=token.max_timestamp_ms,
            expiry_timestamp_ms=token.expiry_timestamp_ms,
            key_id=None if token.key_id is None else sys.intern(token.key_id),
        )

    def _hmacs(self, token: Token) -> tuple[bytes, ...]:
        if self.keyring is None:
            raise ValueError("without a keyring only tokens whose store tells their HMAC can be held")
        return self.keyring.hmacs(token.token_id, token.key_id)

    def _keys_changed(self, keyring: Keyring) -> None:
        """Obey another ring: this is the listener that the keyring is given."""
        for held in [each for each in self._tokens.values() if each.keyed]:
            token = held.token
            if token.key_id is None:
                self._take_hmacs(held, self._hmacs(token))
            elif keyring.get(token.key_id) is None:
                self.remove(token.token_id)

    def _tell(self, token_id: str, before: Token | None, after: Token | None) -> None:
        for listener in self._listeners:
            listener(token_id, before, after)


@dataclass(slots=True)
class _Concerned:
    """A principal, and the ids of the tokens that concern it, in the order of their arrival."""

    principal: Principal
    token_ids: dict[str, None]
    owned: int = 0
    """How many of them it owns."""


class _ConcernedPrincipals:
    """The principals that tokens concern, and the ids of those tokens.

    Equal principals become one object, because the same owner is in thousands of tokens: `add` and `change` give back
    those of which the token is to be made.
    """

    __slots__ = ("_concerned",)

    def __init__(self) -> None:
        self._concerned: dict[Principal, _Concerned] = {}

    def __len__(self) -> int:
        return len(self._concerned)

    def ids(self, principal: Principal) -> Collection[str]:
        """Return the ids of the tokens that concern `principal`, as they are held."""
        concerned = self._concerned.get(principal)
        return () if concerned is None else concerned.token_ids.keys()

    def copied_ids(self, principal: Principal) -> Collection[str]:
        """Return the ids of the tokens that concern `principal`, as they are now."""
        concerned = self._concerned.get(principal)
        return () if concerned is None else concerned.token_ids.copy()

    def token_ids(self, principals: Iterable[Principal]) -> Iterable[str]:
        """Return the ids of the tokens that concern one of `principals`, each once."""
        return dict.fromkeys(chain.from_iterable(map(self.ids, dict.fromkeys(principals))))

    def count_owned(self, principal: Principal) -> int:
        """Return how many tokens `principal` owns."""
        concerned = self._concerned.get(principal)
        return 0 if concerned is None else concerned.owned

    def add(self, token: Token) -> _Principals:
        """Enter a token, and return its principals as they are held."""
        owner = self._add(token.owner, token.token_id)
        self._concerned[owner].owned += 1
        return (
            owner,
            self._add(token.requester, token.token_id),
            tuple(self._add(renewer, token.token_id) for renewer in token.renewers),
        )

    def remove(self, token: Token) -> None:
        """Take out a token that is there."""
        self._concerned[token.owner].owned -= 1
        for principal in {token.owner, token.requester, *token.renewers}:
            concerned = self._concerned[principal]
            del concerned.token_ids[token.token_id]
            if not concerned.token_ids:
                del self._concerned[principal]

    def change(self, before: Token, after: Token) -> _Principals:
        """Enter a token in the place of its earlier state, and return its principals as `add` does."""
        held = before.owner, before.requester, before.renewers
        if held == (after.owner, after.requester, after.renewers):
            return held
        self.remove(before)
        return self.add(after)

    def _add(self, principal: Principal, token_id: str) -> Principal:
        concerned = self._concerned.get(principal)
        if concerned is None:
            concerned = self._concerned[principal] = _Concerned(principal, {})
        concerned.token_ids[token_id] = None
        return concerned.principal
