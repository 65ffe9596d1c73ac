"""A Kafka connection without a client: every byte that is sent, and everything that comes back, is the test's.

    with RawConnection(address) as connection:
        connection.login_plain("alice", "alice-secret")
        answer = connection.ask(RENEW, 2, hmac=b"unknown", renew_period=ms(-1))
        connection.send(b"\\xff\\xff\\xff\\xff")
        assert connection.closed()

The entities are kio's, the codec is `protocol`'s: kio's own has no reading for the time -1 of a refusal.

Limits: blocking, and answers are read in the order of the requests.
Source: Kafka protocol guide; KIP-482 (header versions), KIP-511 (the header of an ApiVersions response).
"""

from __future__ import annotations

import secrets
import socket
import ssl
import struct
from datetime import timedelta
from typing import Any, Self

from kio.index import load_request_schema, load_response_schema

from kafka_dt_protocol.api.entities import load_acl_request, load_acl_response
from kafka_dt_protocol.sasl import ScramMechanism
from kafka_dt_protocol.sasl.scram_client import ScramClient
from kafka_dt_protocol.wire.decoding import decode
from kafka_dt_protocol.wire.encoding import encode

METADATA = 3
FIND_COORDINATOR = 10
SASL_HANDSHAKE = 17
API_VERSIONS = 18
DESCRIBE_ACLS = 29
CREATE_ACLS = 30
DELETE_ACLS = 31
SASL_AUTHENTICATE = 36
CREATE = 38
RENEW = 39
EXPIRE = 40
DESCRIBE = 41
DESCRIBE_CLUSTER = 60

_ACL_APIS = (DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS)

TIMEOUT_S = 60.0
CLOSE_TIMEOUT_S = 30.0
_CLIENT_ID = b"raw"
_TLS_ALERT = 0x15


class ConnectionClosed(Exception):
    """The server closed the connection where an answer was due."""


class LoginRefused(Exception):
    """The server refused the login; `answer` is its last SaslAuthenticate response."""

    def __init__(self, answer: Any) -> None:
        super().__init__(f"{answer.error_code.value}: {answer.error_message}")
        self.answer = answer


def request_type(api_key: int, version: int) -> Any:
    """The entity of a request; of the ACL APIs there is also version 0, which kio does not have."""
    return load_acl_request(api_key, version) if api_key in _ACL_APIS else load_request_schema(api_key, version)


def _response_type(api_key: int, version: int) -> Any:
    return load_acl_response(api_key, version) if api_key in _ACL_APIS else load_response_schema(api_key, version)


def ms(milliseconds: int) -> timedelta:
    """A duration as kio wants it."""
    return timedelta(milliseconds=milliseconds)


def milliseconds(duration: timedelta) -> int:
    """A duration as Kafka counts it."""
    return duration // timedelta(milliseconds=1)


