"""Finding what a login is checked against: a user's password, a user's SCRAM credential, or a token's.

`find` answers from memory, which is what nearly every login needs; where it gives None, `lookup` may ask the store and
derive a credential. A name that nobody has gets a decoy, so that the conversation is the same up to its last step.

A token login is one with `tokenauth=true`, or, for the clients that cannot send it, one whose user name is a live token
id and no SCRAM user (`kafka.dt.token.auth.without.extension`). Both are treated alike in every respect.

Source: KIP-48, KIP-84; Kafka's ScramServerCallbackHandler; DESIGN.md, "Tokens for clients that cannot send tokenauth".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from kafka_dt.security.derivation import Salts, TokenCredentials
from kafka_dt.security.revocations import Revocations
from kafka_dt.tokens import DelegationToken, Principal, StoreUnavailable, Token, TokenManager, has_token_id_form
from protocol.sasl import ScramCredential, ScramMechanism

_LOG = logging.getLogger(__name__)


class ScramUsers(Protocol):
    """The SCRAM users of the cluster, as far as logins ask for them."""

    def credential(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        """Give the credential of a user; None if there is no such user or none for that mechanism."""

    def iterations(self, mechanism: ScramMechanism) -> Sequence[int]:
        """Give the counts of iterations that users have with a mechanism, each once, in ascending order."""


class Claim(Enum):
    """What the client says its user name is."""

    TOKEN = auto()
    """A token id: it sent `tokenauth=true`."""
    USER = auto()
    """A user: it sent `tokenauth` with another value."""
    UNSAID = auto()
    """It did not send `tokenauth`."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Somebody who claims a name, and what the claim is checked against."""

    credential: ScramCredential
    principal: Principal | None
    """Whom a correct proof makes them; None with a decoy, for which there is no correct proof."""
    token: Token | None = None
    """The token of a token login."""


class ScramSubjects:
    """Finds the subject of a SCRAM login.

    Args:
        users: the SCRAM users.
        tokens: the tokens.
        credentials: the credentials of tokens.
        salts: where decoys come from.
        revocations: whether this worker has heard of every revocation on its node.
        without_extension: whether a user name may be a token id although the client did not say so.
        now_ms: the clock, milliseconds since the epoch.
    """

    def __init__(
        self,
        users: ScramUsers,
        tokens: TokenManager,
        credentials: TokenCredentials,
        salts: Salts,
        revocations: Revocations,
        *,
        without_extension: bool,
        now_ms: Callable[[], int],
    ) -> None:
        self._users = users
        self._tokens = tokens
        self._credentials = credentials
        self._salts = salts
        self._revocations = revocations
        self._without_extension = without_extension
        self._now_ms = now_ms
        self._refusing = False

    def find(self, mechanism: ScramMechanism, name: str, claim: Claim) -> Subject | None:
        """Give the subject if memory has all that it takes; None if `lookup` is needed.

        Args:
            mechanism: of the login.
            name: user name or token id.
            claim: what the client says the name is.
        """
        if claim is not Claim.TOKEN:
            user = self._users.credential(name, mechanism)
            if user is not None:
                return Subject(user, Principal.user(name))
            if claim is Claim.USER or not self._without_extension:
                return self._nobody(mechanism, name)
        if not has_token_id_form(name):
            return self._nobody(mechanism, name)
        try:
            token = self._tokens.find(name)
        except StoreUnavailable as error:
            return self._refuse_for_now(mechanism, name, error)
        self._refusing = False
        if token is None:
            return None
        return self._subject(mechanism, token, self._credentials.find(mechanism, token))

    async def lookup(self, mechanism: ScramMechanism, name: str) -> Subject:
        """Give the subject of a login that `find` could not answer: there, only a token's name is left to be."""
        try:
            token = await self._tokens.lookup(name)
        except StoreUnavailable as error:
            return self._refuse_for_now(mechanism, name, error)
        if token is None or token.token.is_expired(self._now_ms()):
            return self._nobody(mechanism, name)
        credential = await self._credentials.derive(mechanism, token)
        return Subject(credential, token.token.owner, token.token)

    def revocations_heard(self, token_id: str) -> bool:
        """Whether `live_token` can be believed; if not, `hear_revocations` comes first."""
        return self._revocations.heard_about(token_id)

    async def hear_revocations(self) -> bool:
        """Hear of every revocation on this node; False if that cannot be had now."""
        return await self._revocations.hear()

    def live_token(self, token_id: str) -> Token | None:
        """Give a token if it is (still) there and has not expired: asked again when a login completes."""
        try:
            found = self._tokens.find(token_id)
        except StoreUnavailable:
            return None
        return None if found is None or found.token.is_expired(self._now_ms()) else found.token

    def _subject(
        self, mechanism: ScramMechanism, token: DelegationToken, credential: ScramCredential | None
    ) -> Subject | None:
        if token.token.is_expired(self._now_ms()):
            return self._nobody(mechanism, token.token.token_id)
        return None if credential is None else Subject(credential, token.token.owner, token.token)

    def _nobody(self, mechanism: ScramMechanism, name: str) -> Subject:
        """Give the subject of a name that nobody has; it looks like a token if it could be one, else like a user."""
        counts = () if has_token_id_form(name) else self._users.iterations(mechanism)
        return Subject(self._salts.decoy(mechanism, name, counts), None)

    def _refuse_for_now(self, mechanism: ScramMechanism, name: str, error: StoreUnavailable) -> Subject:
        if not self._refusing:
            self._refusing = True
            _LOG.warning("Logins by token are refused until the store of tokens can be asked again. %s", error)
        return self._nobody(mechanism, name)
