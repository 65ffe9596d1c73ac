"""What counts and limits connections, without the processes that would share it."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_dt.config import Listener, Settings
from kafka_dt.server.listeners.admission import Admission, ConnectionCounts, ConnectionLimits, row_bytes
from tests.support.fake_transport import listener


def connection_counts(memory: bytearray | None = None, worker: int = 0) -> ConnectionCounts:
    """The counts of one worker, in memory of its own unless some is given."""
    return ConnectionCounts(bytearray(row_bytes()) if memory is None else memory, worker, "a node")


def admission(
    settings: Settings | None = None,
    *,
    listeners: Sequence[Listener] | None = None,
    counts: ConnectionCounts | None = None,
    by: int = 0,
) -> Admission:
    """The admission of one listener, the first one, of a worker."""
    limits = ConnectionLimits.of(settings or Settings(), listeners or [listener()])
    return Admission(limits, counts or connection_counts(), by)
