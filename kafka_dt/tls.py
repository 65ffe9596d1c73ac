"""TLS contexts from Kafka's `ssl.*` settings, for both sides of a connection.

`client_context` and `server_context` take the settings by their Kafka names, with secrets already in clear, and
return a context ready for asyncio. Key and trust stores are PEM (a file, or the text itself in `ssl.keystore.key`,
`ssl.keystore.certificate.chain` and `ssl.truststore.certificates`) or PKCS12; what a file is is seen from its
content. Private keys reach OpenSSL through memory only.

Limits: Java's own store formats (JKS, JCEKS) are refused with the command that converts them; Java's settings about
providers, key manager algorithms and engine classes have no meaning here and are not looked at; of the cipher
suites of TLS 1.3 either all are named or none.

Source: org.apache.kafka.common.config.SslConfigs, org.apache.kafka.common.security.ssl.DefaultSslEngineFactory.
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

_VERSIONS: Final = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
# OpenSSL's defaults for TLS 1.3: Python can neither add to them nor take away.
_TLS_1_3_SUITES: Final = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"})
_JAVA_STORES: Final = {b"\xfe\xed\xfe\xed": "JKS", b"\xce\xce\xce\xce": "JCEKS"}
_PEM_BLOCK: Final = re.compile(r"-----BEGIN (?P<label>[A-Z0-9 ]+)-----(?P<body>.*?)-----END (?P=label)-----", re.DOTALL)


class TlsError(Exception):
    """A TLS setting that cannot be used; `key` is its Kafka name. Its text is one line without secrets."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


def client_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """Make the context of a client.

    settings: Kafka's `ssl.*` client settings by name; others are not looked at. Without a trust store the
    machine's certificates are trusted; an empty `ssl.endpoint.identification.algorithm` switches the check of
    the server's name off.
    Raises TlsError for a setting that cannot be used. Reads files, so call it before the event loop is busy.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    algorithm = settings.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in {"https", ""}:
        raise TlsError("ssl.endpoint.identification.algorithm", "it is https, or empty to check no name")
    context.check_hostname = algorithm == "https"
    if not _load_trust(context, settings):
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    _load_identity(context, settings)
    _limit(context, settings)
    return context


def server_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """Make the context of a listener.

    settings: Kafka's `ssl.*` listener settings by name; others are not looked at. A key store is needed;
    `ssl.client.auth` says whether clients show a certificate (none, requested, required).
    Raises TlsError for a setting that cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client_auth = settings.get("ssl.client.auth", "none").strip().lower()
    if client_auth not in _CLIENT_AUTH:
        raise TlsError("ssl.client.auth", f"it is one of {', '.join(_CLIENT_AUTH)}")
    context.verify_mode = _CLIENT_AUTH[client_auth]
    if not _load_trust(context, settings) and client_auth != "none":
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    if not _load_identity(context, settings):
        raise TlsError("ssl.keystore.location", "a TLS listener needs a key store: PEM or PKCS12")
    _limit(context, settings)
    return context


@dataclass(frozen=True, slots=True)
class _Identity:
    """A private key and its certificates, the key's own first."""

    key: PrivateKeyTypes = field(repr=False)
    certificates: tuple[x509.Certificate, ...]

    @property
    def pem(self) -> bytes:
        key = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return key + _pem(self.certificates)


@dataclass(frozen=True, slots=True)
class _Store:
    """The content of a store, with the setting that named it (for errors) and its passwords."""

    key: str
    content: bytes = field(repr=False)
    password: str | None = field(repr=False)
    key_password: str | None = field(default=None, repr=False)
    text_key: str = ""
    """The setting that holds the private key, when it is not `key`."""

    @property
    def is_pem(self) -> bool:
        return b"-----BEGIN " in self.content


def _load_trust(context: ssl.SSLContext, settings: Mapping[str, str]) -> bool:
    store = _trust_store(settings)
    if store is None:
        return False
    certificates = _pem_certificates(store) if store.is_pem else _pkcs12_trust(store)
    if not certificates:
        raise TlsError(store.key, "there is no certificate in it")
    # Java trusts whatever is in the store, also a server's own certificate or an intermediate one.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=_pem(certificates).decode("ascii"))
    return True


def _load_identity(context: ssl.SSLContext, settings: Mapping[str, str]) -> bool:
    store = _key_store(settings)
    if store is None:
        return False
    identity = _pem_identity(store) if store.is_pem else _pkcs12_identity(store)
    with _unnamed_file(identity.pem) as path:
        try:
            context.load_cert_chain(path)
        except ssl.SSLError as error:
            raise TlsError(store.key, f"the key and its certificate do not fit: {error.reason}") from error
    return True


