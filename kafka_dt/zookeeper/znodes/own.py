"""The znodes that kafka-dt has for itself, below `/kafka_dt`: where each is, and what its bytes mean.

Brokers do not look there. As in `kafka.py` a class has a znode's path, `encode` and `decode` and nothing else, and
`decode` raises InvalidZnode.

Source: docs/architecture.md#zookeeper-has-kafkas-layout.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_dt.stores import WorkerState
from kafka_dt.zookeeper.errors import InvalidZnode
from kafka_dt.zookeeper.znodes import documents

if TYPE_CHECKING:
    from collections.abc import Container

PARENT: Final = "/kafka_dt"


class WorkerZnode:
    """`/kafka_dt/nodes/node_<name>`: one live worker; ephemeral."""

    PARENT: Final = f"{PARENT}/nodes"
    VERSION: Final = 1

    @classmethod
    def path(cls, name: str) -> str:
        """Return the path of a worker; the name is one that no other has."""
        return f"{cls.PARENT}/node_{name}"

    @classmethod
    def encode(cls, state: WorkerState) -> bytes:
        """Write a worker's state."""
        return documents.write(
            {
                "version": cls.VERSION,
                "host": state.host,
                "pid": state.pid,
                "worker": state.worker,
                "brokerId": state.broker_id,
                "currentKey": state.current_key,
                "keys": list(state.keys),
                "seals": state.seals,
                "software": state.version,
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> WorkerState:
        """Read a worker's state."""
        document = documents.read(data)
        version = documents.integer(document, "version")
        if version != cls.VERSION:
            raise InvalidZnode(f"version {version} of a node is not known")
        return WorkerState(
            host=documents.text(document, "host"),
            pid=documents.integer(document, "pid"),
            worker=documents.integer(document, "worker"),
            broker_id=documents.integer(document, "brokerId"),
            current_key=None if document.get("currentKey") is None else documents.text(document, "currentKey"),
            keys=tuple(documents.texts(document, "keys")),
            seals=document.get("seals") is True,
            version=documents.text(document, "software"),
        )


class ClockZnode:
    """`/kafka_dt/clock`: written to learn ZooKeeper's time of the write; without data."""

    PATH: Final = f"{PARENT}/clock"


class WitnessZnode:
    """`/kafka_dt/witnesses/<name>`: written again and again by one worker, which remembers that; without data.

    The worker that takes the place of one that has ended, and remembers nothing, goes on with its znode.
    """

    PARENT: Final = f"{PARENT}/witnesses"

    @classmethod
    def path(cls, name: str) -> str:
        """Return the path of a worker's; the name is one that no other live worker has."""
        return f"{cls.PARENT}/{name}"


@dataclass(frozen=True, slots=True)
class History:
    """What workers and operators have said about the history of this ZooKeeper."""

    doubted: bool = False
    """Whether a worker has found that a write is missing, and no operator has accepted that since."""
    accepted: tuple[str, ...] = ()
    """The random id of each acceptance, the oldest first."""

    def accepts_more_than(self, known: Container[str]) -> bool:
        """Whether the last acceptance is one that is not known."""
        return bool(self.accepted) and self.accepted[-1] not in known


class HistoryZnode:
    """`/kafka_dt/history`: what is said about the history of this ZooKeeper."""

    PATH: Final = f"{PARENT}/history"
    VERSION: Final = 1

    @classmethod
    def encode(cls, history: History) -> bytes:
        """Write the state of the history."""
        return documents.write({"version": cls.VERSION, "doubted": history.doubted, "accepted": list(history.accepted)})

    @classmethod
    def decode(cls, data: bytes) -> History:
        """Read the state of the history; raises InvalidZnode if it is not readable."""
        document = documents.read(data)
        version = documents.integer(document, "version")
        if version != cls.VERSION or not isinstance(doubted := document.get("doubted"), bool):
            raise InvalidZnode(f"version {version} of {cls.PATH} is not known")
        return History(doubted, tuple(documents.texts(document, "accepted")) if "accepted" in document else ())


class SaltSecretZnode:
    """`/kafka_dt/salt_secret`: what the salts of tokens and decoys are made with, the same on all nodes."""

    PATH: Final = f"{PARENT}/salt_secret"
    VERSION: Final = 1
    SECRET_BYTES: Final = 32

    @classmethod
    def encode(cls, secret: bytes) -> bytes:
        """Write the secret."""
        return documents.write({"version": cls.VERSION, "secret": base64.b64encode(secret).decode("ascii")})

    @classmethod
    def decode(cls, data: bytes) -> bytes:
        """Read the secret; InvalidZnode if there is none."""
        document = documents.read(data)
        version = documents.integer(document, "version")
        if version != cls.VERSION:
            raise InvalidZnode(f"version {version} of the salts' secret is not known")
        try:
            secret = base64.b64decode(documents.text(document, "secret"), validate=True)
        except (binascii.Error, ValueError):
            raise InvalidZnode("the salts' secret is not base64") from None
        if len(secret) != cls.SECRET_BYTES:
            raise InvalidZnode("the salts' secret has another length")
        return secret
