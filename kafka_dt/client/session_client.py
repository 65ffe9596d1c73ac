"""What the clients share: how they connect, and how they send a request.

A client uses the first bootstrap server that answers, connects again at the next call after a lost connection, and logs
in again before a session ends. It sends the calls of several tasks one after the other. Limits: one event loop; one
request at a time.

Source: org.apache.kafka.clients.admin.KafkaAdminClient.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

from kafka_dt.client.config import Address, ClientConfig
from kafka_dt.client.connection import Connection
from kafka_dt.client.errors import ConnectionLost
from kafka_dt.client.session import ClientSession
from kafka_dt_protocol.api.registry import ApiKey

Values = Callable[[Connection], Mapping[str, Any]]
"""Makes the fields of a request for a connection, which knows the versions of its server."""


class SessionClient:
    """An async context manager that connects and logs in.

    config: the servers and the login; `from_config` makes it of Kafka's properties
    servers: returns the present servers, called for each connection; None takes those of the config
    monotonic: seconds of a clock that never goes back
    random_bytes: unguessable bytes, for SCRAM
    jitter: a number from 0 up to 1, new each time, so that many clients do not act at the same moment
    """

    def __init__(
        self,
        config: ClientConfig,
        *,
        servers: Callable[[], Sequence[Address]] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        random_bytes: Callable[[int], bytes] = os.urandom,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._new_session = partial(
            ClientSession, config, monotonic=monotonic, random_bytes=random_bytes, jitter=jitter
        )
        self._session = self._new_session(servers=servers)
        self._random_bytes = random_bytes
        self._jitter = jitter
        self._turn = asyncio.Lock()

    @classmethod
    def from_config(cls, properties: Mapping[str, str]) -> Self:
        """Make a client of Kafka's client properties (see kafka_dt.client.config).

        Raises ClientConfigError.
        """
        return cls(ClientConfig.from_properties(properties))

    async def __aenter__(self) -> Self:
        """Connect and log in.

        Raises NoServerReached or LoginFailed.
        """
        async with self._turn:
            await self._session.ready()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection; a later call would make a new one."""
        await self._session.close()

    async def _call(self, api: ApiKey, values: Values, *, repeatable: bool) -> Any:
        """Send a request and return the answer's entity, whatever error it tells.

        repeatable: whether it may be sent again when an idle connection turns out to be dead
        """
        async with self._turn:
            used_before = self._session.connection
            connection = await self._session.ready()
            try:
                return await connection.request(api, **values(connection))
            except ConnectionLost as error:
                # A connection that has been idle is often found dead only now; a fresh one is broken for a reason.
                if not repeatable or connection is not used_before:
                    raise self._session.explained(error) from error.__cause__
                return await self._ask_again(api, values)

    async def _call_at(self, server: Address, api: ApiKey, values: Values) -> Any:
        """Send a request to one server of the cluster, on a connection of its own, and return the answer's entity."""
        session = self._new_session(servers=lambda: (server,))
        try:
            connection = await session.ready()
            return await connection.request(api, **values(connection))
        finally:
            await session.close()

    async def _ask_again(self, api: ApiKey, values: Values) -> Any:
        connection = await self._session.ready()
        try:
            return await connection.request(api, **values(connection))
        except ConnectionLost as error:
            raise self._session.explained(error) from error.__cause__
