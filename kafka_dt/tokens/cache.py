"""What this process knows of the tokens: a copy of the store in memory, with the indexes that requests need.

The cache is the store's listener (`apply`), and nothing else fills it. It asks nobody and has no clock; how old it may
be is the manager's question. Lookups by id and by HMAC are one dictionary access; `concerning` costs what it returns,
because owners, requesters and renewers are indexed. The order of iteration is that of arrival and does not change when
a token does.

It is made for 100,000 tokens and more: an HMAC is computed once, when its token arrives, and equal principals are one
object. The tests hold what a token may cost.

All methods belong to the event loop's thread and never wait.

Source: org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kafka_dt.tokens.token import DelegationToken, Token

if TYPE_CHECKING:
    from kafka_dt.tokens.keyring import Keyring
    from kafka_dt.tokens.principal import Principal
    from kafka_dt.tokens.store import StoredToken

TokenListener = Callable[[str, Token | None, Token | None], None]
"""Called with the token id, what was known before (None: nothing) and what is known now (None: it is gone)."""


@dataclass(frozen=True, slots=True)
class CachedToken:
    """A token with its secret, and where it stands in the store."""

    delegation: DelegationToken
    version: int
    """What a change of this state is guarded by."""
    revision: int
    """The place of this state in the order of all changes of the store."""

    @property
    def token(self) -> Token:
        """The token without its secret."""
        return self.delegation.token


@dataclass(frozen=True, slots=True)
class _Concerned:
    """A principal, and the ids of the tokens that concern it, in the order of their arrival."""

    principal: Principal
    token_ids: dict[str, None]


class TokenCache:
    """The tokens by id, by HMAC and by the principals they concern.

    Args:
        keyring: makes the HMACs; None where tokens are disabled, then the cache stays empty.
    """

    __slots__ = ("_concerned", "_keyring", "_listeners", "_token_ids", "_tokens")

    def __init__(self, keyring: Keyring | None) -> None:
        self._keyring = keyring
        self._tokens: dict[str, CachedToken] = {}
        self._token_ids: dict[bytes, str] = {}
        self._concerned: dict[Principal, _Concerned] = {}
        self._listeners: tuple[TokenListener, ...] = ()

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
        """Return the token with exactly that HMAC.

        The time this takes tells nothing about near misses: Python's hash of bytes is keyed anew in each process.
        """
        token_id = self._token_ids.get(hmac)
        return None if token_id is None else self._tokens[token_id].delegation

    def concerning(self, principals: Iterable[Principal] | None) -> list[DelegationToken]:
        """Return the tokens that concern one of `principals`, each once; None = all tokens."""
        if principals is None:
            return [held.delegation for held in self._tokens.values()]
        found: dict[str, None] = {}
        for principal in principals:
            if concerned := self._concerned.get(principal):
                found |= concerned.token_ids
        return [self._tokens[token_id].delegation for token_id in found]

    def on_change(self, listener: TokenListener) -> None:
        """Call `listener` after every change of what is known, at once and in order; it must not raise.

        `kafka_dt.tokens.token.ends_sooner` says which changes are revocations.
        """
        self._listeners = (*self._listeners, listener)

    def apply(self, token_id: str, stored: StoredToken | None) -> None:
        """Take over a state the store reports: this is the listener that a TokenStore is given."""
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
        if before is not None and stored.revision <= before.revision:
            return
        token = self._indexed(stored.token, None if before is None else before.token)
        hmac = self._hmac(token_id) if before is None else before.delegation.hmac
        # The id that is the key of one dictionary is the value of the other: one text a token, not three.
        self._token_ids[hmac] = token.token_id
        self._tokens[token.token_id] = CachedToken(DelegationToken(token, hmac), stored.version, stored.revision)
        self._tell(token_id, None if before is None else before.token, token)

    def remove(self, token_id: str) -> None:
        """Forget a token; one that is not held is no error."""
        before = self._tokens.pop(token_id, None)
        if before is None:
            return
        del self._token_ids[before.delegation.hmac]
        self._unindex(before.token)
        self._tell(token_id, before.token, None)

    def _tell(self, token_id: str, before: Token | None, after: Token | None) -> None:
        if before == after:
            return
        for listener in self._listeners:
            listener(token_id, before, after)

    def _hmac(self, token_id: str) -> bytes:
        if self._keyring is None:
            raise ValueError("a cache without a keyring holds no tokens")
        return self._keyring.hmacs(token_id, None)[0]

    def _indexed(self, token: Token, before: Token | None) -> Token:
        """Return an equal token made of the principals that are held already, and enter it in the index."""
        if before is not None:
            if _principals(before) == _principals(token):
                # All but the timestamps is as it was, and is taken from there.
                return replace(
                    before,
                    issue_timestamp_ms=token.issue_timestamp_ms,
                    max_timestamp_ms=token.max_timestamp_ms,
                    expiry_timestamp_ms=token.expiry_timestamp_ms,
                )
            self._unindex(before)
        owner = self._index(token.owner, token.token_id)
        return Token(
            token_id=token.token_id,
            owner=owner,
            requester=self._index(token.requester, token.token_id),
            renewers=tuple(self._index(renewer, token.token_id) for renewer in token.renewers),
            issue_timestamp_ms=token.issue_timestamp_ms,
            max_timestamp_ms=token.max_timestamp_ms,
            expiry_timestamp_ms=token.expiry_timestamp_ms,
        )

    def _index(self, principal: Principal, token_id: str) -> Principal:
        concerned = self._concerned.get(principal)
        if concerned is None:
            concerned = self._concerned[principal] = _Concerned(principal, {})
        concerned.token_ids[token_id] = None
        return concerned.principal

    def _unindex(self, token: Token) -> None:
        for principal in {token.owner, token.requester, *token.renewers}:
            concerned = self._concerned[principal]
            del concerned.token_ids[token.token_id]
            if not concerned.token_ids:
                del self._concerned[principal]


def _principals(token: Token) -> tuple[Principal, Principal, tuple[Principal, ...]]:
    return token.owner, token.requester, token.renewers
