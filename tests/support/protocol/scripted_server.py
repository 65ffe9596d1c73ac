"""A Kafka server that a test scripts: a real socket, the protocol package's own encoder, answers as told.

It holds no tokens and has no rules. The real server and real brokers are what tests/integration and tests/interop
talk to; this one says what those would say only rarely, and breaks where they would not.
"""

from __future__ import annotations

import asyncio
import inspect
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from kio.schema.errors import ErrorCode

from kafka_dt_protocol.api.registry import APIS, ASKED, ApiKey
from kafka_dt_protocol.api.responses import build
from kafka_dt_protocol.errors import RemoteProtocolError
from kafka_dt_protocol.sasl import (
    Challenge,
    CredentialRequest,
    Failure,
    PlainServer,
    ScramMechanism,
    ScramServer,
    StepResult,
    derive_credential,
)
from kafka_dt_protocol.wire.decoding import decode
from kafka_dt_protocol.wire.frames import FrameSplitter, frame
from kafka_dt_protocol.wire.headers import RequestHeader, encode_response, encode_response_pieces, parse_request_header
from kafka_dt_protocol.wire.times import to_duration

CLOSE = None
"""An answer: none, the connection is closed."""

Answer = Any
"""A mapping of the response's fields, raw bytes in place of a whole frame, or CLOSE; or what is awaited for one."""
Script = Callable[[RequestHeader, Any], Answer]


