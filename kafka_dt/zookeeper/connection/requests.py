"""The requests of one client: under way, waiting for a place, and what becomes of them when the connection breaks.

A server closes the connection over a request of more bytes than its `jute.maxbuffer`, without saying so, and all
requests under way fail with it. So a request that is larger than any that has passed is sent when no other is under
way, and others wait for its answer. If the connection breaks meanwhile, its size is the likely reason: for
`REFUSED_FOR_S` requests larger than those that have passed are refused here. So a client that asks for too large a
token again and again breaks the connection once in that time at the most.

Source: kafka.zookeeper.ZooKeeperClient (inFlightRequests); org.apache.zookeeper.server.NIOServerCnxn.readLength.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.zookeeper.connection.translation import CONNECTION_ERRORS, error_of
from kafka_dt.zookeeper.errors import RequestTooLarge, ZooKeeperConnectionLost, ZooKeeperError

if TYPE_CHECKING:
    import asyncio

    from kafka_dt.zookeeper.connection.handler import Answer, Inbox

Arrived = Callable[[Any, ZooKeeperError | None], Any]
"""Called in the loop as an answer arrives, with the value and the error, one of them None; what it returns or raises is
the outcome of the request."""
PATIENCE_S: Final = 2.0
"""How long requests wait for the next connection when one among them broke the last one."""
_LOG = logging.getLogger(__name__)
SURE_BYTES: Final = 16_384
"""A server that does not take this much would not serve Kafka either."""
REFUSED_FOR_S: Final = 60.0


class ZooKeeperRequest:
    """One request, from the call to the answer."""

    __slots__ = ("arrived", "begin", "begun_s", "convert", "future", "size", "subject")

    def __init__(
        self,
        begin: Callable[[], Answer],
        convert: Callable[[Any], Any],
        subject: str,
        arrived: Arrived | None,
        *,
        future: asyncio.Future[Any],
        size: int,
    ) -> None:
        self.begin = begin
        self.convert = convert
        self.subject = subject
        self.arrived = arrived
        self.future = future
        self.size = size
        self.begun_s = 0.0

    def finish(self, answer: Answer) -> None:
        """Tell the outcome, as `tell` does."""
        value, error = None, None
        try:
            if answer.exception is not None:
                error = error_of(answer.exception, self.subject)
            else:
                value = self.convert(answer.value)
        except ZooKeeperError as refused:
            error = refused
        tell(self.future, self.arrived, value, error)


class ZooKeeperRequests:
    """Sends requests, so many at once.

    Args:
        loop: where the outcomes are told.
        inbox: brings answers to the loop.
        connected: whether a request that waits may be sent: the connection is there, and admitted. kazoo would keep it
            for the next connection otherwise, and no caller waits for it then.
        max_in_flight: how many may be under way; more wait for their turn.
        sizes: says which requests go alone.
        answered: hears how long a request took, in seconds.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        inbox: Inbox,
        connected: Callable[[], bool],
        max_in_flight: int,
        sizes: RequestSizes,
        *,
        answered: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._answered = answered
        self._loop = loop
        self._connected = connected
        self._inbox = inbox
        self._max_in_flight = max_in_flight
        self._sizes = sizes
        self._alone: ZooKeeperRequest | None = None
        """The one that is under way, while no other may be."""
        self._patience: asyncio.TimerHandle | None = None
        """Ends the wait for the next connection."""
        self._under_way: set[ZooKeeperRequest] = set()
        self._waiting: deque[ZooKeeperRequest] = deque()

    def send(
        self,
        begin: Callable[[], Answer],
        convert: Callable[[Any], Any],
        subject: str,
        arrived: Arrived | None,
        size: int = 0,
        *,
        at_once: bool = False,
    ) -> asyncio.Future[Any]:
        """Send a request as soon as there is a place.

        Args:
            begin: hands it to kazoo.
            convert: makes our value of kazoo's.
            subject: what it is about, for errors.
            arrived: hears the answer first.
            size: about how many bytes it has; 0 = few.
            at_once: it needs no place, and does not wait for those that wait: they wait for what it finds out.
        """
        request = ZooKeeperRequest(begin, convert, subject, arrived, future=self._loop.create_future(), size=size)
        if at_once or (not self._waiting and self._has_place_for(request)):
            self._begin(request)
        else:
            self._waiting.append(request)
        return request.future

    def lost(self) -> None:
        """Fail the requests that were under way on a lost connection, and those that wait.

        What waits behind a request that broke the connection by its size is innocent: it goes on soon.
        """
        for request in self._under_way:
            self._broke(request)
        if self._patience is None:
            self.fail_all()
        else:
            self._fail_under_way()

    def go_on(self) -> None:
        """Send the requests that wait, on a new connection."""
        self._end_patience()
        self._begin_waiting()

    def fail_all(self) -> None:
        """Fail every request, also those that kazoo forgot: it never answers one that was queued during a loss."""
        self._fail_under_way()
        self._fail_waiting()

    def _fail_waiting(self) -> None:
        """Fail the requests that wait; those under way may already be on the next connection, not yet admitted."""
        self._end_patience()
        waiting, self._waiting = self._waiting, deque()
        for request in waiting:
            fail(request.future, ZooKeeperConnectionLost("the connection to ZooKeeper was lost", sent=False))

    def _fail_under_way(self) -> None:
        under_way, self._under_way = self._under_way, set()
        self._alone = None
        for request in under_way:
            fail(request.future, ZooKeeperConnectionLost("the connection to ZooKeeper was lost", sent=True))

    def _has_place_for(self, request: ZooKeeperRequest) -> bool:
        if self._sizes.goes_alone(request.size):
            return not self._under_way
        return self._alone is None and len(self._under_way) < self._max_in_flight

    def _begin_waiting(self) -> None:
        while self._waiting and self._has_place_for(self._waiting[0]) and self._connected():
            self._begin(self._waiting.popleft())

    def _begin(self, request: ZooKeeperRequest) -> None:
        """Hand a request to kazoo; one that it does not even take has failed, and needs no place."""
        try:
            answer = request.begin()
        except Exception as refused:  # noqa: BLE001 - whatever it is, it belongs to the caller
            fail(request.future, error_of(refused, request.subject))
            return
        request.begun_s = time.monotonic()
        self._under_way.add(request)
        if self._sizes.goes_alone(request.size):
            self._alone = request
        answer.rawlink(partial(self._inbox.post, self._finish, request))

    def _finish(self, request: ZooKeeperRequest, answer: Answer) -> None:
        if request not in self._under_way:
            return  # it failed with its connection: the answer may be of the next one, which is not admitted
        if isinstance(answer.exception, CONNECTION_ERRORS):
            self._broke(request)
        else:
            self._sizes.passed(request.size)
            self._answered(time.monotonic() - request.begun_s)
        self._under_way.discard(request)
        if request is self._alone:
            self._alone = None
        request.finish(answer)
        self._begin_waiting()

    def _broke(self, request: ZooKeeperRequest) -> None:
        """Take note that the connection was lost while a request was under way."""
        self._sizes.broke(request.size, alone=request is self._alone)
        if request is self._alone and self._patience is None:
            self._patience = self._loop.call_later(PATIENCE_S, self._fail_waiting)

    def _end_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None


def tell(future: asyncio.Future[Any], arrived: Arrived | None, value: Any, error: ZooKeeperError | None) -> None:
    """Tell the outcome of a request: first to `arrived`, then to the task that awaits the future."""
    try:
        if arrived is not None:
            value, error = arrived(value, error), None
    except Exception as outcome:  # noqa: BLE001 - whatever it is, it belongs to the caller
        fail(future, outcome)
        return
    if error is not None:
        fail(future, error)
    elif not future.done():
        future.set_result(value)


def fail(future: asyncio.Future[Any], error: BaseException) -> None:
    """Tell the task that awaits a future that it failed, unless the future has a result already."""
    if not future.done():
        future.set_exception(error)
        future.exception()  # else asyncio logs an error that no caller waits for any more


class RequestSizes:
    """The sizes that the server is known to take; `limit` is the most bytes that are ever sent."""

    __slots__ = ("_limit", "_now_s", "_passed", "_refused_until_s")

    def __init__(self, limit: int, now_s: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._now_s = now_s
        self._passed = SURE_BYTES
        self._refused_until_s = float("-inf")

    def require(self, size: int) -> None:
        """Refuse a request of `size` bytes that cannot be sent, by RequestTooLarge."""
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
