"""A client that talks to one connection: it encodes requests and decodes the answers."""

from __future__ import annotations

import struct
from typing import Any

from kafka_dt_protocol import (
    APIS,
    ApiKey,
    Event,
    Limits,
    MechanismChosen,
    RequestHeader,
    ServerConnection,
    TokenReceived,
    build,
    decode_response,
    encode_request,
    frame,
)

NOW = 1_700_000_000_000
LIMITS = Limits(before_login_bytes=1000, after_login_bytes=2000)
MECHANISMS = ("SCRAM-SHA-256", "PLAIN")


class Conversation:
    """A client that encodes requests, and the connection that it talks to."""

    def __init__(self, mechanisms: tuple[str, ...] = MECHANISMS) -> None:
        self.connection = ServerConnection(mechanisms, LIMITS)
        self.now = NOW
        self._correlation_id = 0
        self._asked: list[tuple[int, int]] = []

    def ask(self, api: ApiKey, version: int, **values: Any) -> None:
        """Send a request without looking at what comes of it."""
        self.connection.receive_data(frame(self.request(api, version, **values)))

    def request(self, api: ApiKey, version: int, **values: Any) -> bytes:
        self._correlation_id += 1
        header = RequestHeader(api, version, self._correlation_id, "test")
        self._asked.append((api, version))
        return encode_request(header, build(APIS[api].request[version], **values))

    def event(self) -> Event | None:
        return self.connection.next_event(self.now)

    def frames(self) -> list[bytes]:
        """Give the contents of the frames that were sent since the last call."""
        data, found = self.connection.data_to_send(), []
        while data:
            (length,) = struct.unpack_from(">i", data)
            found.append(data[4 : 4 + length])
            data = data[4 + length :]
        return found

    def answers(self) -> list[Any]:
        """Give the answers that were sent since the last call, decoded; their order must be that of the requests."""
        found = []
        for content in self.frames():
            api, version = self._asked.pop(0)
            correlation_id, entity = decode_response(api, version, content)
            assert correlation_id == self._correlation_id - len(self._asked)
            found.append(entity)
        return found

    def answer(self) -> Any:
        (entity,) = self.answers()
        return entity

    def tokens(self, *messages: bytes) -> None:
        """Send SASL tokens in SaslAuthenticate v2."""
        for message in messages:
            self.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=message)

    def log_in(self, lifetime_ms: int | None = None, version: int = 1) -> None:
        self.ask(ApiKey.SASL_HANDSHAKE, version, mechanism="PLAIN")
        assert self.event() == MechanismChosen("PLAIN")
        self.answers()
        if version:
            self.tokens(b"token")
        else:
            self.connection.receive_data(frame(b"token"))
        assert self.event() == TokenReceived(b"token")
        self.connection.succeed(b"", lifetime_ms, self.now)
        if version:
            self.answers()
        else:
            self.frames()


def api_versions(**values: Any) -> dict[str, Any]:
    return {"client_software_name": "test", "client_software_version": "1.0"} | values


ALL_VERSIONS = [(api, version) for api in ApiKey for version in APIS[api].request]
