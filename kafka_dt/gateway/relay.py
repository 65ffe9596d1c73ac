"""Logins of a gateway's clients at the cluster itself, each on the connection upstream that is the client's afterwards.

    relay = ClientRelay(connection, side, open_upstream=open_upstream, logins=logins, now_ms=now_ms)
    connection.authenticator.relay_by(relay)     # from now on `kafka_dt.identity` passes on what a login says

A login again (KIP-368) goes over the same connection, when nothing else is under way there.

The cluster sees the gateway's address only, so its limits for each address hold for all clients together.
`LoginsUnderWay` therefore bounds how many connections one address has opened upstream without completing a login.

Source: KIP-43, KIP-152, KIP-368; org.apache.kafka.common.security.authenticator.SaslClientAuthenticator.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kio.schema.errors import ErrorCode

from kafka_dt.client import TokenClientError
from kafka_dt.client.login import handshake, session_lifetime_ms
from kafka_dt.identity.mechanisms import RelayedAnswer, RelayFailed
from kafka_dt_protocol import ApiKey
from kafka_dt_protocol.sasl.text import printable

if TYPE_CHECKING:
    from kafka_dt.client.login import Channel
    from kafka_dt.gateway.upstream_side import UpstreamSide
    from kafka_dt.server.connections.connection import ClientConnection


class LoginsUnderWay:
    """The connections that have begun a login at the cluster, by the address of their client.

    Args:
        most: how many of one address there may be.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._of: dict[str, set[ClientConnection]] = {}

    def enter(self, connection: ClientConnection) -> bool:
        """Count a connection until it is logged in or has left; False if its address has too many."""
        others = {each for each in self._of.get(connection.client_host, ()) if not each.machine.state.logged_in}
        if len(others) >= self._most:
            return False
        self._of[connection.client_host] = {*others, connection}
        return True

    def leave(self, connection: ClientConnection) -> None:
        """Forget a connection."""
        others = self._of.get(connection.client_host)
        if others is not None:
            others.discard(connection)
            if not others:
                del self._of[connection.client_host]


class ClientRelay:
    """The cluster, for the logins of one client.

    Args:
        connection: the client's.
        side: its way upstream.
        open_upstream: connects without a login; raises as `UpstreamSide.open_for_login`.
        logins: those of all clients.
        now_ms: the clock, milliseconds since the epoch.
    """

    def __init__(
        self,
        connection: ClientConnection,
        side: UpstreamSide,
        *,
        open_upstream: Callable[[], Awaitable[None]],
        logins: LoginsUnderWay,
        now_ms: Callable[[], int],
    ) -> None:
        self._connection = connection
        self._side = side
        self._open_upstream = open_upstream
        self._logins: Final = logins
        self._now_ms = now_ms
        self._opened = False

    async def begin(self, mechanism: str) -> None:
        """Connect at the first login, and choose the mechanism; see `Relay`."""
        if self._side.link is None:
            await self._open()
        elif not self._opened:
            raise RelayFailed("a session that began with a token cannot go on with a login at the cluster")
        with _failing():
            await handshake(self._required_channel(), mechanism)

    async def pass_on(self, message: bytes) -> RelayedAnswer:
        """Pass on a message of the client; see `Relay`."""
        asked_ms = self._now_ms()
        with _failing():
            answer = await self._required_channel().request(ApiKey.SASL_AUTHENTICATE, auth_bytes=message)
        if answer.error_code is not ErrorCode.none:
            return RelayedAnswer(b"", answer.error_message or "")
        lifetime_ms = session_lifetime_ms(answer)
        return RelayedAnswer(answer.auth_bytes, ends_timestamp_ms=asked_ms + lifetime_ms if lifetime_ms else None)

    def channel(self) -> Channel | None:
        """Give what makes requests on the connection of the client's login at the cluster; None if there is none."""
        link = self._side.link
        return self._side.channel(link) if self._opened and link is not None else None

    def lost(self) -> None:
        """Take note that the client has gone."""
        self._logins.leave(self._connection)

    async def _open(self) -> None:
        if self._connection.closing:  # while its user name was looked for among the tokens
            raise RelayFailed("the client has gone")
        if not self._logins.enter(self._connection):
            raise RelayFailed("too many logins of this address are under way at the cluster")
        with _failing("no connection to the upstream cluster: "):
            await self._open_upstream()
        self._opened = True

    def _required_channel(self) -> Channel:
        channel = self.channel()
        if channel is None:
            raise RelayFailed("the connection to the upstream broker has ended")
        return channel


@contextmanager
def _failing(before: str = "") -> Iterator[None]:
    """Let a login fail because of the cluster; `before` is said before the reason."""
    try:
        yield
    except (TokenClientError, OSError) as error:
        raise RelayFailed(before + printable(str(error))) from error
