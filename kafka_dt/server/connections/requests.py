"""The requests of one connection that are served here, one at a time.

An unforeseen error in a handler is logged whole and answered without detail; it touches no other request.

Source: kafka.server.KafkaApis, org.apache.kafka.common.requests.RequestContext.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from kafka_dt.config import Endpoint
from kafka_dt.log import of_peer
from kafka_dt.metrics.counts import TOKEN_OPERATIONS
from kafka_dt.server.addresses import as_ipv4
from kafka_dt.server.handlers import ClusterAnswer, RequestContext
from kafka_dt_protocol import RemoteProtocolError, RequestReceived

if TYPE_CHECKING:
    from kafka_dt.server.connections.connection import ClientConnection

_LOG = logging.getLogger(__name__)


class ConnectionRequests:
    """Has the handlers answer the requests of a client."""

    task: asyncio.Task[None] | None
    """What the connection waits for before it serves anything else: a request, or a login that takes a while."""

    def __init__(self, connection: ClientConnection) -> None:
        self.task = None
        self._connection = connection
        self._services = connection.services
        self._client_left = False
        self._ends_with_client = False

    def begin(self, request: RequestReceived) -> None:
        """Have a request answered, as the client is connected now."""
        self.start(self._answer(request, self._context(request)))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin what the connection waits for; it goes on serving afterwards."""
        self.task = asyncio.get_running_loop().create_task(work)
        self.task.add_done_callback(self._done)

    def client_leaves(self) -> None:
        """Call off the request under way if it changes nothing; a change is completed."""
        self._client_left = True
        if self._ends_with_client and self.task is not None:
            self.task.cancel()

    def endpoint(self) -> Endpoint:
        """Say where this client reaches this node: as advertised, else where it has connected to."""
        advertised = self._services.listener.advertised
        if advertised.host and advertised.port:
            return advertised
        host, port = self._connection.own_address()
        return Endpoint(advertised.name, advertised.host or as_ipv4(host), advertised.port or port)

    async def _answer(self, request: RequestReceived, context: RequestContext) -> None:
        connection, key = self._connection, request.header.api_key
        begun_s = time.perf_counter()
        try:
            answer = await self._services.handler(context, request.body)
            self._respond(answer)
        except RemoteProtocolError as error:
            connection.end(connection.machine.reject(str(error)))
            return
        except Exception:  # noqa: BLE001 - an unforeseen error must not take other requests along
            extra = of_peer(connection.client_host)
            _LOG.exception("A request of API %d of %s failed", key, connection.peer, extra=extra)
            answer = self._services.apis.refusal(request.header, request.body, ErrorCode.unknown_server_error)
            connection.machine.respond(answer)
        counts = self._services.counts
        counts.request_seconds.observe(time.perf_counter() - begun_s, key)
        if key in TOKEN_OPERATIONS:
            counts.token_requests.add(key, answer.error_code)

    def _respond(self, answer: Any) -> None:
        connection = self._connection
        if not isinstance(answer, ClusterAnswer):
            connection.machine.respond(answer)
        elif answer.content is not None:
            connection.machine.respond_encoded(answer.content)
        elif not connection.closing:
            connection.end(connection.machine.reject("the upstream broker gave no answer that can be read"))

    def _context(self, request: RequestReceived) -> RequestContext:
        client = self._connection.authenticator
        return RequestContext(
            header=request.header,
            principal=client.principal,
            client_host=self._connection.client_host,
            token_login=client.by_token,
            security_protocol=self._services.listener.security_protocol,
            endpoint=self.endpoint(),
            own=self._connection.own_upstream,
            ask_cluster=self._connection.ask_cluster,
            audit=client.audit,
            end_with_client=self._end_with_client,
            apis=self._services.apis,
        )

    def _end_with_client(self) -> None:
        """Call off the request under way when the client goes, or has gone: for long work that changes nothing.

        A client that closes its socket looks like one that will send no more, so that is taken for going as well.
        """
        self._ends_with_client = True
        if self._client_left and self.task is not None:
            self.task.cancel()

    def _done(self, task: asyncio.Task[None]) -> None:
        self.task = None
        self._ends_with_client = False
        error = None if task.cancelled() else task.exception()
        if task.cancelled():
            self._connection.abort()
        elif error is not None:
            self._connection.fail(error)
        else:
            self._connection.serve()
