"""Give a connection when one is needed: connected, logged in, and logged in again before the session ends.

It takes the first bootstrap server that answers. The one that it was connected to before comes last: it may be cut off
from the rest of the cluster. A refused login is not tried on the next server: wrong credentials are wrong everywhere.

Source: KIP-368 (re-authentication); org.apache.kafka.clients.NetworkClient.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from kafka_dt.client.config import Address, ClientConfig
from kafka_dt.client.connection import Connection
from kafka_dt.client.errors import ConnectionLost, LoginMissing, NoServerReached
from kafka_dt.client.login import log_in, login_due_s


class ClientSession:
    """One connection at a time to one of the bootstrap servers; not for several tasks at once.

    config: the servers and the login
    servers: returns the present servers, called for each connection; None takes those of the config
    monotonic: seconds of a clock that never goes back
    random_bytes: unguessable bytes, for SCRAM
    jitter: a number from 0 up to 1
    patience_s: how long a server may take until the login is done, in seconds, before the next one is tried; None: as
        long as its requests may take
    """

    def __init__(
        self,
        config: ClientConfig,
        *,
        servers: Callable[[], Sequence[Address]] | None = None,
        monotonic: Callable[[], float],
        random_bytes: Callable[[int], bytes],
        jitter: Callable[[], float],
        patience_s: float | None = None,
    ) -> None:
        self._config = config
        self._servers = servers or (lambda: config.bootstrap_servers)
        self._monotonic = monotonic
        self._random_bytes = random_bytes
        self._jitter = jitter
        self._patience_s = patience_s
        self._login_due = float("inf")
        self._logged_in_by = config.sasl_login
        self._server = ""
        """The one that it was connected to last."""
        self.connection: Connection | None = None
        """The present connection, which may be broken; `ready` gives one that is not known to be."""

    async def close(self) -> None:
        """End the connection; `ready` would make a new one."""
        connection, self.connection = self.connection, None
        if connection is not None:
            await connection.close()

    async def ready(self) -> Connection:
        """Return a connection that is logged in.

        Raises NoServerReached, LoginFailed or UnsupportedByServer.
        """
        connection = self.connection
        if connection is not None and connection.usable and self._logged_in_by == self._config.sasl_login:
            if self._monotonic() < self._login_due:
                return connection
            # A connection that breaks on the way is made anew below.
            with suppress(ConnectionLost):
                await self._log_in(connection)
                return connection
        if connection is not None:
            connection.abort()
        self.connection = None
        self.connection = await self._connect()
        return self.connection

    def explained(self, error: ConnectionLost) -> ConnectionLost:
        """Return the error of a request with what is most often behind it: servers hang up without a word."""
        credentials = self._config.login
        if type(error) is not ConnectionLost:
            return error
        if not self._config.security_protocol.uses_sasl:
            return LoginMissing(error.server, error.reason)
        if credentials is not None and credentials.token_auth:
            return ConnectionLost(error.server, f"{error.reason}; has the token expired that you log in with?")
        return error

    async def _connect(self) -> Connection:
        reasons = []
        for address in sorted(self._servers(), key=lambda each: str(each) == self._server):
            try:
                async with asyncio.timeout(self._patience_s):
                    connection = await self._logged_in(address)
            except ConnectionLost as error:
                reasons.append((error.server, error.reason))
            except TimeoutError:
                reasons.append((str(address), f"no login within {self._patience_s:g} s"))
            else:
                self._server = str(address)
                return connection
        raise NoServerReached(reasons)

    async def _logged_in(self, address: Address) -> Connection:
        connection = await Connection.open(address, self._config)
        await self._log_in(connection)
        return connection

    async def _log_in(self, connection: Connection) -> None:
        login = self._config.sasl_login
        if not self._config.security_protocol.uses_sasl or login is None:
            return
        self._logged_in_by = login
        asked = self._monotonic()
        try:
            lifetime_ms = await log_in(connection, login, self._random_bytes)
        except BaseException:
            connection.abort()
            raise
        self._login_due = asked + login_due_s(lifetime_ms, self._jitter())
