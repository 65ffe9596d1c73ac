"""Changes to the SCRAM users of a cluster: the rules, the errors, and the interface of the store that keeps them.

    outcomes = await ScramUserManager(store).alter(deletions, upsertions)
    outcomes["alice"]     # None, or the error that kept alice as she was

A request may be about many users; each user's part succeeds or fails as a whole, whatever becomes of the others. The
client sends the salted password, not the password; only what is derived from it is kept.

Source: KIP-554; kafka.server.ZkAdminManager (alterUserScramCredentials, describeUserScramCredentials).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from kafka_dt.tokens import StoreUnavailable
from kafka_dt_protocol.sasl import ScramCredential, ScramMechanism, keys_of

MAX_ITERATIONS: Final = 16384
"""A broker accepts no more from a client: each login would cost it as many rounds."""
CHANGES_AT_ONCE: Final = 100
"""How many users of one request are changed at the same time."""

Credentials = Mapping[ScramMechanism, ScramCredential]


class ScramUserError(Exception):
    """Why a user's credentials were not changed or described; its text is for the client and holds no secret."""


class UnknownMechanism(ScramUserError):
    """No SCRAM mechanism has this number."""

    def __init__(self) -> None:
        super().__init__("There is no such SCRAM mechanism")


class UnacceptableCredential(ScramUserError):
    """The name of the user, or a credential, breaks a rule."""


class ChangedTwice(ScramUserError):
    """One request names the same user and mechanism, or the same user, twice."""

    def __init__(self) -> None:
        super().__init__("The request names this user more than once for the same purpose")


class NoSuchCredential(ScramUserError):
    """The user has no such credential."""

    def __init__(self) -> None:
        super().__init__("The user has no such SCRAM credential")


@dataclass(frozen=True, slots=True)
class Deletion:
    """A credential that is to go."""

    user: str
    mechanism: ScramMechanism | None
    """None for a number that there is no mechanism for."""


@dataclass(frozen=True, slots=True)
class Upsertion:
    """A credential that is to be set, whether there is one or not."""

    user: str
    mechanism: ScramMechanism | None
    """None for a number that there is no mechanism for."""
    iterations: int
    """The rounds of PBKDF2 that the client did."""
    salt: bytes
    salted_password: bytes = field(repr=False)
    """As good as the password."""


class ScramUserStore(Protocol):
    """Where the credentials of users are kept, for all nodes and brokers of a cluster."""

    async def load(self) -> None:
        """Read all users for the logins on this node, and follow their changes from then on.

        Raises:
            kafka_dt.stores.ClusterUnavailable: it did not work; it may be called again.
        """

    def can_store(self, user: str) -> bool:
        """Say whether there can be a user of this name."""

    async def change(self, user: str, deleted: Sequence[ScramMechanism], added: Credentials) -> None:
        """Change the credentials of a user, all of it or nothing.

        Returns when logins on this node know of it.

        Raises:
            NoSuchCredential: one that is to be deleted is not there.
            StoreUnavailable: it cannot be done now, or it is unknown whether it was.
        """

    async def all(self) -> Mapping[str, Credentials]:
        """Give the credentials of all users that have any, by name, as of now.

        Raises:
            StoreUnavailable: they cannot be known now.
        """


AlterResult = ScramUserError | StoreUnavailable | None
"""The result of a user's part of a request; None is success."""


