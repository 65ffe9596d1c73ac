"""Parts of a worker without its processes: what counts and limits connections, and the handlers of the token APIs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from kafka_dt.config import Listener, Settings
from kafka_dt.identity.acls.authorizer import Authorizer
from kafka_dt.server.handlers import ServedApi
from kafka_dt.server.handlers.described import DescribedTokens
from kafka_dt.server.handlers.tokens import TokenHandlers
from kafka_dt.server.listeners.admission import Admission, ConnectionCounts, ConnectionLimits, row_bytes
from tests.support.server.fake_transport import listener
from tests.support.tokens.nodes import Node


def connection_counts(memory: bytearray | None = None, worker: int = 0) -> ConnectionCounts:
    """The counts of one worker, in memory of its own unless some is given."""
    return ConnectionCounts(bytearray(row_bytes()) if memory is None else memory, worker, "a node")


def admission(
    settings: Settings | None = None,
    *,
    listeners: Sequence[Listener] | None = None,
    counts: ConnectionCounts | None = None,
    by: int = 0,
    refused: Callable[[], None] = lambda: None,
) -> Admission:
    """The admission of one listener, the first one, of a worker."""
    limits = ConnectionLimits.of(settings or Settings(), listeners or [listener()])
    return Admission(limits, counts or connection_counts(), by, refused)


def token_handlers(
    node: Node, authorizer: Authorizer, clock: Callable[[], float] = time.monotonic
) -> tuple[ServedApi, ...]:
    """Join the parts as a worker does."""
    described = DescribedTokens(node.cache.get)
    node.cache.on_change(described.token_changed)
    return TokenHandlers(node.manager, authorizer, described, clock).served()
