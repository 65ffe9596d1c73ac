"""What the workers of a node share: memories whose descriptors they get, and contexts of TLS they are forked with.

    with node_memory(**Shared.sizes(workers)) as memory:
        Shared.opened(memory, place)         # in each worker

The supervisor makes the memories before it starts the first worker.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from kafka_dt.identity.credentials.shared import MEMORY_BYTES, SharedCredentials
from kafka_dt.identity.revocation import Board, board_bytes
from kafka_dt.metrics import MetricsMemory
from kafka_dt.metrics.memory import METRICS_MEMORY
from kafka_dt.processes.node_memory import NodeTurn
from kafka_dt.server.listeners.admission import ConnectionCounts, row_bytes
from kafka_dt.stores import WorkerPlace
from kafka_dt.tokens import CreationCounts, counts_bytes


@dataclass(frozen=True, slots=True)
class Shared:
    """What the workers of a node share."""

    board: Board
    """Where they post revocations."""
    creations: CreationCounts
    """Where they count the tokens that requesters ask for."""
    connections: ConnectionCounts
    """Where they count connections."""
    credentials: SharedCredentials
    """Where they find credentials of tokens that another worker has derived."""
    metrics: MetricsMemory
    """Where they count, and publish what they measure."""
    turn: NodeTurn
    """To hold more of a request than a worker's share of the memory for requests."""
    tls: Sequence[ssl.SSLContext] = ()
    """With which they encrypt their listeners, in the order of these; there may be fewer."""

    @staticmethod
    def sizes(workers: int) -> dict[str, int]:
        """Say how many bytes each of them needs, by its name."""
        return {
            "board": board_bytes(workers),
            "creations": counts_bytes(workers),
            "connections": workers * row_bytes(),
            "credentials": MEMORY_BYTES,
            METRICS_MEMORY: MetricsMemory.size(workers),
            "turn": 0,
        }

    @classmethod
    def opened(cls, memory: Mapping[str, int], place: WorkerPlace, tls: Sequence[ssl.SSLContext] = ()) -> Self:
        """Open the memories in a worker.

        Args:
            memory: the file descriptor of each, by its name.
            place: which worker it is.
            tls: the `common_contexts` of the process that the workers are forked from.
        """
        number, node = place.number, place.node
        return cls(
            board=Board.shared(memory["board"], number),
            creations=CreationCounts.shared(memory["creations"], number, node.encode()),
            connections=ConnectionCounts.shared(memory["connections"], number, node),
            credentials=SharedCredentials.shared(memory["credentials"]),
            metrics=MetricsMemory.shared(memory[METRICS_MEMORY], place.workers),
            turn=NodeTurn(memory["turn"]),
            tls=tls,
        )
