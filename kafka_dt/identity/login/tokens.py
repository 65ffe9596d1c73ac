"""The tokens as logins see them: alive or unknown, and not revoked since, as far as this node can know.

`find` answers from memory, which is what nearly every login needs; where it gives None, `lookup` asks the store.

The log has one line when logins by token begin to be refused because the store does not answer, and one when that ends.
An outage may begin with tokens that this worker has not met, and become one of all tokens, which is logged as well.

Source: KIP-48; docs/architecture.md#a-token-works-on-every-node-at-once, docs/architecture.md#revocation-is-bounded.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum, auto

from kafka_dt.audit import RefusalReason
from kafka_dt.identity.revocation import Revocations
from kafka_dt.metrics import Counts
from kafka_dt.tokens import DelegationToken, StoreUnavailable, Token, TokenManager, has_token_id_form


class NoToken(Enum):
    """What is found where no live token has the id."""

    NO_TOKEN = auto()


NO_TOKEN = NoToken.NO_TOKEN


class LoginTokens:
    """Finds the token that a login is by."""

    def __init__(
        self,
        tokens: TokenManager,
        revocations: Revocations,
        now_ms: Callable[[], int],
        counts: Counts | None = None,
    ) -> None:
        self._counts = counts or Counts.alone()
        self._tokens = tokens
        self._revocations = revocations
        self._now_ms = now_ms
        self._outage = TokenOutage()

    def find(self, name: str) -> DelegationToken | NoToken | None:
        """Give the live token with that id if memory can say; None if `lookup` is needed."""
        if not has_token_id_form(name):
            return NO_TOKEN
        try:
            token = self._tokens.find(name)
        except StoreUnavailable:
            return None  # it may be back, and about to tell the news
        self._note_end()
        if token is None:
            return None
        self._counts.frequent.tokens_found += 1
        return self._alive(token)

    async def lookup(self, name: str) -> DelegationToken | NoToken:
        """Give the live token with that id, if `find` could not say.

        Raises:
            StoreUnavailable: the store has to be asked and cannot be.
        """
        self._counts.token_lookups.add("store")
        try:
            token = await self._tokens.lookup(name)
        except StoreUnavailable as error:
            self._outage.refused(error, all_tokens=not self._remembers(name))
            raise
        self._note_end()
        return NO_TOKEN if token is None else self._alive(token)

    def can_ask(self, name: str) -> bool:
        """Whether the store of that token can be asked; if not, an id that is not known here may be a token's."""
        return self._tokens.can_ask(name)

    def still_alive(self, token: DelegationToken, proved: int) -> Token | None:
        """Give a token as it is when a login by it completes; None if it ended during the login, or its key has gone.

        Args:
            token: as it was found when the login began.
            proved: which of its HMACs the client has.
        """
        try:
            found = self._tokens.find(token.token.token_id)
        except StoreUnavailable:
            return None
        if found is None or found.token.is_expired(self._now_ms()) or not found.has_hmac(token.hmacs[proved]):
            return None
        return found.token

    def known(self, name: str) -> Token | None:
        """Give the token with that id as far as memory knows it, expired or not."""
        try:
            found = self._tokens.find(name)
        except StoreUnavailable:
            return None
        return None if found is None else found.token

    def why_not(self, name: str) -> RefusalReason:
        """Say why no client can log in with that id now."""
        if not has_token_id_form(name):
            return RefusalReason.UNKNOWN_TOKEN
        try:
            found = self._tokens.find(name)
        except StoreUnavailable:
            return RefusalReason.UNAVAILABLE
        if found is not None and found.token.is_expired(self._now_ms()):
            return RefusalReason.EXPIRED_TOKEN
        return RefusalReason.UNKNOWN_TOKEN

    def revocations_heard(self, token_id: str) -> bool:
        """Whether `still_alive` can be believed; if not, `hear_revocations` comes first."""
        return self._revocations.heard_about(token_id)

    async def hear_revocations(self, token_id: str) -> bool:
        """Hear whether a token was revoked on this node; False if that cannot be had now."""
        return await self._revocations.hear(token_id)

    def _alive(self, token: DelegationToken) -> DelegationToken | NoToken:
        return NO_TOKEN if token.token.is_expired(self._now_ms()) else token

    def _remembers(self, name: str) -> bool:
        """Whether memory can say anything of tokens, as it can until it is too old."""
        try:
            self._tokens.find(name)
        except StoreUnavailable:
            return False
        return True

    def _note_end(self) -> None:
        if self._outage.lasts and self._tokens.can_ask():
            self._outage.ended()


_LOG = logging.getLogger(__name__)


class TokenOutage:
    """The outage that there is, if there is one."""

    __slots__ = ("_all_tokens", "_refused")

    def __init__(self) -> None:
        self._refused = 0
        self._all_tokens = False

    @property
    def lasts(self) -> bool:
        """Whether a login has been refused, and no end has been noted since."""
        return self._refused > 0

    def refused(self, error: StoreUnavailable, *, all_tokens: bool) -> None:
        """Note that a login was refused; `all_tokens`: also those of tokens that this worker knows are."""
        if all_tokens and not self._all_tokens:
            _LOG.warning("No token can log in until its store can be asked: it may have been revoked. %s", error)
        elif not self._refused:
            _LOG.warning("Tokens that this worker has not met yet cannot log in; those that it knows can. %s", error)
        self._refused += 1
        self._all_tokens |= all_tokens

    def ended(self) -> None:
        """Note that the store can be asked again."""
        if self._refused:
            _LOG.warning("All tokens can log in again; %d logins were refused meanwhile", self._refused)
        self._refused = 0
        self._all_tokens = False
