"""An issuer of bearer tokens: keys, a JWKS, tokens, and a web server on loopback that publishes the JWKS.

    issuer = Issuer()
    issuer.token("alice")            # a good one
    issuer.token("alice", exp=0)     # with a claim changed; None leaves it out

Source: RFC 7515, RFC 7517, RFC 7519.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.jwk import Key, KeySet, generate_key

NAME = "https://issuer.example"
AUDIENCE = "kafka"
HOUR_S = 3600


@dataclass
class Issuer:
    """An identity provider that signs tokens."""

    key: Key = field(default_factory=lambda: signing_key("key-1"))
    algorithm: str = "RS256"

    def token(self, subject: str = "alice", *, now_s: float | None = None, **claims: Any) -> str:
        """A token that was made a minute ago and lasts an hour."""
        now = time.time() if now_s is None else now_s
        made = {"sub": subject, "iss": NAME, "aud": AUDIENCE, "iat": int(now) - 60, "exp": int(now) + HOUR_S} | claims
        header = {"alg": self.algorithm, "kid": self.key.kid}
        return jwt.encode(header, {k: v for k, v in made.items() if v is not None}, self.key, [self.algorithm])

    def jwks(self, *others: Key) -> bytes:
        """The public keys as the issuer publishes them."""
        return json.dumps(KeySet([self.key, *others]).as_dict(private=False)).encode()


def signing_key(kid: str, kind: str = "RSA", size: str | int = 2048) -> Key:
    """A key to sign with."""
    return generate_key(kind, size, {"kid": kid, "use": "sig"})  # type: ignore[call-overload,no-any-return]


def unsigned(header: object, claims: object, signature: str = "") -> str:
    """A token of any content, with any text for a signature."""
    return f"{segment(header)}.{segment(claims)}.{signature}"


def segment(value: object) -> str:
    """JSON in base64url without padding."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@dataclass
class Endpoint:
    """A token endpoint, and what it was asked: the header Authorization and the fields of the body of each request."""

    url: str
    answer: bytes
    status: int = 200
    location: str | None = None
    wire: bytes | None = None
    """Sent in place of an answer of HTTP."""
    requests: list[tuple[str, dict[str, list[str]]]] = field(default_factory=list)


@contextmanager
def token_endpoint(answer: bytes) -> Iterator[Endpoint]:
    """A token endpoint on a free port of loopback; what it answers can be changed."""
    endpoint = Endpoint("", answer)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            endpoint.requests.append((self.headers["Authorization"], parse_qs(body)))
            if endpoint.wire is not None:
                self.wfile.write(endpoint.wire)
                return
            self.send_response(endpoint.status)
            if endpoint.location is not None:
                self.send_header("Location", endpoint.location)
            self.send_header("Content-Length", str(len(endpoint.answer)))
            self.end_headers()
            self.wfile.write(endpoint.answer)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the standard library calls it
            """Say nothing."""

    with _serving(Handler) as port:
        endpoint.url = f"http://127.0.0.1:{port}/token"
        yield endpoint


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler], tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve HTTP on a free port of loopback."""
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@dataclass
class Published:
    """What a web server gives, and how often it was asked."""

    url: str
    body: bytes
    status: int = 200
    location: str | None = None
    media_type: str | None = None
    """Given only to those who ask for this media type by its name, as an API server of Kubernetes does."""
    wire: bytes | None = None
    """Sent in place of an answer of HTTP."""
    requests: int = 0


@contextmanager
def publishing(body: bytes, tls: ssl.SSLContext | None = None) -> Iterator[Published]:
    """A web server on a free port of loopback, with TLS where a context is given; what it gives can be changed."""
    published = Published("", body)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            published.requests += 1
            if published.wire is not None:
                self.wfile.write(published.wire)
                return
            is_acceptable = (published.media_type or "") in self.headers.get("Accept", "")
            self.send_response(published.status if is_acceptable else HTTPStatus.NOT_ACCEPTABLE)
            if published.location is not None:
                self.send_header("Location", published.location)
            self.send_header("Content-Length", str(len(published.body)))
            self.end_headers()
            self.wfile.write(published.body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the standard library calls it
            """Say nothing."""

    with _serving(Handler, tls) as port:
        published.url = f"http{'s' * (tls is not None)}://127.0.0.1:{port}/jwks.json"
        yield published


NOT_HTTP = {
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n",
    "cut off": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n400\r\n{",
    "too many headers": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
}
"""Bytes for `wire` that no client of HTTP takes for a whole answer."""
