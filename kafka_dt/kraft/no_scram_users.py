"""The store that a node in front of a Kafka 4 cluster has no use for: there are no SCRAM users.

The gateway forwards the requests about users to the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kafka_dt.tokens import StoreUnavailable

if TYPE_CHECKING:
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
