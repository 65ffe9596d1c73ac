"""The upstream's side of one client: a connection of its own, opened when it is first needed.

    side = UpstreamSide(connection, route, connector=connector, candidates=candidates, now_ms=now_ms)
    side.open(listener)               # connects and logs in as the client's principal
    side.pieces.append(piece)         # what is passed on; all of it is written at once
    side.write()
    side.log_in_again_if_due(answers) # before the broker ends the session (KIP-368), while no answer is due
    side.leave(at_once=False)

While it connects or logs in, `task` is set, and the client waits. What was written needs no answer any more when the
client goes, but may be a Produce with acks=0: so a connection that is left is flushed first.

Source: KIP-368; kafka.network.Processor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from kafka_dt.client import TokenClientError
from kafka_dt.client.config import Address
from kafka_dt.gateway.connecting import Connector
from kafka_dt.gateway.identities import NoIdentity
from kafka_dt.gateway.upstream import Upstream, UpstreamListener
from kafka_dt.server.connections.intake import Serving
from kafka_dt_protocol import ConnectionClosed
from kafka_dt_protocol.rewriting.answer_stream import AnswerStream

FLUSH_S: Final = 5.0
"""How long an upstream that is left may take for what was written to it."""


class UpstreamSide:
    """One client's way upstream.

    Args:
        connection: the client's.
        route: goes on with what the client wants, when the way is there or the login is over.
        connector: makes connections.
        now_ms: the clock, milliseconds since the epoch.
    """

    link: Upstream | None = None
    """The connection, once there is one."""
    full: bool = False
    """Whether the upstream broker does not read what is written."""
    task: asyncio.Task[None] | None = None
    """Connects or logs in."""
    login_timer: asyncio.TimerHandle | None = None
    """Runs until it is time to log in again."""
    login_due: bool = False
    """Whether it is time to log in again."""
    own_answer: asyncio.Future[bytes] | None = None
    """Takes the answer to a request of the gateway's own, once one was sent."""

    def __init__(
        self, connection: Serving, route: Callable[[], None], *, connector: Connector, now_ms: Callable[[], int]
    ) -> None:
        self._connection = connection
        self._route = route
        self._connector = connector
        self._now_ms = now_ms
        self._loop = asyncio.get_running_loop()
        self.pieces: list[bytes] = []

    def open(self, listener: UpstreamListener, candidates: Callable[[], list[Address]]) -> None:
        """Connect and log in as the client's principal.

        Args:
            listener: hears what comes.
            candidates: gives the brokers that will do, best first.
        """
        self._begin(self._open(listener, candidates))

    def write(self) -> None:
        """Write what was passed on: a call of the system costs more than all that is done with a short request."""
        pieces = self.pieces
        if pieces:
            self.pieces = []
            if self.link is not None:
                self.link.write(*pieces)

    def pause_reading(self) -> None:
        """Take nothing of the upstream."""
        if self.link is not None:
            self.link.pause_reading()

    def resume_reading(self) -> None:
        """Take again what comes."""
        if self.link is not None:
            self.link.resume_reading()

    def log_in_again_if_due(self, answers: AnswerStream) -> bool:
        """Begin to log in again if it is time and no answer is due; says whether it is time."""
        if self.login_due and answers.outstanding == 0 and self.link is not None:
            self.login_due = False
            self._begin(self._log_in_again(self.link, answers))
            return True
        return self.login_due

    def log_in_when_drained(self) -> None:
        """Log in again as soon as no answer is due."""
        self.login_due = True
        self._route()

    def leave(self, *, at_once: bool = False) -> None:
        """End the connection; what was written is sent first, unless it must end at once."""
        if self.login_timer is not None:
            self.login_timer.cancel()
        if self.task is not None:
            self.task.cancel()
        if not at_once:
            self.write()
        link, self.link = self.link, None
        if link is None:
            return
        if at_once:
            link.abort()
        else:
            link.close()
            self._loop.call_later(FLUSH_S, link.abort)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self.task = self._loop.create_task(work)
        self.task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self.task = None
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        connection = self._connection
        if connection.closing:
            return
        match error:
            case None:
                self._route()
            case asyncio.CancelledError():
                connection.end(ConnectionClosed("no connection to the upstream cluster: the login was cancelled"))
            case NoIdentity() | TokenClientError() | OSError():
                connection.end(ConnectionClosed(f"no connection to the upstream cluster: {error}"))
            case _:
                connection.fail(error)

    async def _open(self, listener: UpstreamListener, candidates: Callable[[], list[Address]]) -> None:
        connection = self._connection
        upstream = await self._connector.connect(connection.logins.principal, candidates, listener)
        if connection.closing:
            upstream.abort()
            return
        self.link = upstream
        if not connection.writable:
            upstream.pause_reading()
        self._log_in_later(upstream)

    def _log_in_later(self, upstream: Upstream) -> None:
        if upstream.login_due_ms is not None:
            seconds = max(0, upstream.login_due_ms - self._now_ms()) / 1000
            self.login_timer = self._loop.call_later(seconds, self.log_in_when_drained)

    async def _log_in_again(self, upstream: Upstream, answers: AnswerStream) -> None:
        async def exchange(correlation_id: int, request: bytes) -> bytes:
            self.own_answer = self._loop.create_future()
            answers.expect_own(correlation_id)
            upstream.write(request)
            return await self.own_answer

        await self._connector.log_in_again(self._connection.logins.principal, upstream, exchange)
        self._log_in_later(upstream)
