"""What a node asks of its stores: everything that it keeps outside of its own processes.

    stores = make_stores(StoreNeeds(...))       # NodeStores; connects to nothing yet
    await stores.cluster.start()
    await stores.cluster.announce(WorkerState(...))     # again whenever it changes
    await stores.cluster.keep()                 # every second

The stores of tokens, users and ACLs belong to the domains that use them; the rest is here. `kafka_dt.zookeeper.node`
builds them in ZooKeeper, and the tests build a node with stores in memory. One object belongs to one worker, and is
used from one event loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from kafka_dt.metrics import Counts

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence
    from concurrent.futures import Executor

    from kafka_dt.config import Settings
    from kafka_dt.identity.acls.store import AclStore
    from kafka_dt.identity.credentials.scram import ScramUsers
    from kafka_dt.identity.credentials.scram_changes import ScramUserStore
    from kafka_dt.idle import IdleTime
    from kafka_dt.tokens import KeyedTokens, Keyring, KnownTokens, TokenChanges, TokenLimits, TokenSource


class ClusterUnavailable(Exception):
    """The state of the cluster cannot be read or written; the text says why."""


@dataclass(frozen=True, slots=True)
class WorkerState:
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
    """Keeps the state of a cluster; what is asked raises ClusterUnavailable if the store cannot be used."""

    @property
    def must_restart(self) -> asyncio.Event:
        """Set when this worker must start again, because an operator has accepted a state that it does not know."""

    async def start(self) -> None:
        """Connect; before any other request, and before the other stores of the node are asked."""

    async def cluster_id(self) -> str:
        """Return the id of the cluster, 22 characters of base64url; the first node makes it."""

    async def salt_secret(self) -> bytes:
        """Return the secret that SCRAM salts are made with, the same on all nodes; the first node makes it."""

    async def announce(self, state: WorkerState) -> None:
        """Tell the other nodes of this worker, as long as it lives; later calls return before that is written."""

    async def brokers(self) -> Sequence[str]:
        """Return the ids of the brokers that read the same tokens, in order."""

    async def keep(self) -> None:
        """Do what the store needs regularly, such as looking whether its history went back; every second."""

    async def close(self) -> None:
        """Disconnect; the announcement ends with the connection."""


def _nothing() -> None:
    """Take nothing over."""


@dataclass(frozen=True, slots=True)
class NodeStores:
    """The stores of one worker."""

    cluster: ClusterState
    """Connects them all: it is started first and closed last."""
    tokens: TokenSource
    token_changes: TokenChanges | None
    """None where tokens are disabled."""
    keyed_tokens: KeyedTokens | None
    """Those that need a secret key to be read; None where the store needs no key of this node."""
    users: ScramUsers
    """The SCRAM users as logins see them, from memory."""
    user_changes: ScramUserStore
    """Fills `users` and changes them."""
    acls: AclStore
    close: Callable[[], Awaitable[None]]
    """Stops following the changes of all of them; the cluster is closed after that."""
    prepare: Callable[[Settings], Callable[[], None]] = lambda _: _nothing
    """Checks new settings of the node, and returns what takes over those of the stores that need no restart; raises
    ConfigError."""
    news_silence_s: Callable[[], float] | None = None
    """Returns the time since this worker could hear other nodes last, in seconds; None where nodes tell each other
    nothing."""


@dataclass(frozen=True, slots=True)
class WorkerPlace:
    """Which worker of which node this is."""

    number: int
    """From 0; the first one does what once a node is enough."""
    workers: int
    """How many the node has."""
    node: str
    """A name that the workers of this node have in common, and those of no other node."""


@dataclass(frozen=True, slots=True)
class StoreNeeds:
    """The parts of a worker that its stores work with."""

    keyring: Keyring | None
    """The secret keys; None where none is set."""
    cache: KnownTokens
    """What the worker knows of the tokens."""
    limits: TokenLimits
    executor: Executor
    """Threads for expensive computations."""
    idle: IdleTime
    """When to do those that can wait."""
    counts: Counts = field(default_factory=Counts.alone)
    """Where connections to the store, and the times of its answers, are counted."""


MakeStores = Callable[[StoreNeeds], NodeStores]
"""Builds the stores of a worker; connects to nothing yet."""
