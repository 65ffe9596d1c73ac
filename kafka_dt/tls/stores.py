"""Read key and trust stores: PEM (a file, or the text in the setting itself) and PKCS12.

The content of a file tells its format. PEM text may be folded onto one line, as properties files hold it.

Source: org.apache.kafka.common.security.ssl.DefaultSslEngineFactory (PemStore, FileBasedStore).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes


class TlsError(Exception):
    """A TLS setting that cannot be used; `key` is its Kafka name. Its text is one line without secrets."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


_JAVA_STORES: Final = {b"\xfe\xed\xfe\xed": "JKS", b"\xce\xce\xce\xce": "JCEKS"}
_PEM_BLOCK: Final = re.compile(r"-----BEGIN (?P<label>[A-Z0-9 ]+)-----(?P<body>.*?)-----END (?P=label)-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A private key and its certificates, the key's own first."""

    setting: str
    """The setting that named it, for errors."""

    key: PrivateKeyTypes = field(repr=False)
    certificates: tuple[x509.Certificate, ...]

    @property
    def pem(self) -> bytes:
        """The key in clear and the certificates, as OpenSSL reads them."""
        key = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return key + pem(self.certificates)


def read_trust(settings: Mapping[str, str]) -> tuple[x509.Certificate, ...] | None:
    """Return the certificates of the trust store, None when the settings name none; raise TlsError."""
    store = _trust_store(settings)
    if store is None:
        return None
    certificates = _pem_certificates(store) if store.is_pem else _pkcs12_trust(store)
    if not certificates:
        raise TlsError(store.key, "there is no certificate in it")
    return certificates


def read_identity(settings: Mapping[str, str]) -> KeyEntry | None:
    """Return the key and certificates of the key store, None when the settings name none; raise TlsError."""
    store = _key_store(settings)
    if store is None:
        return None
    return _pem_identity(store) if store.is_pem else _pkcs12_identity(store)


def pem(certificates: tuple[x509.Certificate, ...]) -> bytes:
    """Return certificates as PEM."""
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)


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


def _trust_store(settings: Mapping[str, str]) -> _Store | None:
    text = settings.get("ssl.truststore.certificates")
    location = settings.get("ssl.truststore.location")
    password = settings.get("ssl.truststore.password")
    if text and location:
        raise TlsError("ssl.truststore.certificates", "give it or ssl.truststore.location, not both")
    if text:
        return _Store("ssl.truststore.certificates", text.encode(), password)
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
        content = f"{key}\n{chain}".encode()
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
    except (ValueError, x509.InvalidVersion):
        raise TlsError(store.key, "there is a PEM certificate in it that cannot be read") from None


def _pem_identity(store: _Store) -> KeyEntry:
    setting = store.text_key or store.key
    keys = _pem_blocks(store.content, "PRIVATE KEY")
    if len(keys) != 1:
        raise TlsError(setting, f"one PEM private key is needed, there are {len(keys)}")
    certificates = _pem_certificates(store)
    if not certificates:
        raise TlsError(store.key, "there is no PEM certificate in it")
    return KeyEntry(store.key, _pem_key(store, setting, *keys[0]), certificates)


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


def _pkcs12_identity(store: _Store) -> KeyEntry:
    bundle = _pkcs12(store)
    if bundle.key is None or bundle.cert is None:
        raise TlsError(store.key, "there is no private key with a certificate in it")
    own = bundle.cert.certificate
    others = tuple(entry.certificate for entry in bundle.additional_certs)
    return KeyEntry(store.key, bundle.key, _chain(own, others))


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
    except x509.InvalidVersion:
        raise TlsError(store.key, "there is a certificate in it that cannot be read") from None


def _chain(own: x509.Certificate, others: tuple[x509.Certificate, ...]) -> tuple[x509.Certificate, ...]:
    """Order certificates from the key's own upwards: PKCS12 keeps them in any order."""
    chain = [own]
    left = {certificate.subject: certificate for certificate in others}
    while issuer := left.pop(chain[-1].issuer, None):
        chain.append(issuer)
    return tuple(chain)
