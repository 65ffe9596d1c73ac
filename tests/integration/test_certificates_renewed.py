"""A node whose certificates change while it serves."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from tests.support.brokers.broker import USERS
from tests.support.identity.tls_listeners import TlsListeners
from tests.support.identity.tls_material import Identity, leaf
from tests.support.nodes.server import KafkaDt, server_properties
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import DESCRIBE_CLUSTER, RawConnection

WITHIN_S = 10.0
WORKERS = 2


@pytest.fixture
def tls(tmp_path: Path) -> TlsListeners:
    return TlsListeners.make(tmp_path)


@pytest.fixture
def server(tmp_path: Path, zookeeper_connect: str, tls: TlsListeners) -> Iterator[KafkaDt]:
    properties = server_properties(zookeeper_connect) | tls.properties | {"kafka.dt.workers": WORKERS}
    with KafkaDt(tmp_path / "server", properties) as running:
        yield running


def renew(tls: TlsListeners) -> Identity:
    """Put another certificate of the same authority in place, as a program that renews certificates does."""
    renewed = leaf("localhost", tls.root)
    written = tls.key_store.with_suffix(".new")
    written.write_text(renewed.key_pem() + renewed.chain_pem)
    written.rename(tls.key_store)
    return renewed


def shown(server: KafkaDt, tls: TlsListeners) -> set[bytes | None]:
    """The certificates that new connections get; enough of them to meet every worker."""
    found = set()
    for _ in range(20):
        with RawConnection(server.address("SASL_SSL"), tls.context()) as connection:
            found.add(connection.peer_certificate)
    return found


def der(identity: Identity) -> bytes:
    return identity.certificate.public_bytes(Encoding.DER)


def test_new_connections_get_the_new_certificate_and_old_ones_stay(server: KafkaDt, tls: TlsListeners) -> None:
    with RawConnection(server.address("SASL_SSL"), tls.context()) as before:
        before.login_plain("alice", USERS["alice"])
        assert before.peer_certificate == der(tls.server)
        renewed = renew(tls)
        eventually(lambda: shown(server, tls) == {der(renewed)}, WITHIN_S)
        assert before.ask(DESCRIBE_CLUSTER, 0, include_cluster_authorized_operations=False).cluster_id


def test_a_broken_file_is_told_in_one_line_and_changes_nothing(server: KafkaDt, tls: TlsListeners) -> None:
    tls.key_store.write_text("nothing that could be a key")
    told = "The certificates of listener SSL stay, the new ones cannot be used: ssl.keystore.location: "
    eventually(lambda: server.process.output().count(told) == WORKERS, WITHIN_S)
    assert shown(server, tls) == {der(tls.server)}
    renewed = renew(tls)
    eventually(lambda: shown(server, tls) == {der(renewed)}, WITHIN_S)
    assert server.process.output().count(told) == WORKERS
    assert "Traceback" not in server.process.output()


def test_a_failed_handshake_is_one_line(server: KafkaDt, tls: TlsListeners) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        RawConnection(server.address("SSL"), ssl.create_default_context())
    told = "Failed TLS handshake of 127.0.0.1:"
    eventually(lambda: told in server.process.output(), WITHIN_S)
    assert shown(server, tls) == {der(tls.server)}
    output = server.process.output()
    assert output.count(told) == 1
    assert "on listener SSL: " in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ssl.keystore.location": "/nowhere.pem"}, "ssl.keystore.location: /nowhere.pem cannot be read: "),
        ({"listener.name.ssl.ssl.enabled.protocols": "SSLv3"}, "listener.name.ssl.ssl.enabled.protocols: SSLv3 is "),
        ({"ssl.principal.mapping.rules": "RULE:x"}, "ssl.principal.mapping.rules: 'RULE:x' is neither "),
        ({"ssl.client.auth": "maybe"}, "ssl.client.auth: 'maybe' is not one of required, requested, none"),
    ],
)
def test_a_setting_that_cannot_be_used_ends_the_start_in_one_line(
    tmp_path: Path, tls: TlsListeners, changes: dict[str, str], message: str
) -> None:
    properties = server_properties("127.0.0.1:1/unreached") | tls.properties | changes
    failing = KafkaDt(tmp_path / "failing", properties)
    failing.process.start()
    eventually(lambda: not failing.process.running, WITHIN_S)
    assert failing.stop() == 1
    (line,) = [line for line in failing.process.output().splitlines() if " ignored" not in line and message in line]
    assert "Traceback" not in failing.process.output()
    assert line
