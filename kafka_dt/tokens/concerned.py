"""Which tokens concern whom: an index of tokens by owner, requester and renewers.

What it holds of a token is its id. Equal principals become one object, because the same owner is in thousands of
tokens: `add` and `change` give back those of which the token is to be made.

Source: org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache (tokenCache by owner)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from kafka_dt.tokens.principal import Principal
    from kafka_dt.tokens.token import Token

Principals: TypeAlias = "tuple[Principal, Principal, tuple[Principal, ...]]"
"""The owner, the requester and the renewers of a token."""


@dataclass(slots=True)
class _Concerned:
    """A principal, and the ids of the tokens that concern it, in the order of their arrival."""

    principal: Principal
    token_ids: dict[str, None]
    owned: int = 0
    """How many of them it owns."""


class ConcernedPrincipals:
    """The principals that tokens concern, and the ids of those tokens."""

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

    def add(self, token: Token) -> Principals:
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

    def change(self, before: Token, after: Token) -> Principals:
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
