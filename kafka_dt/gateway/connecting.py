"""A client's way upstream: find what its principal logs in with, find a broker that can be reached, log in.

    connector = Connector(config, identities)                    # of all clients
    way = UpstreamSide(connection, route, connector=connector, now_ms=now_ms)
    way.open(listener, candidates)      # connects and logs in as the client's principal
    way.pieces.append(piece)            # what is passed on; all of it is written at once
    way.write()
    way.log_in_again_if_due(answers)    # before the broker ends the session (KIP-368), while no answer is due
    way.leave()

A login may be refused for reasons that pass. A token that has just been made reaches the brokers of a KRaft cluster one
after the other, so what is new is tried again for some seconds; what is not new may have ended without our
knowing it, so it is asked for anew, once. What was refused then is not tried again at that broker for some seconds,
since clients come back at once and a cluster may lock out who guesses.

A connection that may go to any broker does not wait long for one: after `PATIENCE_S` a second broker is tried as well,
and the one that takes the login first is used.

What was written needs no answer any more when the client goes, but may be a Produce with acks=0: so a connection that
is left is flushed first.

Source: KIP-368, KIP-900 (tokens in KRaft's metadata log); org.apache.kafka.clients.NetworkClient; RFC 5802, 3 (a client
may keep what it has derived).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.client import (
    ConnectionFailed,
    ConnectionLost,
    LoginFailed,
    MechanismNotEnabled,
    NoServerReached,
    TokenClientError,
)
from kafka_dt.clock import now_ms
from kafka_dt.gateway.identities import NoIdentity, RefusedLogin
from kafka_dt.gateway.upstream import Upstream
from kafka_dt.metrics import Counts
from kafka_dt.metrics.counts import OK
from kafka_dt_protocol import ConnectionClosed
from kafka_dt_protocol.sasl import derive_keys
from kafka_dt_protocol.sasl.text import printable
from kafka_dt_protocol.wire.proxy_header import proxy_header

if TYPE_CHECKING:
    from kafka_dt.client import Address, ClientConfig, Credentials
    from kafka_dt.client.login import Channel
    from kafka_dt.gateway.identities import Identities, UpstreamLogin
    from kafka_dt.gateway.own_tokens import OwnTokens
    from kafka_dt.gateway.upstream import Exchange, UpstreamListener
    from kafka_dt.server.connections.connection import ClientConnection
    from kafka_dt.tokens import Principal
    from kafka_dt_protocol.rewriting import AnswerStream

_LOG = logging.getLogger(__name__)

FIRST_WAIT_S: Final = 0.05
LONGEST_WAIT_S: Final = 1.0
PATIENCE_S: Final = 3.0
"""How long a broker may take for connection and login before another one is tried as well, in seconds."""
MOST_AT_ONCE: Final = 2
"""How many brokers one connection is tried at in the same moment."""
REMEMBERED_KEYS: Final = 4_096
"""Of how many passwords, each with the salt of a broker, the keys are remembered; about a kilobyte each. Clients of one
principal log in with the same password, and a broker has the same salt for it each time."""
FLUSH_S: Final = 5.0
"""How long an upstream that is left may take for what was written to it."""
ANSWER_S: Final = 30.0
"""How long an upstream that is left may take for an answer that audit events are made of."""


class Connector:
    """Makes connections upstream.

    Args:
        config: how brokers are spoken to.
        identities: who clients are there.
        own_tokens: the logins of clients with a token, where they log in there with it; None where they do not.
        now_ms: milliseconds since 1970.
        sleep: waits for seconds.
        patience_s: seconds after which another broker is tried beside a slow one.
        counts: where connections are counted.
    """

    open_connections: int = 0
    """How many connections upstream are open."""

    def __init__(
        self,
        config: ClientConfig,
        identities: Identities,
        *,
        own_tokens: OwnTokens | None = None,
        now_ms: Callable[[], int] = now_ms,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        patience_s: float = PATIENCE_S,
        counts: Counts | None = None,
    ) -> None:
        self._begun = (counts or Counts.alone()).gateway_connections
        self._config = config
        self._patience_s = patience_s
        self._identities = identities
        self._own_tokens = own_tokens
        self._now_ms = now_ms
        self._sleep = sleep
        self._refused: dict[tuple[Credentials, str], RefusedLogin] = {}
        """By broker: where they are being given other passwords, the first ones refuse what the others take."""
        self._derive: Final = lru_cache(REMEMBERED_KEYS)(derive_keys)

    async def connect(
        self,
        principal: Principal,
        addresses: Callable[[], Sequence[Address]],
        listener: UpstreamListener,
        token_id: str | None = None,
    ) -> Upstream:
        """Return a connection that is logged in as a principal.

        Args:
            principal: of the client that the connection is for.
            addresses: where to try, in this order; asked again for each login, since brokers move.
            listener: hears of what happens on the connection.
            token_id: of the token that the client logged in with; None if it did not.

        Raises:
            NoIdentity: the principal has no upstream identity.
            LoginFailed: the cluster refused the login.
            ConnectionFailed: no broker can be reached; NoServerReached tells how each failed.
            UnsupportedByServer: the broker has no login by SASL that we know.
        """
        own = self._own_login(principal, token_id)
        if own is not None:
            return await self._connect_once_known(own, addresses, listener)
        login = await self._identities.login(principal)
        try:
            return await self._connect_once_known(login, addresses, listener)
        except MechanismNotEnabled:
            raise
        except LoginFailed as refusal:
            if login is None:
                raise
            _LOG.info(
                "The upstream cluster refused the login of %s; the gateway looks for another login: %s",
                *(printable(str(principal)), refusal.reason),
            )
            await self._identities.refused(principal, login)
            other = await self._identities.login(principal)
            if other is None or other.credentials == login.credentials:
                raise
            return await self._connect_once_known(other, addresses, listener)

    async def connect_for_login(
        self, addresses: Callable[[], Sequence[Address]], listener: UpstreamListener
    ) -> Upstream:
        """Return a connection that is not logged in: the client is about to do that through us.

        Raises as `connect`, except for what is about logins.
        """
        return await self._connect_to_one(None, addresses(), listener)

    async def log_in_again(
        self, principal: Principal, upstream: Upstream, exchange: Exchange, token_id: str | None = None
    ) -> None:
        """Log in again on a connection whose session ends; see `Upstream.reauthenticate`.

        A refusal would end the connection, so what the broker may not know yet waits until it does.

        Raises:
            NoIdentity: the principal has no upstream identity any more.
            LoginFailed: the broker refused the login; the next `connect` looks for another one.
            ConnectionFailed: the connection is lost, or the cluster cannot be asked.
        """
        login = self._own_login(principal, token_id) or await self._identities.login(principal)
        if login is not None:
            await self._sleep(max(0, login.known_by_ms - self._now_ms()) / 1000)
            await upstream.reauthenticate(login.credentials, exchange)

    def _own_login(self, principal: Principal, token_id: str | None) -> UpstreamLogin | None:
        """Return the login by the client's own token; None if it has none that the cluster knows."""
        if self._own_tokens is None or token_id is None:
            return None
        return self._own_tokens.login(principal, token_id)

    async def _connect_once_known(
        self, login: UpstreamLogin | None, addresses: Callable[[], Sequence[Address]], listener: UpstreamListener
    ) -> Upstream:
        """Connect, and be patient with brokers that may not know the login yet."""
        wait_s = FIRST_WAIT_S
        while True:
            try:
                return await self._connect_to_one(login, addresses(), listener)
            except MechanismNotEnabled:
                raise
            except LoginFailed:
                if not self._may_be_known_later(login):
                    raise
            await self._sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    def _may_be_known_later(self, login: UpstreamLogin | None) -> bool:
        return login is not None and self._now_ms() < login.known_by_ms

    async def _connect_to_one(
        self, login: UpstreamLogin | None, addresses: Sequence[Address], listener: UpstreamListener
    ) -> Upstream:
        """Connect to the first broker that takes the login; a slow one is waited for beside the next."""
        waiting = list(addresses)
        running: set[asyncio.Task[Upstream]] = set()
        failures: list[ConnectionLost] = []
        try:
            while waiting or running:
                if waiting and len(running) < MOST_AT_ONCE:
                    running.add(asyncio.create_task(self._open(login, waiting.pop(0), listener)))
                patient = not waiting or len(running) == MOST_AT_ONCE
                done, _ = await asyncio.wait(
                    running, timeout=None if patient else self._patience_s, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    continue
                first = done.pop()
                running.discard(first)
                try:
                    return first.result()
                except ConnectionLost as failure:
                    failures.append(failure)
        finally:
            _abandon(running)
        if not failures:
            raise ConnectionFailed("no address of the upstream broker is known")
        if len(failures) == 1:
            raise failures[0]
        raise NoServerReached([(failure.server, failure.reason) for failure in failures])

    async def _open(self, login: UpstreamLogin | None, address: Address, listener: UpstreamListener) -> Upstream:
        """Connect to one broker, unless it has just refused the same login."""
        credentials = login.credentials if login else None
        if credentials is not None and (refused := self._refused.get((credentials, str(address)))) is not None:
            refused.raise_if_recent(self._now_ms())
        config = self._config
        if config.preamble:
            config = replace(config, preamble=proxy_header(*listener.client_addresses))
        opening = Upstream(config, listener, derive=self._derive, ended=self._note_end)
        try:
            upstream = await opening.open(address, credentials)
        except MechanismNotEnabled:
            self._begun.add("refused")
            raise  # the credentials were not checked
        except LoginFailed as refusal:
            self._begun.add("refused")
            if credentials is not None and not self._may_be_known_later(login):
                self._remember(credentials, refusal)
            raise
        except TokenClientError:
            self._begun.add("failed")
            raise
        self._begun.add(OK)
        self.open_connections += 1
        return upstream

    def _note_end(self) -> None:
        self.open_connections -= 1

    def _remember(self, credentials: Credentials, refusal: LoginFailed) -> None:
        """Remember a refusal, and forget those that have ended."""
        now_ms = self._now_ms()
        self._refused = {other: refused for other, refused in self._refused.items() if refused.recent(now_ms)}
        self._refused[credentials, refusal.server] = RefusedLogin(refusal, now_ms)


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
    asking: bool = False
    """Whether an answer is due that audit events are made of: it is waited for, also when the client has gone."""

    def __init__(
        self,
        connection: ClientConnection,
        route: Callable[[], None],
        *,
        connector: Connector,
        now_ms: Callable[[], int],
    ) -> None:
        self._connection = connection
        self._frequent = connection.services.counts.frequent
        self._route = route
        self._connector = connector
        self._now_ms = now_ms
        self._loop = asyncio.get_running_loop()
        self._opening: asyncio.Task[Upstream] | None = None  # connects for a login that is relayed
        self._left = False
        self.pieces: list[bytes] = []

    def open(self, listener: UpstreamListener, candidates: Callable[[], list[Address]]) -> None:
        """Connect and log in as the client's principal.

        Args:
            listener: hears what comes.
            candidates: gives the brokers that will do, best first.
        """
        self._begin(self._open(listener, candidates))

    async def open_for_login(self, listener: UpstreamListener, candidates: Callable[[], list[Address]]) -> None:
        """Connect without a login, which the client is to make on this connection; raises as `Connector.connect`.

        It is called off when the client goes.
        """
        connection = self._connection
        self._opening = self._loop.create_task(self._connector.connect_for_login(candidates, listener))
        try:
            upstream = await self._opening
        finally:
            self._opening = None
        if connection.closing:
            upstream.abort()
            raise ConnectionFailed("the client has gone")
        self.link = upstream

    def channel(self, upstream: Upstream, answers: AnswerStream) -> Channel:
        """Give what makes requests of the gateway's own on the connection, while no answer is due."""
        return upstream.channel(self._exchange(upstream, answers))

    async def ask(self, request: bytes, correlation_id: int, answers: AnswerStream) -> bytes:
        """Send a request of the client while no answer is due, and give the content of its answer.

        Args:
            request: whole, with its length.
            correlation_id: of the request.
            answers: what comes upstream for the client.

        Raises:
            EOFError: the connection has ended before.
        """
        if self.link is None:
            raise EOFError
        self.asking = True
        self._frequent.to_cluster_bytes += len(request)
        try:
            return await self._exchange(self.link, answers, long=True)(correlation_id, request)
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
        self.give_up_own_answer()
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

    def _stay_for_the_answer(self) -> None:
        if not self._left:
            self._left = True
            self.resume_reading()
            self._loop.call_later(ANSWER_S, self.give_up_own_answer)

    def give_up_own_answer(self) -> bool:
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

    async def _open(self, listener: UpstreamListener, candidates: Callable[[], list[Address]]) -> None:
        connection = self._connection
        client = connection.authenticator
        upstream = await self._connector.connect(client.principal, candidates, listener, client.token_id)
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
        exchange = self._exchange(upstream, answers)
        client = self._connection.authenticator
        await self._connector.log_in_again(client.principal, upstream, exchange, client.token_id)
        self._log_in_later(upstream)

    def _exchange(self, upstream: Upstream, answers: AnswerStream, *, long: bool = False) -> Exchange:
        async def exchange(correlation_id: int, request: bytes) -> bytes:
            if self.link is not upstream:
                raise EOFError  # left: no answer would come
            self.own_answer = self._loop.create_future()
            answers.expect_own(correlation_id, long=long)
            upstream.write(request)
            return await self.own_answer

        return exchange


def _abandon(attempts: set[asyncio.Task[Upstream]]) -> None:
    """End connections that are not needed any more, made or being made."""
    for attempt in attempts:
        if not attempt.done():
            attempt.cancel()
        elif not attempt.cancelled() and attempt.exception() is None:
            attempt.result().abort()
