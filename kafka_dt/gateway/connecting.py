"""Make connections upstream: find what a principal logs in with, find a broker that can be reached, log in.

    connector = Connector(config, identities)                    # of all clients
    upstream = await connector.connect(principal, addresses, listener)
    await connector.log_in_again(principal, upstream, exchange)  # before the broker ends the session

A login may be refused for reasons that pass. A token that has just been made reaches the brokers of a KRaft cluster one
after the other, so what is new is tried again for some seconds; what is not new may have ended without our
knowing it, so it is asked for anew, once. What was refused then is not tried again at that broker for some seconds,
since clients come back at once and a cluster may lock out who guesses.

A connection that may go to any broker does not wait long for one: after `PATIENCE_S` a second broker is tried as well,
and the one that takes the login first is used.

Source: KIP-368, KIP-900 (tokens in KRaft's metadata log); org.apache.kafka.clients.NetworkClient; RFC 5802, 3 (a client
may keep what it has derived).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kafka_dt.client import (
    ConnectionFailed,
    ConnectionLost,
    LoginFailed,
    MechanismNotEnabled,
    NoServerReached,
    TokenClientError,
)
from kafka_dt.clock import now_ms
from kafka_dt.gateway.identities import IdentityRefused, RefusedLogin
from kafka_dt.gateway.upstream import Upstream
from kafka_dt.metrics import Counts
from kafka_dt.metrics.counts import OK
from kafka_dt_protocol.sasl import derive_keys
from kafka_dt_protocol.sasl.text import printable
from kafka_dt_protocol.wire.proxy_header import proxy_header

if TYPE_CHECKING:
    from kafka_dt.client import Address, ClientConfig, Credentials
    from kafka_dt.gateway.identities import Identities, UpstreamLogin
    from kafka_dt.gateway.own_tokens import OwnTokens
    from kafka_dt.gateway.upstream import Exchange, UpstreamListener
    from kafka_dt.tokens import Principal

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
            NoIdentity: the principal has no upstream identity; IdentityRefused if the cluster refused it.
            LoginFailed: the cluster refused the login.
            ConnectionFailed: no broker can be reached; NoServerReached tells how each failed.
            UnsupportedByServer: the broker has no login by SASL that we know.
        """
        own = self._own_login(principal, token_id)
        if own is not None:
            return await self._connect_once_known(own, addresses, listener)
        try:
            login = await self._identities.login(principal)
        except IdentityRefused:
            self._begun.add("refused")
            raise
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


def _abandon(attempts: set[asyncio.Task[Upstream]]) -> None:
    """End connections that are not needed any more, made or being made."""
    for attempt in attempts:
        if not attempt.done():
            attempt.cancel()
        elif not attempt.cancelled() and attempt.exception() is None:
            attempt.result().abort()
