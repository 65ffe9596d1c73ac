"""Contexts for clients and listeners: whom they trust, who they are, whom they ask.

Source: org.apache.kafka.common.security.ssl.DefaultSslEngineFactory, SslFactory.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka_dt.tls.errors import TlsError
from kafka_dt.tls.limits import limit
from kafka_dt.tls.stores import pem, read_identity, read_trust

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


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
    limit(context, settings)
    return context


def server_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """Make the context of a listener.

    settings: Kafka's `ssl.*` listener settings by name; others are not looked at. A key store is needed;
    `ssl.client.auth` says whether clients show a certificate (none, requested, required).
    Raises TlsError for a setting that cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # A client must not make the server work again and again (TLS 1.2).
    context.options |= ssl.OP_NO_RENEGOTIATION
    client_auth = settings.get("ssl.client.auth", "none").strip().lower()
    if client_auth not in _CLIENT_AUTH:
        raise TlsError("ssl.client.auth", f"it is one of {', '.join(_CLIENT_AUTH)}")
    context.verify_mode = _CLIENT_AUTH[client_auth]
    if not _load_trust(context, settings) and client_auth != "none":
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    if not _load_identity(context, settings):
        raise TlsError("ssl.keystore.location", "a TLS listener needs a key store: PEM or PKCS12")
    limit(context, settings)
    return context


def _load_trust(context: ssl.SSLContext, settings: Mapping[str, str]) -> bool:
    certificates = read_trust(settings)
    if certificates is None:
        return False
    # Java trusts whatever is in the store, also a server's own certificate or an intermediate one.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=pem(certificates).decode("ascii"))
    return True


def _load_identity(context: ssl.SSLContext, settings: Mapping[str, str]) -> bool:
    identity = read_identity(settings)
    if identity is None:
        return False
    with _unnamed_file(identity.pem) as path:
        try:
            context.load_cert_chain(path)
        except ssl.SSLError as error:
            raise TlsError(identity.setting, f"the key and its certificate do not fit: {error.reason}") from error
    return True


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
