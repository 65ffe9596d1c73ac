"""Send large requests alone, because the server may close the connection over their size.

A server does that to a request of more bytes than its `jute.maxbuffer`, without saying so, and all requests under way
fail with it. So a request that is larger than any that has passed is sent when no other is under way, and others wait
for its answer. If the connection breaks meanwhile, its size is the likely reason: for `REFUSED_FOR_S` requests larger
than those that have passed are refused here, with an error that names the limit. So a client that asks for too large a
token again and again breaks the connection once in that time at the most.

Source: org.apache.zookeeper.server.NIOServerCnxn.readLength, "ZooKeeper Administrator's Guide" (jute.maxbuffer).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from kafka_dt.zookeeper.errors import RequestTooLarge

_LOG = logging.getLogger(__name__)

SURE_BYTES: Final = 16_384
"""A server that does not take this much would not serve Kafka either."""
REFUSED_FOR_S: Final = 60.0


class RequestSizes:
    """The sizes that the server is known to take.

    Args:
        limit: the most bytes that are ever sent.
        now_s: a monotonic clock, in seconds.
    """

    __slots__ = ("_limit", "_now_s", "_passed", "_refused_until_s")

    def __init__(self, limit: int, now_s: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._now_s = now_s
        self._passed = SURE_BYTES
        self._refused_until_s = float("-inf")

    def require(self, size: int) -> None:
        """Check that a request of `size` bytes can be sent.

        Raises:
            RequestTooLarge: it cannot.
        """
        limit = self._passed if self._now_s() < self._refused_until_s else self._limit
        if size > limit:
            raise RequestTooLarge(size, limit)

    def goes_alone(self, size: int) -> bool:
        """Whether it is not known that the server takes so much."""
        return size > self._passed

    def passed(self, size: int) -> None:
        """Take note that a request of `size` bytes was answered."""
        self._passed = max(self._passed, size)

    def broke(self, size: int, *, alone: bool) -> None:
        """Take note that the connection was lost while a request of `size` bytes was under way."""
        if alone:
            self._refused_until_s = self._now_s() + REFUSED_FOR_S
            _LOG.warning(
                "The connection to ZooKeeper was lost over a request of %d bytes: for %.0f s those of more than %d are "
                "refused. If that happens again, raise jute.maxbuffer of the ZooKeeper servers",
                *(size, REFUSED_FOR_S, self._passed),
            )
        elif size > SURE_BYTES:
            self._passed = SURE_BYTES  # this server may be another one, with a lower limit