def _trust_store(settings: Mapping[str, str]) -> _Store | None:
    text = settings.get("ssl.truststore.certificates")
    location = settings.get("ssl.truststore.location")
    password = settings.get("ssl.truststore.password")
    if text and location:
        raise TlsError("ssl.truststore.certificates", "give it or ssl.truststore.location, not both")
    if text:
        return _Store("ssl.truststore.certificates", _text(text), password)
    if location:
        return _file("ssl.truststore", location, password)
    return None


def _key_store(settings: Mapping[str, str]) -> _Store | None:
    key, chain = settings.get("ssl.keystore.key"), settings.get("ssl.keystore.certificate.chain")
    location = settings.get("ssl.keystore.location")
    key_password = settings.get("ssl.key.password")
    if (key or chain) and location:
        raise TlsError("ssl.keystore.location", "give it or ssl.keystore.key and its chain, not both")
    if bool(key) != bool(chain):
        missing = "ssl.keystore.certificate.chain" if key else "ssl.keystore.key"
        raise TlsError(missing, "a private key and its certificate chain are given together")
    if key and chain:
        content = _text(f"{key}\n{chain}")
        return _Store("ssl.keystore.certificate.chain", content, None, key_password, "ssl.keystore.key")
    if location:
        return _file("ssl.keystore", location, settings.get("ssl.keystore.password"), key_password)
    return None


def _file(prefix: str, location: str, password: str | None, key_password: str | None = None) -> _Store:
    key = f"{prefix}.location"
    try:
        content = Path(location).read_bytes()
    except OSError as error:
        raise TlsError(key, f"{location} cannot be read: {error.strerror}") from error
    if java := _JAVA_STORES.get(content[:4]):
        raise TlsError(
            key,
            f"{location} is in Java's {java} format; convert it: keytool -importkeystore "
            f"-srckeystore {location} -destkeystore {location}.p12 -deststoretype PKCS12",
        )
    store = _Store(key, content, password, key_password)
    if store.is_pem and password:
        raise TlsError(f"{prefix}.password", "a PEM store has none; an encrypted key takes ssl.key.password")
    return store


def _text(pem: str) -> bytes:
    return pem.encode("utf-8")


