"""Close the connections whose login takes too long: one list of a listener, looked through a few times a second.

The time begins when the socket is accepted, for the TLS handshake and SASL together, or with a re-authentication. All
logins of a listener have the same time, so the list is in order by itself: a login costs two operations on a dict and
no timer.

Source: `kafka.dt.login.timeout.ms`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

Overdue = Callable[[], None]
"""Called once when the time is over; it closes the connection unless its login has been completed."""


class LoginConnection(Protocol):
    """A protocol of asyncio on which a client logs in."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the socket."""

    def data_received(self, data: bytes) -> None:
        """Take bytes of the client."""

    def eof_received(self) -> bool | None:
        """Hear that the client sends no more; true keeps the socket open."""

    def pause_writing(self) -> None:
        """Hear that the client does not read."""

    def resume_writing(self) -> None:
        """Hear that the client reads again."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""

    def login_overdue(self) -> None:
        """Close the connection unless the client has logged in, or need not."""


class LoginDeadlines:
    """The logins of one listener that have begun and not ended."""

    def __init__(self, timeout_s: float, clock: Callable[[], float]) -> None:
        self.timeout_s = timeout_s
        self._clock = clock
        # Not a dict: the first entry of one is searched for behind all that were deleted in front of it.
        self._begun: OrderedDict[Overdue, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._begun)

    def begin(self, overdue: Overdue) -> None:
        """Begin a login; one that has begun already begins anew."""
        self._begun.pop(overdue, None)
        self._begun[overdue] = self._clock()

    def forget(self, overdue: Overdue) -> None:
        """End a login, or forget a connection that is closed."""
        self._begun.pop(overdue, None)

    def sweep(self) -> None:
        """End the logins whose time is over."""
        latest = self._clock() - self.timeout_s
        while self._begun:
            overdue, begun = next(iter(self._begun.items()))
            if begun > latest:
                return
            del self._begun[overdue]
            overdue()
