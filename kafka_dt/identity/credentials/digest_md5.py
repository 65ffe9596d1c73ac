"""Finding what a login with DIGEST-MD5 is checked against: the passwords of a token, or a decoy.

The mechanism is for tokens alone, so a user's name is a name that nobody has. Its exchange needs no derived credential:
the password of a token is the base64 text of its HMAC, as with SCRAM, and where one of several keys may have made the
token, each of their HMACs is one.

Source: KIP-48, first draft ("Authentication using Token").
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field

from kafka_dt.identity.login.tokens import LoginTokens, Nobody
from kafka_dt.tokens import DelegationToken, Principal


@dataclass(frozen=True, slots=True)
class DigestSubject:
    """Somebody who claims a token id, and what the claim is checked against."""

    credential: Sequence[str] = field(repr=False)
    """Passwords; each of them is right."""
    principal: Principal | None
    """Whom a correct proof makes them; None with a decoy."""
    token: DelegationToken | None
    """The token, with the HMACs that are the passwords, in the same order."""


class DigestSubjects:
    """Finds the subject of a login with DIGEST-MD5.

    Args:
        tokens: the tokens.
        decoy: a random password that nobody is told; what is sent does not depend on it.
    """

    def __init__(self, tokens: LoginTokens, decoy: str) -> None:
        self._tokens = tokens
        self._nobody = DigestSubject((decoy,), None, None)

    def find(self, name: str) -> DigestSubject | None:
        """Give the subject if memory has it; None if `lookup` is needed."""
        token = self._tokens.find(name)
        return None if token is None else self._subject(token)

    async def lookup(self, name: str) -> DigestSubject:
        """Give the subject of a login that `find` could not answer.

        Raises:
            StoreUnavailable: the store has to be asked and cannot be.
        """
        return self._subject(await self._tokens.lookup(name))

    def _subject(self, token: DelegationToken | Nobody) -> DigestSubject:
        if isinstance(token, Nobody):
            return self._nobody
        passwords = tuple(base64.b64encode(each).decode("ascii") for each in token.hmacs)
        return DigestSubject(passwords, token.token.owner, token)
