"""Finding what a SCRAM login is checked against: a user's credential, or a token's.

`find` answers from memory, which is what nearly every login needs; where it gives None, `lookup` may ask the store and
derive a credential. A name that nobody has gets a decoy, so that the conversation is the same up to its last step.

A token login is one with `tokenauth=true`, or, for the clients that cannot send it, one whose user name is a live token
id and no SCRAM user (`kafka.dt.token.auth.without.extension`). Both are treated alike in every respect.

Source: KIP-48, KIP-84; Kafka's ScramServerCallbackHandler; DESIGN.md, "Tokens for clients that cannot send tokenauth".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from kafka_dt.security.derivation import Salts, TokenCredentials
from kafka_dt.security.digest import DigestSubjects
from kafka_dt.security.login_tokens import LoginTokens, Nobody
from kafka_dt.tokens import DelegationToken, Principal, has_token_id_form
from protocol.sasl import ScramCredential, ScramMechanism


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
    token: DelegationToken | None = None
    """The token of a token login, with the HMACs whose passwords are in the credential, in the same order."""


class ScramSubjects:
    """Finds the subject of a SCRAM login.

    Args:
        users: the SCRAM users.
        tokens: the tokens.
        credentials: the credentials of tokens.
        salts: where decoys come from.
        without_extension: whether a user name may be a token id although the client did not say so.
    """

    def __init__(
        self,
        users: ScramUsers,
        tokens: LoginTokens,
        credentials: TokenCredentials,
        salts: Salts,
        *,
        without_extension: bool,
    ) -> None:
        self._users = users
        self._tokens = tokens
        self._credentials = credentials
        self._salts = salts
        self._without_extension = without_extension

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
        token = self._tokens.find(name)
        if token is None:
            return None
        if isinstance(token, Nobody):
            return self._nobody(mechanism, name)
        credential = self._credentials.find(mechanism, token)
        return None if credential is None else Subject(credential, token.token.owner, token)

    async def lookup(self, mechanism: ScramMechanism, name: str) -> Subject:
        """Give the subject of a login that `find` could not answer: there, only a token's name is left to be."""
        token = await self._tokens.lookup(name)
        if isinstance(token, Nobody):
            return self._nobody(mechanism, name)
        credential = await self._credentials.derive(mechanism, token)
        return Subject(credential, token.token.owner, token)

    def _nobody(self, mechanism: ScramMechanism, name: str) -> Subject:
        """Give the subject of a name that nobody has; it looks like a token if it could be one, else like a user."""
        counts = () if has_token_id_form(name) else self._users.iterations(mechanism)
        return Subject(self._salts.decoy(mechanism, name, counts), None)


@dataclass(frozen=True, slots=True)
class Subjects:
    """All that finds what logins are checked against."""

    tokens: LoginTokens
    scram: ScramSubjects
    digest: DigestSubjects