class RawConnection:
    """One TCP connection to `address`, host:port; with a context a TLS one; with a source from that host."""

    def __init__(self, address: str, tls: ssl.SSLContext | None = None, *, source: str = "") -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection(
            (host, int(port)), timeout=TIMEOUT_S, source_address=(source, 0) if source else None
        )
        if tls is not None:
            try:
                self._socket = tls.wrap_socket(self._socket, server_hostname=host)
            except OSError:
                self._socket.close()
                raise
        self._correlation_id = 0

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._socket.sendall(data)

    def send_frame(self, payload: bytes) -> None:
        """Send a frame."""
        self.send(struct.pack(">i", len(payload)) + payload)

    def receive_frame(self) -> bytes:
        """The next frame without its length; raises ConnectionClosed, TimeoutError."""
        (length,) = struct.unpack(">i", self.receive(4))
        return self.receive(length)

    def receive(self, count: int) -> bytes:
        """The next bytes, as many as that; raises ConnectionClosed, TimeoutError."""
        received = bytearray()
        while len(received) < count:
            part = self._socket.recv(count - len(received))
            if not part:
                raise ConnectionClosed
            received += part
        return bytes(received)

    def ask(self, api_key: int, version: int, **fields: object) -> Any:
        """Send a request and read its answer; both are kio's entities."""
        self.request(api_key, version, **fields)
        return self.answer(api_key, version)

    def request(self, api_key: int, version: int, **fields: object) -> None:
        """Send a request."""
        self.send_frame(self.encode(api_key, version, **fields))

    def encode(self, api_key: int, version: int, **fields: object) -> bytes:
        """A request as the payload of a frame, with a correlation id of its own."""
        entity_type = request_type(api_key, version)
        return self.header(api_key, version, flexible=entity_type.__flexible__) + encode(entity_type(**fields))

    def header(self, api_key: int, version: int, *, flexible: bool) -> bytes:
        """The bytes before a request's body, for any key and version."""
        self._correlation_id += 1
        start = struct.pack(">hhih", api_key, version, self._correlation_id, len(_CLIENT_ID)) + _CLIENT_ID
        return start + b"\0" if flexible else start

    def answer(self, api_key: int, version: int) -> Any:
        """Read the answer to a request in the layout of `version`."""
        response_type = _response_type(api_key, version)
        frame = self.receive_frame()
        _, offset = decode(response_type.__header_schema__, frame)
        entity, end = decode(response_type, frame, offset)
        assert end == len(frame), "bytes after the answer"
        return entity

    @property
    def peer_certificate(self) -> bytes | None:
        """The server's certificate in DER, of a TLS connection."""
        assert isinstance(self._socket, ssl.SSLSocket)
        return self._socket.getpeercert(binary_form=True)

    def closed(self, within_s: float = CLOSE_TIMEOUT_S) -> bool:
        """Whether the server closes the connection, without another answer, before time runs out."""
        self._socket.settimeout(within_s)
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        finally:
            self._socket.settimeout(TIMEOUT_S)

    def receives_alert_and_end(self, within_s: float) -> bool:
        """Whether the server closes the connection before time runs out, having sent at most a TLS alert."""
        self._socket.settimeout(within_s)
        received = b""
        try:
            while part := self._socket.recv(1024):
                received += part
        except ConnectionResetError:
            pass
        except TimeoutError:
            return False
        finally:
            self._socket.settimeout(TIMEOUT_S)
        return not received or received[0] == _TLS_ALERT

    def handshake(self, mechanism: str, version: int = 1) -> Any:
        """SaslHandshake."""
        return self.ask(SASL_HANDSHAKE, version, mechanism=mechanism)

    def authenticate(self, token: bytes, version: int = 2) -> Any:
        """SaslAuthenticate."""
        return self.ask(SASL_AUTHENTICATE, version, auth_bytes=token)

    def login_plain(self, username: str, password: str) -> Any:
        """Log in with PLAIN; the last answer. Raises LoginRefused."""
        self.handshake("PLAIN")
        return _accepted(self.authenticate(f"\0{username}\0{password}".encode()))

    def login_scram(self, username: str, password: str, mechanism: str, *, token: bool = False) -> Any:
        """Log in with SCRAM; the last answer. Raises LoginRefused."""
        client, proof = self.begin_scram(username, password, mechanism, token=token)
        last = _accepted(self.authenticate(proof))
        client.verify(last.auth_bytes)
        return last

    def begin_scram(
        self, username: str, password: str, mechanism: str, *, token: bool = False
    ) -> tuple[ScramClient, bytes]:
        """Log in with SCRAM up to the last message; gives that message, and the client that verifies its answer."""
        client = ScramClient(ScramMechanism(mechanism), username, password, secrets.token_urlsafe(18), token=token)
        self.handshake(mechanism)
        challenge = _accepted(self.authenticate(client.first()))
        return client, client.challenge(challenge.auth_bytes)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _accepted(answer: Any) -> Any:
    if answer.error_code.value:
        raise LoginRefused(answer)
    return answer


def scram_logs_in(address: str, user: str, password: str, mechanism: str) -> bool:
    """Whether a user logs in by SCRAM at a listener without TLS."""
    with RawConnection(address) as opened:
        try:
            opened.login_scram(user, password, mechanism)
        except LoginRefused:
            return False
        return True
