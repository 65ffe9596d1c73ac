"""The stores that a node in front of a Kafka 4 cluster has no use for: there are no SCRAM users and no ACLs.

The gateway forwards the requests about users and ACLs to the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kafka_dt.identity.acls.store import AclStoreUnavailable, StoredAcls
from kafka_dt.tokens import StoreUnavailable

if TYPE_CHECKING:
    from kafka_dt.identity.acls.binding import ResourcePattern
    from kafka_dt.identity.acls.store import AclListener, Entries
    from kafka_dt.identity.credentials.scram_changes import Credentials
    from kafka_dt_protocol.sasl import ScramCredential, ScramMechanism

_REASON = "the upstream cluster keeps them"


class NoScramUsers:
    """No users: ScramUsers and ScramUserStore."""

    def credential(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:  # noqa: ARG002 - the interface's
        """Give None."""
        return None

    def iterations(self, mechanism: ScramMechanism) -> Sequence[int]:  # noqa: ARG002 - the interface's
        """Give none."""
        return ()

    async def load(self) -> None:
        """Read nothing."""

    def can_store(self, user: str) -> bool:  # noqa: ARG002 - the interface's
        """Say no."""
        return False

    async def change(self, user: str, deleted: Sequence[ScramMechanism], added: Credentials) -> None:  # noqa: ARG002 - the interface's
        """Refuse.

        Raises:
            StoreUnavailable: always.
        """
        raise StoreUnavailable(_REASON)

    async def all(self) -> Mapping[str, Credentials]:
        """Give none."""
        return {}


class NoAcls:
    """No ACLs: an AclStore."""

    def on_change(self, listener: AclListener) -> None:
        """Report nothing, ever."""

    async def load(self) -> None:
        """Read nothing."""

    async def catch_up(self) -> None:
        """There is nothing to catch up with."""

    def can_hold(self, name: str) -> bool:  # noqa: ARG002 - the interface's
        """Say no."""
        return False

    async def read(self, pattern: ResourcePattern) -> StoredAcls:  # noqa: ARG002 - the interface's
        """Give none."""
        return StoredAcls((), None)

    async def write(self, pattern: ResourcePattern, entries: Entries, version: int | None) -> None:  # noqa: ARG002 - the interface's
        """Refuse.

        Raises:
            AclStoreUnavailable: always.
        """
        raise AclStoreUnavailable(_REASON)
