"""A client of ZooKeeper that has a span for each round trip of a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafka_dt.zookeeper.connection.client import ConnectionGuard, ZooKeeperClient

if TYPE_CHECKING:
    import asyncio

    from kafka_dt.tracing import Spans
    from kafka_dt.zookeeper.connection.handler import Answer
    from kafka_dt.zookeeper.connection.requests import Arrived
    from kafka_dt.zookeeper.connection.settings import ZooKeeperSettings


class TracedZooKeeperClient(ZooKeeperClient):
    """The same, with spans; what a node asks outside of requests has none."""

    def __init__(
        self,
        settings: ZooKeeperSettings,
        guard: ConnectionGuard | None,
        spans: Spans,
        answered: Callable[[float], None] = lambda _: None,
    ) -> None:
        super().__init__(settings, guard, answered)
        self._spans = spans

    def _send(
        self,
        begin: Callable[[], Answer],
        convert: Callable[[Any], Any],
        subject: str,
        arrived: Arrived | None,
        size: int = 0,
    ) -> asyncio.Future[Any]:
        is_path = subject.startswith("/")
        attributes = {"db.system": "zookeeper"} | ({"zookeeper.path": subject} if is_path else {})
        end = self._spans.call("ZooKeeper request" if is_path else f"ZooKeeper {subject}", attributes)
        future = super()._send(begin, convert, subject, arrived, size)
        if end is not None:
            future.add_done_callback(end)
        return future
