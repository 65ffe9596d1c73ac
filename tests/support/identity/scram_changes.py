"""SCRAM users that are changed over the wire: a store in memory, and requests as a client makes them.

Source: KIP-554; org.apache.kafka.clients.admin.ScramCredentialInfo (mechanisms by number).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kio.schema.alter_user_scram_credentials.v0.request import ScramCredentialDeletion, ScramCredentialUpsertion
from kio.schema.describe_user_scram_credentials.v0.request import UserName

from kafka_dt.identity.credentials.scram_changes import Credentials, NoSuchCredential
from kafka_dt.tokens import StoreUnavailable
from kafka_dt_protocol.sasl import ScramCredential, ScramMechanism

NUMBERS = {ScramMechanism.SHA_256: 1, ScramMechanism.SHA_512: 2}
SALT = b"some salt"


@dataclass
class MemoryScramUserStore:
    """Implements ScramUserStore, and ScramUsers for logins; `..` cannot be a user."""

    users: dict[str, dict[ScramMechanism, Any]] = field(default_factory=dict)
    unavailable: bool = False

    async def load(self) -> None:
        self._require_available()

    def can_store(self, user: str) -> bool:
        return user != ".."

    async def change(self, user: str, deleted: Sequence[ScramMechanism], added: Credentials) -> None:
        self._require_available()
        has = self.users.get(user, {})
        if any(mechanism not in has for mechanism in deleted):
            raise NoSuchCredential
        self.users[user] = {mechanism: has[mechanism] for mechanism in has if mechanism not in deleted} | dict(added)

    async def all(self) -> Mapping[str, Credentials]:
        self._require_available()
        return {user: credentials for user, credentials in self.users.items() if credentials}

    def credential(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        return self.users.get(user, {}).get(mechanism)

    def iterations(self, mechanism: ScramMechanism) -> Sequence[int]:
        return sorted(has[mechanism].iterations for has in self.users.values() if mechanism in has)

    def _require_available(self) -> None:
        if self.unavailable:
            raise StoreUnavailable("cut off")


def salted_password(mechanism: ScramMechanism, password: str, iterations: int = 4096, salt: bytes = SALT) -> bytes:
    """What a client sends of a password."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def deletion(user: str, mechanism: int = 1) -> Any:
    """An entry of AlterUserScramCredentials that deletes a credential."""
    return ScramCredentialDeletion(name=user, mechanism=mechanism)  # type: ignore[arg-type]


def upsertion(user: str, password: str = "secret", mechanism: int = 1, iterations: int = 4096, **changes: Any) -> Any:
    """An entry of AlterUserScramCredentials that sets a password."""
    kind = ScramMechanism.SHA_512 if mechanism == NUMBERS[ScramMechanism.SHA_512] else ScramMechanism.SHA_256
    values = {"salt": SALT, "salted_password": salted_password(kind, password, max(iterations, 1)), **changes}
    return ScramCredentialUpsertion(name=user, mechanism=mechanism, iterations=iterations, **values)  # type: ignore[arg-type]


def names(*users: str) -> tuple[Any, ...]:
    """The users of DescribeUserScramCredentials."""
    return tuple(UserName(name=user) for user in users)
