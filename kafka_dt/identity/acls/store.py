"""Where ACLs are kept: the interface that security owns, and what can go wrong with ACLs.

    Exception
    ├── AclError                a request about ACLs is refused
    │   ├── InvalidAcl              it cannot exist, or cannot be kept
    │   └── AclStoreUnavailable     the store cannot be asked; whether a change was made is unknown
    └── AclConflict             between the store and the manager only: another change was first

A store keeps the entries of one pattern together, with a version that guards a change of them.

Source: kafka.security.authorizer.AclAuthorizer (VersionedAcls, updateResourceAcls).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kafka_dt.identity.acls.binding import AccessControlEntry, ResourcePattern

Entries = tuple[AccessControlEntry, ...]
"""The entries about one pattern, each once, in the order in which they are kept."""

AclListener = Callable[[ResourcePattern, Entries], None]
"""Called with a pattern and all that is said about it now, which may be nothing."""


class AclError(Exception):
    """A request about ACLs is refused; the subclass says why."""


@dataclass(eq=False)
class InvalidAcl(AclError):
    """An ACL that cannot exist."""

    reason: str
    """A whole sentence for the client."""

    def __str__(self) -> str:
        return self.reason


@dataclass(eq=False)
class AclStoreUnavailable(AclError):
    """The store cannot be asked now; a change that was under way has been made or not."""

    reason: str
    """What happened, as half a sentence for the log."""

    def __str__(self) -> str:
        return f"The store of ACLs is not available: {self.reason}."


@dataclass(eq=False)
class AclConflict(Exception):
    """A guarded write was refused, because the entries are not those the writer had seen."""

    pattern: ResourcePattern

    def __str__(self) -> str:
        return f"Another process changed the ACLs of {self.pattern}."


@dataclass(frozen=True, slots=True)
class StoredAcls:
    """The entries of a pattern as they are in the store."""

    entries: Entries
    version: int | None
    """The guard of a change; None where nothing is stored."""


class AclStore(Protocol):
    """Keeps ACLs and reports their changes, also those of other processes."""

    def on_change(self, listener: AclListener) -> None:
        """Set the one listener; the store reports every pattern to it in the order of the changes."""

    async def load(self) -> None:
        """Report everything that is stored, and keep reporting.

        Raises:
            AclStoreUnavailable: it did not work; it may be called again.
        """

    async def catch_up(self) -> None:
        """Return when every change acknowledged anywhere before this call has been reported.

        Raises:
            AclStoreUnavailable: it could not be found out.
        """

    async def until_current(self) -> None:
        """Return when the cache may decide; a store that reports changes as they happen returns at once.

        Raises:
            AclStoreUnavailable: what has been reported is too old.
        """

    def can_hold(self, name: str) -> bool:
        """Say whether the store can keep ACLs about a name."""

    async def read(self, pattern: ResourcePattern) -> StoredAcls:
        """Read the entries of a pattern as they are now; the store can hold its name.

        Raises:
            AclStoreUnavailable: the store cannot be asked.
        """

    async def write(self, pattern: ResourcePattern, entries: Entries, version: int | None) -> None:
        """Replace the entries of a pattern, remove it when there are none, and report it.

        Raises:
            AclConflict: something else is stored by now.
            InvalidAcl: the store cannot hold so many entries about one pattern; nothing was written.
            AclStoreUnavailable: whether it was done is unknown.
        """
