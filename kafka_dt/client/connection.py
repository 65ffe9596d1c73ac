"""One connection of a client: a request out, its answer in, one after the other.

`Connection.open` connects (TLS included) and agrees on API versions; `request` sends one request in the highest
version that both sides know and returns the answer's entity. Whatever goes wrong on the way, also a cancellation,
ends the connection, so that a late answer can never be taken for the next one's.

Source: org.apache.kafka.clients.NetworkClient; KIP-35 and KIP-511 (ApiVersions).
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from contextlib import suppress
from importlib.metadata import version as package_version
from typing import TYPE_CHECKING, Any, Final, Self

from kio.schema.errors import ErrorCode

from kafka_dt.client.errors import (
    ConnectionLost,
    InvalidArgument,
    RequestTimedOut,
    UnexpectedAnswer,
    UnsupportedByServer,
)
from protocol.errors import InvalidFrameLength, LocalProtocolError, RemoteProtocolError
from protocol.frames import FrameSplitter, frame
from protocol.headers import RequestHeader, decode_response, encode_request
from protocol.registry import APIS, ApiKey
from protocol.responses import build

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_dt.client.config import Address

MAX_ANSWER_BYTES: Final = 100 * 1024 * 1024
"""Longer answers are refused; 100,000 described tokens fit."""

_CHUNK_BYTES: Final = 64 * 1024
_CLOSE_TIMEOUT_S: Final = 2
_LARGEST_CORRELATION_ID: Final = 2**31 - 1
_TLS_RECORDS: Final = range(0x14030000, 0x17040000)
_SOFTWARE: Final = {
    "client_software_name": "kafka-dt",
    # Servers take letters, digits, dots and dashes only.
    "client_software_version": re.sub(r"[^a-zA-Z0-9.\-]", "-", package_version("kafka-dt")),
}


class Connection:
    """A connection to one server; made by `open`."""

    def __init__(
        self,
        address: Address,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        *,
        client_id: str,
        request_timeout_ms: int,
    ) -> None:
        self.server: Final = str(address)
        self._reader, self._writer = streams
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._splitter = FrameSplitter(MAX_ANSWER_BYTES)
        self._correlation_id = 0
        self._versions: Mapping[int, tuple[int, int]] = {}
        self._ended = False

    @classmethod
    async def open(
        cls,
        address: Address,
        *,
        ssl_context: ssl.SSLContext | None,
        client_id: str,
        setup_timeout_ms: int,
        request_timeout_ms: int,
    ) -> Self:
        """Connect to a server and ask for its API versions.

        Raises ConnectionLost or one of its kinds.
        """
        streams = await _connect(address, ssl_context, setup_timeout_ms)
        connection = cls(address, streams, client_id=client_id, request_timeout_ms=request_timeout_ms)
        try:
            connection._versions = await connection._ask_versions()
        except BaseException as error:
            connection.abort()
            if type(error) is not ConnectionLost:
                raise
            raise ConnectionLost(error.server, f"{error.reason}; does security.protocol fit that listener?") from error
        return connection

    @property
    def usable(self) -> bool:
        """Whether a request may be tried: nothing went wrong so far and the server has not hung up."""
        return not (self._ended or self._reader.at_eof() or self._writer.is_closing())

    def version(self, api: ApiKey) -> int:
        """Return the version of an API in which `request` will speak.

        Raises UnsupportedByServer when there is none.
        """
        lowest, highest = self._versions.get(api, (0, -1))
        common = min(highest, APIS[api].max_version)
        if common < max(lowest, APIS[api].min_version):
            offered = f"versions {lowest} to {highest}" if highest >= 0 else "none"
            raise UnsupportedByServer(self.server, f"{_spoken(api)} in a version known here (it has {offered})")
        return common

    async def request(self, api: ApiKey, **values: Any) -> Any:
        """Send a request and return the answer's entity.

        values: the fields of the request by name, of any version; those that the version at hand has not are left
        out, so check `version` first where that matters.
        Raises ConnectionLost or one of its kinds, or UnsupportedByServer.
        """
        version = self.version(api)
        return await self._exchange(api, version, build(APIS[api].request[version], **values))

    def abort(self) -> None:
        """End the connection at once."""
        self._ended = True
        self._writer.transport.abort()

    async def close(self) -> None:
        """End the connection; returns when that is done, and quietly."""
        self._ended = True
        self._writer.close()
        # A server that is gone, or slow to say goodbye over TLS, is none of our business any more.
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await self._writer.wait_closed()
        self._writer.transport.abort()

    async def _ask_versions(self) -> Mapping[int, tuple[int, int]]:
        api, version = ApiKey.API_VERSIONS, APIS[ApiKey.API_VERSIONS].max_version
        answer = await self._exchange(api, version, build(APIS[api].request[version], **_SOFTWARE))
        if answer.error_code is ErrorCode.unsupported_version:
            # KIP-511: an older server says which versions of this API it has, or nothing.
            version = max((key.max_version for key in answer.api_keys if key.api_key == api), default=0)
            version = min(version, APIS[api].max_version)
            answer = await self._exchange(api, version, build(APIS[api].request[version], **_SOFTWARE))
        if answer.error_code is not ErrorCode.none:
            raise UnexpectedAnswer(self.server, f"no list of API versions but the error {answer.error_code.name}")
        return {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}

    async def _exchange(self, api: ApiKey, version: int, entity: Any) -> Any:
        correlation_id = self._correlation_id
        self._correlation_id = 0 if correlation_id == _LARGEST_CORRELATION_ID else correlation_id + 1
        try:
            request = encode_request(RequestHeader(api, version, correlation_id, self._client_id), entity)
        except LocalProtocolError as error:
            raise InvalidArgument(f"this cannot be sent: {error}") from error
        try:
            async with asyncio.timeout(self._request_timeout_ms / 1000):
                self._writer.write(frame(request))
                await self._writer.drain()
                answered_id, answer = decode_response(api, version, await self._read_frame())
        except BaseException as error:
            self.abort()
            if (ours := _translated(error, self.server, self._request_timeout_ms)) is None:
                raise
            raise ours from error
        if answered_id != correlation_id:
            self.abort()
            raise UnexpectedAnswer(self.server, f"answer {answered_id} came where {correlation_id} was due")
        return answer

    async def _read_frame(self) -> bytes:
        while (content := self._splitter.next_frame()) is None:
            data = await self._reader.read(_CHUNK_BYTES)
            if not data:
                raise EOFError
            self._splitter.receive_data(data)
        return content


async def _connect(
    address: Address, ssl_context: ssl.SSLContext | None, timeout_ms: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            return await asyncio.open_connection(address.host, address.port, ssl=ssl_context)
    except TimeoutError as error:
        reason = f"no connection within {timeout_ms} ms (socket.connection.setup.timeout.ms)"
        raise ConnectionLost(str(address), reason) from error
    except OSError as error:
        raise ConnectionLost(str(address), _transport_reason(error, connecting=True)) from error


def _translated(error: BaseException, server: str, timeout_ms: int) -> ConnectionLost | None:
    match error:
        case TimeoutError():
            return RequestTimedOut(server, timeout_ms)
        case EOFError():
            return ConnectionLost(server, "the server closed the connection instead of answering")
        case OSError():
            return ConnectionLost(server, _transport_reason(error))
        case InvalidFrameLength(length=length) if length in _TLS_RECORDS:
            return UnexpectedAnswer(server, "the server speaks TLS; set security.protocol to SSL or SASL_SSL")
        case RemoteProtocolError():
            return UnexpectedAnswer(server, f"this is not Kafka's protocol: {error}")
        case _:
            return None


def _transport_reason(error: OSError, *, connecting: bool = False) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {error.verify_message} (see ssl.truststore.location)"
        case ssl.SSLError():
            return f"TLS failed: {error.reason or error}; does security.protocol fit that listener?"
        case ConnectionResetError() if connecting:
            return "it hung up during the TLS handshake; does security.protocol fit that listener?"
        case socket.gaierror():
            return f"the name does not resolve ({error.strerror})"
        case _ if error.errno:
            # asyncio words a refused connection with the address only.
            return os.strerror(error.errno)
        case _:
            return str(error) or type(error).__name__


def _spoken(api: ApiKey) -> str:
    return "".join(word.capitalize() for word in api.name.split("_"))
