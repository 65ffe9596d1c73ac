"""The requests of one client: under way, waiting for a place, and what becomes of them when the connection breaks.

Source: kafka.zookeeper.ZooKeeperClient (inFlightRequests).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from kafka_dt.zookeeper.errors import ConnectionLost, ZooKeeperError
from kafka_dt.zookeeper.translation import error_of

if TYPE_CHECKING:
    import asyncio

    from kafka_dt.zookeeper.handler import Answer, Inbox

Arrived = Callable[[Any, ZooKeeperError | None], Any]
"""Called in the loop as an answer arrives, with the value and the error, one of them None; what it returns or raises is
the outcome of the request."""


class Request:
    """One request, from the call to the answer."""

    __slots__ = ("arrived", "begin", "convert", "future", "subject")

    def __init__(
        self,
        begin: Callable[[], Answer],
        convert: Callable[[Any], Any],
        subject: str,
        arrived: Arrived | None,
        future: asyncio.Future[Any],
    ) -> None:
        self.begin = begin
        self.convert = convert
        self.subject = subject
        self.arrived = arrived
        self.future = future

    def finish(self, answer: Answer) -> None:
        """Tell the outcome: first `arrived`, then whoever awaits the future."""
        value, error = None, None
        try:
            if answer.exception is not None:
                error = error_of(answer.exception, self.subject)
            else:
                value = self.convert(answer.value)
        except ZooKeeperError as refused:
            error = refused
        try:
            if self.arrived is not None:
                value, error = self.arrived(value, error), None
        except Exception as outcome:  # noqa: BLE001 - whatever it is, it belongs to the caller
            fail(self.future, outcome)
            return
        if error is not None:
            fail(self.future, error)
        elif not self.future.done():
            self.future.set_result(value)


class Requests:
    """Sends requests, so many at once.

    Args:
        loop: where the outcomes are told.
        inbox: brings answers to the loop.
        connected: whether a request would be sent at once; kazoo keeps others for the next connection, when
            nobody waits for them any more.
        max_in_flight: how many may be under way; more wait for their turn.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, inbox: Inbox, connected: Callable[[], bool], max_in_flight: int
    ) -> None:
        self._loop = loop
        self._connected = connected
        self._inbox = inbox
        self._max_in_flight = max_in_flight
        self._under_way: set[Request] = set()
        self._waiting: deque[Request] = deque()

    def send(
        self, begin: Callable[[], Answer], convert: Callable[[Any], Any], subject: str, arrived: Arrived | None
    ) -> asyncio.Future[Any]:
        """Send a request as soon as there is a place.

        Args:
            begin: hands it to kazoo.
            convert: makes our value of kazoo's.
            subject: what it is about, for errors.
            arrived: hears the answer first.
        """
        request = Request(begin, convert, subject, arrived, self._loop.create_future())
        if len(self._under_way) < self._max_in_flight:
            self._begin(request)
        else:
            self._waiting.append(request)
        return request.future

    def fail_all(self) -> None:
        """Fail what kazoo may have forgotten: a request queued in the very moment of a loss is never answered."""
        under_way, self._under_way = self._under_way, set()
        waiting, self._waiting = self._waiting, deque()
        for request in under_way:
            fail(request.future, ConnectionLost("the connection to ZooKeeper was lost", sent=True))
        for request in waiting:
            fail(request.future, ConnectionLost("the connection to ZooKeeper was lost", sent=False))

    def _begin(self, request: Request) -> None:
        """Hand a request to kazoo; one that it does not even take has failed, and needs no place."""
        try:
            answer = request.begin()
        except Exception as refused:  # noqa: BLE001 - whatever it is, it belongs to the caller
            fail(request.future, error_of(refused, request.subject))
            return
        self._under_way.add(request)
        answer.rawlink(partial(self._inbox.post, self._finish, request))

    def _finish(self, request: Request, answer: Answer) -> None:
        self._under_way.discard(request)
        request.finish(answer)
        while self._waiting and len(self._under_way) < self._max_in_flight and self._connected():
            self._begin(self._waiting.popleft())


def fail(future: asyncio.Future[Any], error: Exception) -> None:
    """Tell whoever awaits a future that it failed, unless it was told something already."""
    if not future.done():
        future.set_exception(error)
        future.exception()  # who has lost interest is not reminded by asyncio's log
