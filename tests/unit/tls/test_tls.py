"""kafka_dt.tls: each form of a store, tried with a real handshake in memory."""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, pkcs12

from kafka_dt.tls import TlsError, client_context, common_contexts, server_context
from kafka_dt.tls.stores import read_trust
from tests.support.identity.tls_material import Identity, authority, leaf

PASSWORD = "store secret"


@pytest.fixture(scope="module")
def root() -> Identity:
    return authority("Root")


@pytest.fixture(scope="module")
def server(root: Identity) -> Identity:
    return leaf("server.example", authority("Intermediate", root))


@pytest.fixture(scope="module")
def client(root: Identity) -> Identity:
    return leaf("client.example", root)


@pytest.fixture
def stores(tmp_path: Path, server: Identity, client: Identity) -> Path:
    """A folder of stores that cannot be used as they are."""
    (tmp_path / "java.jks").write_bytes(b"\xfe\xed\xfe\xed and more")
    (tmp_path / "java.jceks").write_bytes(b"\xce\xce\xce\xce and more")
    (tmp_path / "noise").write_bytes(b"\x30\x82noise")
    (tmp_path / "store.p12").write_bytes(server.pkcs12(PASSWORD))
    (tmp_path / "cert.pem").write_text(server.certificate_pem)
    (tmp_path / "key.pem").write_text(server.key_pem())
    (tmp_path / "encrypted.pem").write_text(server.key_pem(PASSWORD) + server.chain_pem)
    (tmp_path / "mixed.pem").write_text(server.key_pem() + client.chain_pem)
    return tmp_path


def inline(identity: Identity) -> dict[str, str]:
    return {"ssl.keystore.key": identity.key_pem(), "ssl.keystore.certificate.chain": identity.chain_pem}


def trust(identity: Identity) -> dict[str, str]:
    return {"ssl.truststore.certificates": identity.certificate_pem}


