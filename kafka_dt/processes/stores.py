"""The stores that a node is built with: everything that it keeps outside of its own processes.

Each interface belongs to the domain that uses it. A node does not know which system implements them:
`kafka_dt.zookeeper.node` builds the stores in ZooKeeper, and the tests build a node with stores in memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from kafka_dt.identity.acls.store import AclStore
from kafka_dt.identity.credentials.scram import ScramUsers
from kafka_dt.identity.credentials.scram_changes import ScramUserStore
from kafka_dt.processes.cluster import ClusterState
from kafka_dt.tokens import KeyedTokens, Keyring, TokenCache, TokenChanges, TokenLimits, TokenSource


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
    cache: TokenCache
    """What the worker knows of the tokens."""
    limits: TokenLimits
    executor: Executor
    """Threads for expensive computations."""


MakeStores = Callable[[StoreNeeds], NodeStores]
"""Builds the stores of a worker; connects to nothing yet."""