class ScramUserManager:
    """Changes and describes SCRAM users."""

    def __init__(self, store: ScramUserStore) -> None:
        self._store = store

    async def alter(self, deletions: Sequence[Deletion], upsertions: Sequence[Upsertion]) -> Mapping[str, AlterResult]:
        """Carry out the changes of one request; gives the result for each user that it names."""
        parts = self._parts(deletions, upsertions)
        fit = [user for user, part in parts.items() if part.error is None]
        outcomes: dict[str, AlterResult] = {user: part.error for user, part in parts.items() if part.error is not None}
        for begin in range(0, len(fit), CHANGES_AT_ONCE):
            batch = fit[begin : begin + CHANGES_AT_ONCE]
            results = await asyncio.gather(*(self._change(user, parts[user]) for user in batch))
            outcomes.update(zip(batch, results, strict=True))
        return outcomes

    async def describe(self, users: Sequence[str]) -> Mapping[str, Credentials | ScramUserError]:
        """Give the credentials of users by name, or why there are none; no name stands for all users, in their order.

        Raises:
            StoreUnavailable: they cannot be known now.
        """
        known = await self._store.all()
        if not users:
            return {user: known[user] for user in sorted(known)}
        described: dict[str, Credentials | ScramUserError] = {}
        for user, times in Counter(users).items():
            twice = ChangedTwice() if times > 1 and user else None
            described[user] = twice or known.get(user) or NoSuchCredential()
        return described

    def _parts(self, deletions: Sequence[Deletion], upsertions: Sequence[Upsertion]) -> dict[str, _Part]:
        """Sort a request by users. Of several errors the last one counts, those of upsertions after the others."""
        parts: dict[str, _Part] = {}
        for deletion in deletions:
            part = parts.setdefault(deletion.user, _Part())
            part.error = self._error_of_name(deletion.user) or part.delete(deletion) or part.error
        for upsertion in upsertions:
            part = parts.setdefault(upsertion.user, _Part())
            part.error = self._error_of_name(upsertion.user) or part.add(upsertion) or part.error
        for part in parts.values():
            if part.error is None and part.has_duplicates:
                part.error = ChangedTwice()
        return parts

    async def _change(self, user: str, part: _Part) -> AlterResult:
        try:
            await self._store.change(user, part.deleted, part.added)
        except (ScramUserError, StoreUnavailable) as error:
            return error
        return None

    def _error_of_name(self, user: str) -> ScramUserError | None:
        if not user:
            return UnacceptableCredential("A user needs a name")
        return None if self._store.can_store(user) else UnacceptableCredential("A user cannot have this name")


@dataclass(slots=True)
class _Part:
    """What a request wants of one user."""

    deleted: list[ScramMechanism] = field(default_factory=list)
    added: dict[ScramMechanism, ScramCredential] = field(default_factory=dict)
    named: list[ScramMechanism] = field(default_factory=list)
    error: ScramUserError | None = None

    @property
    def has_duplicates(self) -> bool:
        return len(set(self.named)) < len(self.named)

    def delete(self, deletion: Deletion) -> ScramUserError | None:
        """Take in a deletion; returns what is wrong with it."""
        if deletion.mechanism is None:
            return UnknownMechanism()
        self.named.append(deletion.mechanism)
        self.deleted.append(deletion.mechanism)
        return None

    def add(self, upsertion: Upsertion) -> ScramUserError | None:
        """Take in an upsertion; returns what is wrong with it."""
        mechanism = upsertion.mechanism
        if mechanism is None:
            return UnknownMechanism()
        error = _error_of_credential(mechanism, upsertion)
        if error is None:
            keys = keys_of(mechanism, upsertion.salted_password)
            self.named.append(mechanism)
            self.added[mechanism] = ScramCredential(
                upsertion.salt, keys.stored_key, keys.server_key, upsertion.iterations
            )
        return error


def _error_of_credential(mechanism: ScramMechanism, upsertion: Upsertion) -> ScramUserError | None:
    if upsertion.iterations < mechanism.min_iterations:
        return UnacceptableCredential(f"At least {mechanism.min_iterations} iterations are needed")
    if upsertion.iterations > MAX_ITERATIONS:
        return UnacceptableCredential(f"At most {MAX_ITERATIONS} iterations are allowed")
    # A broker stores the next two, although no client could ever log in with them.
    if not upsertion.salt:
        return UnacceptableCredential("A credential needs a salt")
    if len(upsertion.salted_password) != mechanism.hash_bytes:
        return UnacceptableCredential(f"The salted password of {mechanism} has {mechanism.hash_bytes} bytes")
    return None
