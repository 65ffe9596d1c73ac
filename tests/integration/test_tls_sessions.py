"""TLS sessions that clients resume, at a node with several workers."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

import pytest

from kafka_dt_protocol import ApiKey, RequestHeader, build, encode_request, frame
from kafka_dt_protocol.api.registry import APIS
from tests.support.identity.tls_listeners import TlsListeners
from tests.support.nodes.server import KafkaDt, server_properties

WORKERS = 3
CONNECTIONS = 20
"""One in a thousand million runs meets a single worker."""
QUESTION = frame(
    encode_request(RequestHeader(ApiKey.API_VERSIONS, 0, 1, "test"), build(APIS[ApiKey.API_VERSIONS].request[0]))
)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> TlsListeners:
    return TlsListeners.make(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, zookeeper_address: str, tls: TlsListeners) -> Iterator[KafkaDt]:
    properties = server_properties(f"{zookeeper_address}/tls-sessions") | tls.properties
    properties |= {
        "kafka.dt.workers": WORKERS,
        "listener.name.sasl_ssl.ssl.client.auth": "none",
        "listener.name.ssl.ssl.client.auth": "requested",
    }
    with KafkaDt(tmp_path_factory.mktemp("server"), properties) as running:
        yield running


def connect(
    address: str, context: ssl.SSLContext, session: ssl.SSLSession | None
) -> tuple[bool, ssl.SSLSession | None]:
    """Say whether the server has resumed a session, and give the one that it offers then."""
    host, _, port = address.rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=host, session=session) as encrypted,
    ):
        encrypted.sendall(QUESTION)
        assert encrypted.recv(4)  # the tickets come before the answer
        return bool(encrypted.session_reused), encrypted.session


def resumed(address: str, context: ssl.SSLContext) -> list[bool]:
    """Whether each of many connections has resumed the session of the connection before it."""
    _, session = connect(address, context, None)
    found = []
    for _ in range(CONNECTIONS):
        was_resumed, session = connect(address, context, session)
        found.append(was_resumed)
    return found


def test_each_worker_resumes_the_sessions_of_all(server: KafkaDt, tls: TlsListeners) -> None:
    assert all(resumed(server.address("SASL_SSL"), tls.context()))


def test_a_worker_resumes_only_its_own_sessions_where_clients_may_show_certificates(
    server: KafkaDt, tls: TlsListeners
) -> None:
    assert not all(resumed(server.address("SSL"), tls.context(tls.alice)))


def test_no_listener_resumes_the_sessions_of_another(server: KafkaDt, tls: TlsListeners) -> None:
    context = tls.context()
    _, session = connect(server.address("SASL_SSL"), context, None)
    assert not any(connect(server.address("SSL"), context, session)[0] for _ in range(CONNECTIONS))
