"""Finding the account of a SCRAM login: a user's, or a token's.

A login begins with what its challenge says (`begin`): the salt and the iterations, which a name decides without a
look at the tokens. While the client computes its proof, `find` answers from memory, which is what nearly every login
needs; where it gives None, `lookup` may ask the store and derive a credential. An unknown name gets a decoy. So up to
its last step the conversation is the same for an unknown name as for a known one, and so is the work.

A token login is one with `tokenauth=true`, or, for the clients that cannot send it, one whose user name is a live token
id and no SCRAM user (`kafka.dt.token.auth.without.extension`).

Source: KIP-48, KIP-84; org.apache.kafka.common.security.scram.internals.ScramServerCallbackHandler;
docs/design.md#a-login.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from kafka_dt.identity.credentials.derivation import Salts, TokenCredentials
from kafka_dt.identity.login.exchange import Account, Claim
from kafka_dt.identity.login.tokens import LoginTokens, NoToken
from kafka_dt.tokens import Principal, has_token_id_form
from kafka_dt_protocol.sasl import ScramCredential, ScramMechanism, ScramParameters


@dataclass(slots=True, unsafe_hash=True)
class ScramAccount(Account):
    """A user or a token with its credential; for an unknown name a decoy."""

    credential: Final[ScramCredential] = field(kw_only=True, repr=False)
    """What the client's proof is compared with."""


class ScramUsers(Protocol):
    """The SCRAM users of the cluster, as far as logins ask for them."""

    def credential(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        """Give the credential of a user; None if there is no such user or none for that mechanism."""

    def iterations(self, mechanism: ScramMechanism) -> Sequence[int]:
        """Give the count of iterations of every user with a mechanism, in ascending order."""


@dataclass(slots=True, unsafe_hash=True)
class Beginning:
    """What is known of a SCRAM login when its challenge is due."""

    challenged: Final[ScramCredential | ScramParameters]
    """What the challenge is made of; a credential if it is also what the proof is checked against."""
    account: Final[ScramAccount | None]
    """What the name stands for; None if it may be a token, which is to be found until the proof is there."""
    may_be_token: Final[bool]
    """Whether the login may be one by token, as far as the name and the claim tell."""


class ScramAccounts:
    """Finds the account of a SCRAM login; `without_extension` lets a user name be a token id."""

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

    def begin(self, mechanism: ScramMechanism, name: str, claim: Claim) -> Beginning:
        """Give what the challenge says.

        Every name costs the same: what a user's own credential makes superfluous is made for it as well.
        """
        user = self._users.credential(name, mechanism)
        decoy = self._decoy(mechanism, name, claim)
        principal = Principal.user(name)
        may_be_token = self.may_be_token(name, claim)
        if user is not None and claim is not Claim.TOKEN:
            return Beginning(user, ScramAccount(principal, credential=user), may_be_token)
        if may_be_token:
            return Beginning(ScramParameters(decoy.salt, decoy.iterations), None, may_be_token)
        return Beginning(decoy, ScramAccount(None, credential=decoy), may_be_token)

    def may_be_token(self, name: str, claim: Claim) -> bool:
        """Say whether a login may be by token, as far as its name and the client's claim tell."""
        return (claim is Claim.TOKEN or (claim is Claim.UNSAID and self._without_extension)) and has_token_id_form(name)

    def find(self, mechanism: ScramMechanism, name: str) -> ScramAccount | None:
        """Give the account of a login that may be by token if memory has all it takes; None if `lookup` is needed."""
        token = self._tokens.find(name)
        if token is None:
            return None
        if isinstance(token, NoToken):
            return self._no_token(mechanism, name)
        credential = self._credentials.find(mechanism, token)
        return None if credential is None else ScramAccount(token.token.owner, token, credential=credential)

    async def lookup(self, mechanism: ScramMechanism, name: str) -> ScramAccount:
        """Give the account of a login that `find` could not answer.

        Raises:
            StoreUnavailable: the store has to be asked and cannot be.
            TooMuchWaits: the token's credential cannot be derived now.
        """
        token = await self._tokens.lookup(name)
        if isinstance(token, NoToken):
            return self._no_token(mechanism, name)
        credential = await self._credentials.derive(mechanism, token)
        return ScramAccount(token.token.owner, token, credential=credential)

    def _no_token(self, mechanism: ScramMechanism, name: str) -> ScramAccount:
        return ScramAccount(None, credential=self._salts.token(mechanism, name))

    def _decoy(self, mechanism: ScramMechanism, name: str, claim: Claim) -> ScramCredential:
        """Give what looks like a token's if the name could be one's id, else like a user's."""
        if has_token_id_form(name):
            return self._salts.token(mechanism, name)
        if claim is Claim.TOKEN:
            return self._salts.no_token(mechanism, name)
        return self._salts.user(mechanism, name, self._users.iterations(mechanism))