def handshake(client_side: ssl.SSLContext, server_side: ssl.SSLContext, name: str = "server.example") -> ssl.SSLObject:
    """Let both sides talk to each other; returns the server's end."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client_side.wrap_bio(to_client, to_server, server_hostname=name)
    far = server_side.wrap_bio(to_server, to_client, server_side=True)
    waiting = [near, far]
    for _ in range(20):
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                continue
        if not waiting:
            return far
    raise AssertionError("the handshake does not end")


def test_inline_pem_serves_both_sides(root: Identity, server: Identity, client: Identity) -> None:
    ours = client_context(trust(root) | inline(client))
    theirs = server_context(inline(server) | trust(root) | {"ssl.client.auth": "required"})
    peer = handshake(ours, theirs).getpeercert()
    assert peer is not None
    assert peer["subject"] == ((("commonName", "client.example"),),)


def test_pem_files_serve_both_sides(tmp_path: Path, root: Identity, server: Identity) -> None:
    key_store, trust_store = tmp_path / "server.pem", tmp_path / "trust.pem"
    key_store.write_text(server.key_pem(PASSWORD) + server.chain_pem)
    trust_store.write_text("what this is for\n" + root.certificate_pem)
    theirs = server_context({"ssl.keystore.location": str(key_store), "ssl.key.password": PASSWORD})
    handshake(client_context({"ssl.truststore.location": str(trust_store), "ssl.truststore.type": "PEM"}), theirs)


def test_pkcs12_files_serve_both_sides(tmp_path: Path, root: Identity, server: Identity) -> None:
    key_store, trust_store = tmp_path / "server.p12", tmp_path / "trust.p12"
    key_store.write_bytes(server.pkcs12(PASSWORD))
    trust_store.write_bytes(root.trust_pkcs12(PASSWORD))
    theirs = server_context({"ssl.keystore.location": str(key_store), "ssl.keystore.password": PASSWORD})
    ours = client_context({"ssl.truststore.location": str(trust_store), "ssl.truststore.password": PASSWORD})
    handshake(ours, theirs)


def test_pem_on_one_line_of_a_properties_file_is_read(root: Identity, server: Identity) -> None:
    joined = {key: value.replace("\n", " ") for key, value in (inline(server) | trust(root)).items()}
    handshake(client_context(joined), server_context(joined))


def test_a_server_certificate_in_the_trust_store_is_trusted_by_itself(server: Identity) -> None:
    handshake(client_context(trust(server)), server_context(inline(server)))


def test_a_server_of_another_authority_is_refused(server: Identity) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(client_context(trust(authority("Other"))), server_context(inline(server)))


def test_without_a_trust_store_the_machine_decides(server: Identity) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(client_context({}), server_context(inline(server)))


def test_the_servers_name_is_checked_unless_switched_off(root: Identity, server: Identity) -> None:
    theirs = server_context(inline(server))
    with pytest.raises(ssl.SSLCertVerificationError, match=r"(?i)hostname mismatch"):
        handshake(client_context(trust(root)), theirs, name="other.example")
    unnamed = client_context(trust(root) | {"ssl.endpoint.identification.algorithm": ""})
    handshake(unnamed, theirs, name="other.example")


def test_a_required_client_certificate_is_missed(root: Identity, server: Identity) -> None:
    theirs = server_context(inline(server) | trust(root) | {"ssl.client.auth": "required"})
    with pytest.raises(ssl.SSLError):
        handshake(client_context(trust(root)), theirs)
    asked = server_context(inline(server) | trust(root) | {"ssl.client.auth": "requested"})
    assert handshake(client_context(trust(root)), asked).getpeercert() is None


@pytest.mark.parametrize(
    ("settings", "version"),
    [
        ({}, "TLSv1.3"),
        ({"ssl.enabled.protocols": "TLSv1.2"}, "TLSv1.2"),
        ({"ssl.enabled.protocols": "TLSv1.3"}, "TLSv1.3"),
        ({"ssl.protocol": "TLSv1.2"}, "TLSv1.2"),
        ({"ssl.protocol": "TLS"}, "TLSv1.3"),
        ({"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"}, "TLSv1.2"),
        (
            {
                "ssl.cipher.suites": "TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256,"
                " TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
            },
            "TLSv1.3",
        ),
        (
            {"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256"},
            "TLSv1.3",
        ),
    ],
)
def test_versions_and_suites_are_limited(
    settings: dict[str, str], version: str, root: Identity, server: Identity
) -> None:
    far = handshake(client_context(trust(root)), server_context(inline(server) | settings))
    assert far.version() == version
    assert handshake(client_context(trust(root) | settings), server_context(inline(server))).version() == version


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_javas_suite_names_are_understood(java: str, openssl: str) -> None:
    context = client_context({"ssl.cipher.suites": java})
    assert openssl in {cipher["name"] for cipher in context.get_ciphers()}


@pytest.mark.parametrize(
    ("settings", "key", "reason"),
    [
        ({"ssl.truststore.location": "{tmp}/none.pem"}, "ssl.truststore.location", "cannot be read: No such file"),
        ({"ssl.truststore.location": "{tmp}/java.jks"}, "ssl.truststore.location", "keytool -importkeystore"),
        ({"ssl.keystore.location": "{tmp}/java.jceks"}, "ssl.keystore.location", "JCEKS"),
        ({"ssl.truststore.location": "{tmp}/noise"}, "ssl.truststore.location", "no PKCS12 or PEM store"),
        ({"ssl.truststore.location": "{tmp}/store.p12"}, "ssl.truststore.location", "needs ssl.truststore.password"),
        (
            {"ssl.keystore.location": "{tmp}/store.p12", "ssl.keystore.password": "wrong"},
            "ssl.keystore.location",
            "ssl.keystore.password does not open it",
        ),
        (
            {"ssl.truststore.location": "{tmp}/cert.pem", "ssl.truststore.password": "x"},
            "ssl.truststore.password",
            "a PEM store has none",
        ),
        ({"ssl.keystore.location": "{tmp}/cert.pem"}, "ssl.keystore.location", "one PEM private key is needed"),
        ({"ssl.keystore.location": "{tmp}/key.pem"}, "ssl.keystore.location", "no PEM certificate"),
        ({"ssl.keystore.location": "{tmp}/encrypted.pem"}, "ssl.key.password", "its password is needed"),
        (
            {"ssl.keystore.location": "{tmp}/encrypted.pem", "ssl.key.password": "wrong"},
            "ssl.keystore.location",
            "ssl.key.password does not open it",
        ),
        ({"ssl.keystore.location": "{tmp}/mixed.pem"}, "ssl.keystore.location", "do not fit"),
        ({"ssl.keystore.key": "x"}, "ssl.keystore.certificate.chain", "together"),
        ({"ssl.keystore.certificate.chain": "x"}, "ssl.keystore.key", "together"),
        (
            {"ssl.truststore.certificates": "x", "ssl.truststore.location": "y"},
            "ssl.truststore.certificates",
            "not both",
        ),
        (
            {"ssl.keystore.key": "x", "ssl.keystore.location": "y"},
            "ssl.keystore.location",
            "not both",
        ),
        ({"ssl.truststore.certificates": "x"}, "ssl.truststore.certificates", "no PKCS12 or PEM"),
        (
            {
                "ssl.truststore.certificates": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
            },
            "ssl.truststore.certificates",
            "cannot be read",
        ),
        ({"ssl.enabled.protocols": "SSLv3"}, "ssl.enabled.protocols", "SSLv3 is none of"),
        ({"ssl.enabled.protocols": "TLSv1.1,TLSv1.3"}, "ssl.enabled.protocols", "without a gap"),
        (
            {"ssl.enabled.protocols": "TLSv1.3", "ssl.protocol": "TLSv1.2"},
            "ssl.protocol",
            "older than every version",
        ),
        ({"ssl.cipher.suites": "NONSENSE"}, "ssl.cipher.suites", "none of these suites"),
        ({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "ssl.cipher.suites", "all suites are named or none"),
        (
            {"ssl.cipher.suites": "ECDHE-RSA-AES128-GCM-SHA256", "ssl.enabled.protocols": "TLSv1.3"},
            "ssl.cipher.suites",
            "no enabled protocol version",
        ),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "ssl.endpoint.identification.algorithm", "https"),
    ],
)
def test_an_unusable_setting_is_named(settings: dict[str, str], key: str, reason: str, stores: Path) -> None:
    with pytest.raises(TlsError, match=reason) as caught:
        client_context({name: value.format(tmp=stores) for name, value in settings.items()})
    assert caught.value.key == key
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [(b"\x0c\x02CA", b"\x0c\x02\xfcA"), (b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x03")],
    ids=["a name that is not UTF-8", "version 4"],
)
@pytest.mark.parametrize("make", [client_context, server_context])
def test_a_trusted_certificate_that_cannot_be_used_is_named(
    tmp_path: Path, make: Callable[[Mapping[str, str]], ssl.SSLContext], right: bytes, wrong: bytes
) -> None:
    trusted = authority("CA").certificate.public_bytes(Encoding.DER).replace(right, wrong)
    store = tmp_path / "trust.pem"
    store.write_text(f"-----BEGIN CERTIFICATE-----\n{b64encode(trusted).decode()}\n-----END CERTIFICATE-----\n")
    with pytest.raises(TlsError, match="certificate in it") as caught:
        make({"ssl.truststore.location": str(store)})
    assert caught.value.key == "ssl.truststore.location"


@pytest.mark.parametrize("make", [client_context, server_context])
def test_a_certificate_of_an_unknown_version_in_a_pkcs12_store_is_named(
    tmp_path: Path, make: Callable[[Mapping[str, str]], ssl.SSLContext]
) -> None:
    trusted = pkcs12.PKCS12Certificate(authority("CA").certificate, b"ca")
    checked = pkcs12.serialize_java_truststore([trusted], NoEncryption())
    # Without the checksum at its end, which is optional: SEQUENCE of the number 3 and of a SEQUENCE (RFC 7292, PFX).
    body = checked[4 : 11 + int.from_bytes(checked[9:11])]
    content = b"\x30\x82" + len(body).to_bytes(2) + body
    store = tmp_path / "trust.p12"
    store.write_bytes(content)
    assert read_trust({"ssl.truststore.location": str(store)}) == (trusted.certificate,)
    store.write_bytes(content.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x03"))
    with pytest.raises(TlsError, match="there is a certificate in it that cannot be read") as caught:
        make({"ssl.truststore.location": str(store)})
    assert caught.value.key == "ssl.truststore.location"


def test_a_listener_needs_a_key_store_and_a_known_client_auth(server: Identity) -> None:
    with pytest.raises(TlsError, match="needs a key store"):
        server_context({})
    with pytest.raises(TlsError, match="none, requested, required"):
        server_context(inline(server) | {"ssl.client.auth": "maybe"})


def test_a_common_context_serves_a_listener_that_asks_for_no_certificates(server: Identity) -> None:
    common = common_contexts()[0]
    assert server_context(inline(server), common) is common
    assert common.options & ssl.OP_NO_RENEGOTIATION
    assert common.num_tickets == 1


@pytest.mark.parametrize("client_auth", ["requested", "required"])
def test_a_listener_that_asks_for_certificates_has_a_context_of_its_own(server: Identity, client_auth: str) -> None:
    common = common_contexts()[0]
    assert server_context({**inline(server), "ssl.client.auth": client_auth}, common) is not common
