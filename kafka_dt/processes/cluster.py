"""What the nodes of a cluster share besides tokens, users and ACLs: the interface of its store.

    await cluster.start()                       # connects
    cluster_id = await cluster.cluster_id()
    await cluster.announce(NodeState(...))      # again whenever it changes
    await cluster.keep()                        # every second

`kafka_dt.zookeeper` implements it. One object belongs to one worker, and is used from one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class ClusterUnavailable(Exception):
    """The state of the cluster cannot be read or written; the text says why."""


@dataclass(frozen=True, slots=True)
class NodeState:
    """A worker, as it announces itself to the other nodes and to `kafka-dt keys`."""

    host: str
    """The name of its machine."""
    pid: int
    """Its process."""
    worker: int
    """Which worker of its node it is."""
    broker_id: int
    """The id that its node shows to clients."""
    current_key: str | None
    """The id of the secret key that it makes tokens with; None where tokens are disabled."""
    keys: tuple[str, ...]
    """The ids of all keys whose tokens it accepts, the current one first."""
    seals: bool
    """Whether it seals the tokens that it writes."""
    version: str
    """Of kafka-dt."""

    def __str__(self) -> str:
        """Return its name in messages."""
        return f"{self.host} (worker {self.worker}, pid {self.pid})"


class ClusterState(Protocol):
    """Keeps the state of a cluster."""

    @property
    def outdated(self) -> asyncio.Event:
        """Set when this worker must start again, because an operator has accepted a state that it does not know."""

    async def start(self) -> None:
        """Connect; before any other request, and before the other stores of the node are asked.

        Raises:
            ClusterUnavailable: the store cannot be used.
        """

    async def cluster_id(self) -> str:
        """Return the id of the cluster, 22 characters of base64url; the first node makes it.

        Raises:
            ClusterUnavailable: it can be neither read nor made.
        """

    async def salt_secret(self) -> bytes:
        """Return the secret that SCRAM salts are made with, the same on all nodes; the first node makes it.

        Raises:
            ClusterUnavailable: it can be neither read nor made.
        """

    async def announce(self, state: NodeState) -> None:
        """Tell the other nodes of this worker, as long as it lives; later calls return before that is written.

        Raises:
            ClusterUnavailable: the first time, if it does not work.
        """

    async def brokers(self) -> Sequence[str]:
        """Return the ids of the brokers that read the same tokens, in order.

        Raises:
            ClusterUnavailable: they cannot be read.
        """

    async def keep(self) -> None:
        """Do what the store needs regularly, such as looking whether its history went back; every second."""

    async def close(self) -> None:
        """Disconnect; the announcement ends with the connection."""
