"""One client's way upstream: the connection that serves this client alone, from its opening to its end.

    way = UpstreamSide(connection, route, answered, advertise, connector=connector, now_ms=now_ms)
    way.open(candidates)                # connects and logs in as the client's principal
    way.answers.expect(request)         # its answer goes to the client as it comes
    way.pieces.append(piece)            # what is passed on; all of it is written at once
    way.write()
    way.log_in_again_if_due()           # before the broker ends the session (KIP-368), while no answer is due
    way.leave()

What was written needs no answer any more when the client goes, but may be a Produce with acks=0: so a connection that
is left is flushed first.

Source: KIP-368; org.apache.kafka.clients.NetworkClient.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.client import ConnectionFailed, TokenClientError
from kafka_dt.gateway.identities import NoIdentity
from kafka_dt_protocol import ConnectionClosed, RemoteProtocolError
from kafka_dt_protocol.rewriting import AnswerStream, Forward

if TYPE_CHECKING:
    from kafka_dt.client import Address
    from kafka_dt.client.login import Channel
    from kafka_dt.gateway.connecting import Connector
    from kafka_dt.gateway.upstream import Exchange, Upstream
    from kafka_dt.server.connections.connection import ClientConnection
    from kafka_dt_protocol.wire.proxy_header import Endpoint

FLUSH_S: Final = 5.0
"""How long an upstream that is left may take for what was written to it."""
ANSWER_S: Final = 30.0
"""How long an upstream may take for an answer that audit events are made of. While one is due, the client is not read,
so that its end is not seen."""


class UpstreamSide:
    """One client's way upstream: an UpstreamListener.

    Args:
        connection: the client's.
        route: goes on with what the client wants, when the way is there or the login is over.
        answered: is called when answers have gone to the client.
        advertise: gives the address at which the client reaches a broker, by its id, host and port upstream.
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
    asking: bool = False
    """Whether an answer is due that audit events are made of: it is waited for, also when the client has gone."""

    def __init__(
        self,
        connection: ClientConnection,
        route: Callable[[], None],
        answered: Callable[[], None],
        advertise: Callable[[int, str, int], tuple[str, int]],
        *,
        connector: Connector,
        now_ms: Callable[[], int],
    ) -> None:
        self._connection = connection
        self._frequent = connection.services.counts.frequent
        self._route = route
        self._answered = answered
        self.answers: Final = AnswerStream(advertise)
        """What comes upstream for the client."""
        self._connector = connector
        self._now_ms = now_ms
        self._loop = asyncio.get_running_loop()
        self._opening: asyncio.Task[Upstream] | None = None  # connects for a login that is relayed
        self._left = False
        self.pieces: list[bytes] = []

    def open(self, candidates: Callable[[], list[Address]]) -> None:
        """Connect and log in as the client's principal; candidates: gives the brokers that will do, best first."""
        self._begin(self._open(candidates))

    async def open_for_login(self, candidates: Callable[[], list[Address]]) -> None:
        """Connect without a login, which the client is to make on this connection; raises as `Connector.connect`.

        It is called off when the client goes.
        """
        connection = self._connection
        self._opening = self._loop.create_task(self._connector.connect_for_login(candidates, self))
        try:
            upstream = await self._opening
        finally:
            self._opening = None
        if connection.closing:
            upstream.abort()
            raise ConnectionFailed("the client has gone")
        self.link = upstream

    def channel(self, upstream: Upstream) -> Channel:
        """Give what makes requests of the gateway's own on the connection, while no answer is due."""
        return upstream.channel(self._exchange(upstream))

    async def ask(self, request: bytes, correlation_id: int) -> bytes:
        """Send a request of the client while no answer is due, and give the content of its answer.

        Args:
            request: whole, with its length.
            correlation_id: of the request.

        Raises:
            EOFError: the connection has ended before, or the answer has not come in time.
        """
        if self.link is None:
            raise EOFError
        self.asking = True
        self._frequent.to_cluster_bytes += len(request)
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._exchange(self.link, long=True)(correlation_id, request)
        except TimeoutError:
            raise EOFError from None
        finally:
            self.asking = False
            if self._left:
                self.leave()

    def write(self) -> None:
        """Write what was passed on: a call of the system costs more than all that is done with a short request."""
        pieces = self.pieces
        if pieces:
            self.pieces = []
            self._frequent.to_cluster_bytes += sum(map(len, pieces))
            if self.link is not None:
                self.link.write(*pieces)

    def pause_reading(self) -> None:
        """Take nothing of the upstream."""
        if self.link is not None:
            self.link.pause_reading()

    def resume_reading(self) -> None:
        """Take again what comes, as soon as a long answer that has come is rewritten."""
        if self.link is not None and not self.answers.at_work:
            self.link.resume_reading()

    def log_in_again_if_due(self) -> bool:
        """Begin to log in again if it is time and no answer is due; says whether it is time."""
        if self.login_due and self.answers.outstanding == 0 and self.link is not None:
            self.login_due = False
            self._begin(self._log_in_again(self.link))
            return True
        return self.login_due

    def log_in_when_drained(self) -> None:
        """Log in again as soon as no answer is due."""
        self.login_due = True
        self._route()

    def leave(self, *, at_once: bool = False) -> None:
        """End the connection; what was written is sent first, unless it must end at once.

        While audit events wait for an answer, the connection stays for it.
        """
        if self.login_timer is not None:
            self.login_timer.cancel()
        for task in (self.task, self._opening):
            if task is not None:
                task.cancel()
        if self.asking:
            self._stay_for_the_answer()
            return
        self._give_up_own_answer()
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

    # What the connection upstream asks and tells: see `UpstreamListener`

    @property
    def client_addresses(self) -> tuple[Endpoint | None, Endpoint | None]:
        """The addresses of the client and of what it has connected to."""
        return self._connection.addresses()

    def upstream_data(self, data: bytes) -> None:
        """Take answers."""
        connection = self._connection
        if connection.closing and not self.asking:
            return
        self._frequent.to_clients_bytes += len(data)
        own_answer = self.own_answer
        if own_answer is None or own_answer.done():
            # A client that waits for answers is idle only while none come. The gateway's own logins, which repeat on an
            # unused connection too, do not count as use.
            connection.last_received = self._loop.time()
        self.answers.receive_data(data)
        if not self.answers.at_work:
            self._pass_on_answers()

    def _pass_on_answers(self) -> None:
        """Give the client what has come for it; a long answer in parts, so that others have their turn."""
        connection = self._connection
        pieces: list[bytes] = []
        try:
            self._take_answers(pieces)
        except RemoteProtocolError as error:
            self._give_up_own_answer()
            connection.write(pieces)
            connection.end(ConnectionClosed(f"the upstream broker sent an invalid answer: {error}"))
        except Exception as error:  # noqa: BLE001 - it must not reach the loop, which would leave the connection hanging
            connection.fail(error)
        else:
            connection.write(pieces)
            connection.reading.collected(self.answers.buffered)
            if self.answers.at_work:
                self.pause_reading()
                self._loop.call_soon(self._work_on)
            else:
                self._answered()

    def _work_on(self) -> None:
        if not self._connection.closing:
            self._pass_on_answers()
            if self._connection.writable:
                self.resume_reading()

    def upstream_full(self) -> None:
        """Take nothing of the client while the upstream does not read."""
        self.full = True
        self._connection.reading.pause()

    def upstream_writable(self) -> None:
        """Go on."""
        self.full = False
        self._route()

    def upstream_lost(self, reason: str) -> None:
        """Close the client connection: the answers are lost, and clients connect again to a broker that has gone."""
        # A login that waits for its answer fails, and ends the connection itself. A request is answered before.
        if self._give_up_own_answer():
            self._end_behind_the_answer()
        elif not self._connection.closing:
            self._connection.end(ConnectionClosed(f"the upstream broker has gone: {reason}"))

    def _take_answers(self, pieces: list[bytes]) -> None:
        """Add what the client is to get to some pieces."""
        answers = self.answers
        while (piece := answers.next()) is not None:
            if isinstance(piece, Forward):
                pieces.append(piece.data)
            elif (own_answer := self.own_answer) is not None and not own_answer.done():
                own_answer.set_result(piece.content)

    def _stay_for_the_answer(self) -> None:
        if not self._left:
            self._left = True
            self.resume_reading()

    def _give_up_own_answer(self) -> bool:
        """Let a login that waits for an answer fail, since none can come any more; say whether there is one."""
        own_answer = self.own_answer
        if own_answer is None or own_answer.done():
            return False
        own_answer.set_exception(EOFError())
        return True

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

    async def _open(self, candidates: Callable[[], list[Address]]) -> None:
        connection = self._connection
        client = connection.authenticator
        upstream = await self._connector.connect(client.principal, candidates, self, client.token_id)
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

    async def _log_in_again(self, upstream: Upstream) -> None:
        exchange = self._exchange(upstream)
        client = self._connection.authenticator
        await self._connector.log_in_again(client.principal, upstream, exchange, client.token_id)
        self._log_in_later(upstream)

    def _exchange(self, upstream: Upstream, *, long: bool = False) -> Exchange:
        async def exchange(correlation_id: int, request: bytes) -> bytes:
            if self.link is not upstream:
                raise EOFError  # left: no answer would come
            self.own_answer = self._loop.create_future()
            self.answers.expect_own(correlation_id, long=long)
            upstream.write(request)
            try:
                return await self.own_answer
            except asyncio.CancelledError:  # it took too long; what comes next would wait for this answer first
                upstream.abort()
                self._end_behind_the_answer()
                raise

        return exchange

    def _end_behind_the_answer(self) -> None:
        """Close the client connection when what is under way has been answered; no answer comes upstream any more."""
        if not self._connection.closing:
            self.answers.give_up()
            self._connection.finish()
