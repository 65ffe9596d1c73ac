"""A certificate for the TLS listeners of all servers: RSA with 2048 bits, self-signed, for addresses of this machine.

RSA is what most clusters have, and it suits a measurement of servers: they sign, which is dear, and the load
generator checks the signature, which is cheap.
"""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_NAMES: Final = (x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
_CERTIFICATE: Final = "-----BEGIN CERTIFICATE-----"


def write_key_store(path: Path) -> Path:
    """Write a new private key and its certificate as PEM, which brokers read as well; returns the path."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName(_NAMES), critical=False)
        .sign(key, hashes.SHA256())
    )
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + certificate.public_bytes(Encoding.PEM)
    )
    return path


def write_trust_store(key_store: Path) -> Path:
    """Write the certificate of a key store beside it, for clients that verify the server; returns the path."""
    text = key_store.read_text(encoding="ascii")
    path = key_store.with_suffix(".trusted.pem")
    path.write_text(text[text.index(_CERTIFICATE) :], encoding="ascii")
    return path