def _pem_blocks(content: bytes, label_end: str) -> list[tuple[str, bytes]]:
    """Return label and text of each PEM block of a kind; one that a properties file holds on one line is broken up."""
    blocks = []
    for match in _PEM_BLOCK.finditer(content.decode("utf-8", errors="replace")):
        label, body = match["label"], match["body"]
        if label.endswith(label_end):
            lines = body.strip() if ":" in body else "\n".join(body.split())
            blocks.append((label, f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n".encode()))
    return blocks


def _pem_certificates(store: _Store) -> tuple[x509.Certificate, ...]:
    blocks = _pem_blocks(store.content, "CERTIFICATE")
    try:
        return tuple(x509.load_pem_x509_certificate(block) for _, block in blocks)
    except ValueError:
        raise TlsError(store.key, "there is a PEM certificate in it that cannot be read") from None


def _pem_identity(store: _Store) -> _Identity:
    setting = store.text_key or store.key
    keys = _pem_blocks(store.content, "PRIVATE KEY")
    if len(keys) != 1:
        raise TlsError(setting, f"one PEM private key is needed, there are {len(keys)}")
    certificates = _pem_certificates(store)
    if not certificates:
        raise TlsError(store.key, "there is no PEM certificate in it")
    return _Identity(_pem_key(store, setting, *keys[0]), certificates)


def _pem_key(store: _Store, setting: str, label: str, block: bytes) -> PrivateKeyTypes:
    encrypted = "ENCRYPTED" in label or b"ENCRYPTED" in block
    if encrypted and store.key_password is None:
        raise TlsError("ssl.key.password", "the private key is encrypted, so its password is needed")
    password = store.key_password.encode() if encrypted and store.key_password is not None else None
    try:
        return load_pem_private_key(block, password)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        wrong = "ssl.key.password does not open it, or it" if encrypted else "it"
        raise TlsError(setting, f"{wrong} is no private key that can be read") from None


def _pkcs12_identity(store: _Store) -> _Identity:
    bundle = _pkcs12(store)
    if bundle.key is None or bundle.cert is None:
        raise TlsError(store.key, "there is no private key with a certificate in it")
    own = bundle.cert.certificate
    others = tuple(entry.certificate for entry in bundle.additional_certs)
    return _Identity(bundle.key, _chain(own, others))


def _pkcs12_trust(store: _Store) -> tuple[x509.Certificate, ...]:
    bundle = _pkcs12(store)
    own = () if bundle.cert is None else (bundle.cert.certificate,)
    return own + tuple(entry.certificate for entry in bundle.additional_certs)


def _pkcs12(store: _Store) -> pkcs12.PKCS12KeyAndCertificates:
    password = None if store.password is None else store.password.encode("utf-8")
    try:
        return pkcs12.load_pkcs12(store.content, password)
    except (ValueError, UnsupportedAlgorithm):
        setting = store.key.replace(".location", ".password")
        reason = f"{setting} does not open it" if password else f"it needs {setting}"
        raise TlsError(store.key, f"no PKCS12 or PEM store that can be read, or {reason}") from None


def _chain(own: x509.Certificate, others: tuple[x509.Certificate, ...]) -> tuple[x509.Certificate, ...]:
    """Order certificates from the key's own upwards: PKCS12 keeps them in any order."""
    chain = [own]
    left = {certificate.subject: certificate for certificate in others}
    while issuer := left.pop(chain[-1].issuer, None):
        chain.append(issuer)
    return tuple(chain)


def _pem(certificates: tuple[x509.Certificate, ...]) -> bytes:
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)


@contextmanager
def _unnamed_file(content: bytes) -> Iterator[str]:
    """Give OpenSSL, which takes keys by path only, a path to memory (where there is no memfd: a short-lived file)."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("kafka-dt-key", os.MFD_CLOEXEC)
        path = f"/proc/self/fd/{descriptor}"
    else:
        descriptor, path = tempfile.mkstemp()
    with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
        try:
            file.write(content)
            file.flush()
            yield path
        finally:
            if not path.startswith("/proc/"):
                Path(path).unlink()


def _limit(context: ssl.SSLContext, settings: Mapping[str, str]) -> None:
    versions = _enabled_versions(settings)
    suites = _names(settings.get("ssl.cipher.suites", ""))
    if suites:
        modern = _TLS_1_3_SUITES.intersection(suites)
        if modern and modern != _TLS_1_3_SUITES:
            missing = ", ".join(sorted(_TLS_1_3_SUITES - modern))
            raise TlsError("ssl.cipher.suites", f"of TLS 1.3 all suites are named or none; missing: {missing}")
        if not modern:
            versions = [version for version in versions if version is not ssl.TLSVersion.TLSv1_3]
        _set_older_suites(context, [suite for suite in suites if suite not in modern])
        if len(modern) == len(suites):
            versions = [version for version in versions if version is ssl.TLSVersion.TLSv1_3]
    if not versions:
        raise TlsError("ssl.cipher.suites", "no enabled protocol version can use these suites")
    context.minimum_version, context.maximum_version = versions[0], versions[-1]


def _enabled_versions(settings: Mapping[str, str]) -> list[ssl.TLSVersion]:
    names = _names(settings.get("ssl.enabled.protocols", "")) or ["TLSv1.2", "TLSv1.3"]
    for name in names:
        if name not in _VERSIONS:
            raise TlsError("ssl.enabled.protocols", f"{name} is none of {', '.join(_VERSIONS)}")
    highest = _VERSIONS.get(settings.get("ssl.protocol", "TLSv1.3").strip(), ssl.TLSVersion.TLSv1_3)
    versions = sorted(_VERSIONS[name] for name in set(names) if _VERSIONS[name] <= highest)
    if not versions:
        raise TlsError("ssl.protocol", "it is older than every version in ssl.enabled.protocols")
    if versions[-1] - versions[0] != len(versions) - 1:
        raise TlsError("ssl.enabled.protocols", "versions next to each other are needed, without a gap")
    return versions


def _set_older_suites(context: ssl.SSLContext, suites: list[str]) -> None:
    if not suites:
        return
    try:
        context.set_ciphers(":".join(_openssl_name(suite) for suite in suites))
    except ssl.SSLError as error:
        raise TlsError("ssl.cipher.suites", "none of these suites is known here") from error


def _openssl_name(suite: str) -> str:
    """Return OpenSSL's name of a suite of TLS 1.2 and older; Java has the names of the RFCs."""
    exchange, separator, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    if not separator:
        return suite
    cipher = re.sub(r"(AES|ARIA|CAMELLIA)_(\d+)", r"\1\2", cipher).replace("_CBC_", "_")
    cipher = cipher.replace("POLY1305_SHA256", "POLY1305")
    prefix = "" if exchange == "RSA" else f"{exchange}_"
    return f"{prefix}{cipher}".replace("_", "-")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