@dataclass
class ScriptedServer:
    """What it says. `users` are name -> password, for each mechanism; names in `tokens` need tokenauth."""

    users: dict[str, str] = field(default_factory=dict)
    tokens: frozenset[str] = frozenset()
    mechanisms: tuple[str, ...] = ("PLAIN", *ScramMechanism)
    iterations: int = 4096
    session_lifetimes_ms: list[int] = field(default_factory=list)
    """Of the logins to come; 0 when the list is used up."""
    versions: dict[IntEnum, tuple[int, int]] = field(
        default_factory=lambda: {ApiKey(api.key): (api.min_version, api.max_version) for api in APIS.values()}
    )
    scripts: dict[IntEnum, Script] = field(default_factory=dict)
    """What answers a request; wins over the built-in logins and ApiVersions."""
    features: Callable[[], dict[str, Any]] = dict
    """The fields of ApiVersions about features."""
    greeting: bytes | None = None
    """Sent in place of everything else."""
    logins: list[str] = field(default_factory=list)
    requests: list[tuple[IntEnum, int]] = field(default_factory=list)
    """API and version of every request."""
    connections: int = 0
    address: str = ""
    _open: dict[asyncio.StreamWriter, asyncio.Task[None]] = field(default_factory=dict)

    def record(self, api: IntEnum) -> list[Any]:
        """Return the list to which requests of an API are added as they arrive; its script answers them as before."""
        requests: list[Any] = []
        script = self.scripts[api]

        def recording(header: RequestHeader, request: Any) -> Answer:
            requests.append(request)
            return script(header, request)

        self.scripts[api] = recording
        return requests

    @asynccontextmanager
    async def running(self, context: ssl.SSLContext | None = None) -> AsyncIterator[ScriptedServer]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=context)
        self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
            self.drop_connections()
            await asyncio.gather(*list(self._open.values()))
            await server.wait_closed()

    def drop_connections(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open[writer] = asyncio.create_task(self._serve(reader, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self.greeting is not None:
                writer.write(self.greeting)
            else:
                await _Conversation(self, writer).hold(reader)
        except (OSError, RemoteProtocolError):
            writer.transport.abort()
        finally:
            writer.close()
            del self._open[writer]


class _Conversation:
    def __init__(self, server: ScriptedServer, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._writer = writer
        self._mechanism: PlainServer | ScramServer = PlainServer()
        self._name = ""

    async def hold(self, reader: asyncio.StreamReader) -> None:
        splitter = FrameSplitter(1_000_000)
        while data := await reader.read(65536):
            splitter.receive_data(data)
            while (content := splitter.next_frame()) is not None:
                answer = await self._answer(content)
                if answer is CLOSE:
                    return
                self._writer.write(answer)

    async def _answer(self, content: bytes) -> bytes | None:
        header, offset = parse_request_header(content, ASKED)
        api = ASKED[header.api_key].key
        self._server.requests.append((api, header.api_version))
        lowest, highest = self._server.versions.get(api, (0, -1))
        if not lowest <= header.api_version <= highest:
            if api is not ApiKey.API_VERSIONS:
                return CLOSE
            unsupported = self._versions(0, ErrorCode.unsupported_version)
            return frame(encode_response(api, 0, header.correlation_id, unsupported))
        request, _ = decode(ASKED[api].request[header.api_version], content, offset)
        script = self._server.scripts.get(api) or self._built_in(api)
        answer = script(header, request)
        if inspect.isawaitable(answer):
            answer = await answer
        if answer is CLOSE or isinstance(answer, bytes):
            return answer
        entity = build(ASKED[api].response[header.api_version], **answer) if isinstance(answer, dict) else answer
        return frame(b"".join(encode_response_pieces(header, entity, ASKED)))

    def _built_in(self, api: IntEnum) -> Script:
        built_in: dict[IntEnum, Script] = {
            ApiKey.API_VERSIONS: lambda header, _: self._versions(header.api_version, ErrorCode.none),
            ApiKey.SASL_HANDSHAKE: self._handshake,
            ApiKey.SASL_AUTHENTICATE: self._authenticate,
        }
        return built_in.get(api, lambda _header, _request: CLOSE)

    def _versions(self, version: int, error: ErrorCode) -> Any:
        listed: Any = APIS.api_versions(version, error)
        entry = type(listed.api_keys[0])
        features = self._server.features()
        keys: list[IntEnum] = [ApiKey.API_VERSIONS] if error is not ErrorCode.none else list(self._server.versions)
        ranges = self._server.versions
        listed_keys = tuple(entry(api_key=key, min_version=ranges[key][0], max_version=ranges[key][1]) for key in keys)
        return build(type(listed), error_code=error, api_keys=listed_keys, **features)

    def _handshake(self, _header: RequestHeader, request: Any) -> Answer:
        enabled = self._server.mechanisms
        if request.mechanism not in enabled:
            return {"error_code": ErrorCode.unsupported_sasl_mechanism, "mechanisms": enabled}
        if request.mechanism == "PLAIN":
            self._mechanism = PlainServer()
        else:
            self._mechanism = ScramServer(ScramMechanism(request.mechanism), "servernonce")
        return {"error_code": ErrorCode.none, "mechanisms": enabled}

    def _authenticate(self, _header: RequestHeader, request: Any) -> Answer:
        outcome = self._step(request.auth_bytes)
        answer = {
            "error_code": ErrorCode.none,
            "error_message": "",
            "auth_bytes": b"",
            "session_lifetime": to_duration(0),
        }
        match outcome:
            case Challenge(message=message):
                return answer | {"auth_bytes": message}
            case Failure(message=message):
                text = message or "Authentication failed during authentication due to invalid credentials"
                return answer | {"error_code": ErrorCode.sasl_authentication_failed, "error_message": text}
            case _:
                self._server.logins.append(self._name)
                lifetimes = self._server.session_lifetimes_ms
                lifetime = to_duration(lifetimes.pop(0) if lifetimes else 0)
                return answer | {"auth_bytes": outcome.message, "session_lifetime": lifetime}  # type: ignore[union-attr]

    def _step(self, message: bytes) -> StepResult:
        outcome = self._mechanism.step(message)
        if not isinstance(outcome, CredentialRequest):
            return outcome
        self._name = outcome.name
        if isinstance(self._mechanism, PlainServer):
            return self._mechanism.resume(self._server.users.get(outcome.name))
        password = self._server.users.get(outcome.name, "no such user")
        if outcome.token is not (outcome.name in self._server.tokens):
            password = "tokenauth is missing, or too much"
        mechanism = self._mechanism._mechanism
        return self._mechanism.resume(derive_credential(mechanism, password, b"salt", self._server.iterations))
