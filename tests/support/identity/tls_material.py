"""Certificates made for a test: an authority, and identities that it signs."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from ipaddress import IPv4Address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Identity:
    name: str
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    issuers: tuple[x509.Certificate, ...] = ()

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def chain_pem(self) -> str:
        return self.certificate_pem + "".join(issuer.public_bytes(Encoding.PEM).decode() for issuer in self.issuers)

    def key_pem(self, password: str | None = None) -> str:
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    def pkcs12(self, password: str) -> bytes:
        return pkcs12.serialize_key_and_certificates(
            self.name.encode(),
            self.key,
            self.certificate,
            # Not in the order of the chain: a reader has to find it.
            tuple(reversed(self.issuers)),
            BestAvailableEncryption(password.encode()),
        )

    def trust_pkcs12(self, password: str) -> bytes:
        return pkcs12.serialize_key_and_certificates(
            None, None, None, [self.certificate], BestAvailableEncryption(password.encode())
        )


def authority(name: str, issuer: Identity | None = None) -> Identity:
    return _issue(name, issuer, [(x509.BasicConstraints(ca=True, path_length=None), True)])


def leaf(name: str, issuer: Identity, subject: x509.Name | None = None) -> Identity:
    """Issue a certificate for a host; its subject has the name alone unless another one is given."""
    names = x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(IPv4Address("127.0.0.1"))])
    return _issue(name, issuer, [(names, False)], subject)


def subject_of(text: str) -> x509.Name:
    """Read a subject as RFC 4514 writes it, `CN=Alice,O=Example`."""
    return x509.Name.from_rfc4514_string(text)


def _issue(
    name: str,
    issuer: Identity | None,
    extensions: list[tuple[x509.ExtensionType, bool]],
    subject: x509.Name | None = None,
) -> Identity:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = subject or x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    certificate = builder.sign(issuer.key if issuer else key, hashes.SHA256())
    issuers = (issuer.certificate, *issuer.issuers) if issuer else ()
    return Identity(name, key, certificate, issuers)
