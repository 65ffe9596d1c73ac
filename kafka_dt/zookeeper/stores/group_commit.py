"""Group commit, as databases call it: changes of several callers in one `multi`.

A `multi` costs ZooKeeper a write to the disk and both sides some CPU time, however few operations it has. So the
changes that wait while others are written go to ZooKeeper together. A lone change does not wait.

ZooKeeper carries out all operations of a `multi` or none. If it refuses the changes of several callers, each of them is
sent again alone, so each caller hears the result of its own change.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.zookeeper.connection.operations import size_of
from kafka_dt.zookeeper.connection.requests import SURE_BYTES, Arrived, fail, tell
from kafka_dt.zookeeper.errors import MultiFailed, ZooKeeperError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_dt.zookeeper.connection.client import ZooKeeperClient
    from kafka_dt.zookeeper.connection.operations import Operation, Stat

UNDER_WAY: Final = 2
"""How many groups are under way at a time: ZooKeeper takes one while it writes another."""


@dataclass(slots=True, eq=False)
class _Change:
    """The operations of one caller."""

    operations: Sequence[Operation]
    arrived: Arrived
    future: asyncio.Future[Any]
    size: int
    context: Context = field(default_factory=copy_context)


class GroupCommit:
    """Sends changes by `client`, several in one `multi` where several wait."""

    def __init__(self, client: ZooKeeperClient) -> None:
        self._client = client
        self._waiting: deque[_Change] = deque()
        self._under_way = 0
        self._is_scheduled = False

    def multi(self, operations: Sequence[Operation], *, arrived: Arrived) -> asyncio.Future[Any]:
        """Carry out all operations or none, in one request with those of other callers.

        Args:
            operations: as for `ZooKeeperClient.multi`.
            arrived: hears the answer as from there: the results of `operations` or the error.

        Returns:
            What `arrived` returns or raises; a ZooKeeperError if the operations were not sent, or no answer came.
        """
        size = sum(size_of(operation) for operation in operations)
        if size > SURE_BYTES:  # it may break the connection, and then the others must not have been under way with it
            return self._client.multi(operations, arrived=arrived)
        loop = asyncio.get_running_loop()
        change = _Change(operations, arrived, loop.create_future(), size)
        self._waiting.append(change)
        if not self._is_scheduled and self._under_way < UNDER_WAY:
            self._is_scheduled = True
            loop.call_soon(self._begin)  # after the requests that the loop has read at the same time
        return change.future

    def _begin(self) -> None:
        self._is_scheduled = False
        while self._waiting and self._under_way < UNDER_WAY:
            group = [self._waiting.popleft()]
            size = group[0].size
            while self._waiting and (size := size + self._waiting[0].size) <= SURE_BYTES:
                group.append(self._waiting.popleft())
            self._send(group)

    def _send(self, group: Sequence[_Change]) -> None:
        operations = [operation for change in group for operation in change.operations]
        first = group[0]
        self._under_way += 1
        sent = first.context.run(self._client.multi, operations, arrived=partial(self._arrived, group))
        sent.add_done_callback(partial(self._ended, group))

    def _arrived(
        self, group: Sequence[_Change], results: Sequence[str | Stat | None] | None, error: ZooKeeperError | None
    ) -> None:
        """Tell each caller its part of the answer, in the order of the operations."""
        if isinstance(error, MultiFailed) and len(group) > 1:
            for change in group:
                self._send([change])
            return
        begin = 0
        for change in group:
            end = begin + len(change.operations)
            tell(change.future, change.arrived, None if results is None else results[begin:end], error)
            begin = end

    def _ended(self, group: Sequence[_Change], sent: asyncio.Future[Any]) -> None:
        """Go on with those that wait; the group was not sent, or its answer will not come, if there is an error."""
        self._under_way -= 1
        if (error := sent.exception()) is not None:
            for change in group:
                fail(change.future, error)
        self._begin()
