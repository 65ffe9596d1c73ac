"""Make contexts for clients and listeners: the certificates that they trust, show and ask for, and their ciphers.

    context = ReloadingContext(settings)
    context.current              # for the next connection
    context.refresh()            # now and then, in a thread: it reads files; `follow` logs what came of it

So an operator renews certificates without a restart. Connections keep the context they began with. `refresh` reads only
files again; passwords and PEM text inside the settings stay as they were at the start.

Cipher suites have their names in the RFCs, as in Java, or in OpenSSL. Limit: name all suites of TLS 1.3 or none,
because Python can neither add to them nor take away.

Source: org.apache.kafka.common.security.ssl.DefaultSslEngineFactory, org.apache.kafka.common.security.ssl.SslFactory;
org.apache.kafka.common.config.SslConfigs (`ssl.protocol`, `ssl.enabled.protocols`, `ssl.cipher.suites`);
kafka.server.DynamicBrokerConfig (there a request asks for the reload).
"""

from __future__ import annotations

import logging
import os
import re
import ssl
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kafka_dt.files import Stamp, stamp
from kafka_dt.log import ComposedText
from kafka_dt.tls.stores import TlsError, pem, read_identity, read_trust

_LOG = logging.getLogger(__name__)

_FILES: Final = ("ssl.keystore.location", "ssl.truststore.location")
TRUST_STORES: Final = ("ssl.truststore.location", "ssl.truststore.certificates")
"""The settings that name whose certificates are trusted; without them it is every authority that the machine trusts."""
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_VERSIONS: Final = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
# OpenSSL's defaults.
_TLS_1_3_SUITES: Final = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"})


COMMON_CONTEXTS: Final = 8
"""How many listeners of a node have a context that its workers have in common; further ones work without."""


def common_contexts() -> Sequence[ssl.SSLContext]:
    """Make contexts for the listeners of a node, in the process from which its workers are forked.

    OpenSSL draws the keys of session tickets (RFC 8446, section 4.6.1) when it makes a context. So a worker resumes the
    TLS sessions of all workers that were forked from this process: the kernel chooses which one a client meets next.
    """
    return [ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) for _ in range(COMMON_CONTEXTS)]


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


def server_context(settings: Mapping[str, str], common: ssl.SSLContext | None = None) -> ssl.SSLContext:
    """Make the context of a listener.

    settings: Kafka's `ssl.*` listener settings by name; others are not looked at. A key store is needed;
    `ssl.client.auth` says whether clients show a certificate (none, requested, required).
    common: one of `common_contexts` that no other listener has, for the first context of a listener. A listener that
    asks for certificates gets one of its own all the same: a resumed session keeps the certificate that its client
    has shown, and a worker that starts after a change of the trust store must not take that of an earlier one.
    Raises TlsError for a setting that cannot be used.
    """
    client_auth = settings.get("ssl.client.auth", "none").strip().lower()
    if client_auth not in _CLIENT_AUTH:
        raise TlsError("ssl.client.auth", f"it is one of {', '.join(_CLIENT_AUTH)}")
    context = common if common is not None and client_auth == "none" else ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # A client must not make the server work again and again (TLS 1.2).
    context.options |= ssl.OP_NO_RENEGOTIATION
    # As Java: clients keep one session of a server. A second ticket would cost a twentieth of the handshake.
    context.num_tickets = 1
    context.verify_mode = _CLIENT_AUTH[client_auth]
    if not _load_trust(context, settings) and client_auth != "none":
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    if not _load_identity(context, settings):
        raise TlsError("ssl.keystore.location", "a TLS listener needs a key store: PEM or PKCS12")
    _limit(context, settings)
    return context


class ReloadingContext:
    """The context of a listener, or of a long-lived client.

    settings: as `make` takes them.
    make: `server_context` or `client_context`.
    first: makes the context that it has until files change; by default `make` does.
    Raises TlsError for a setting that cannot be used.
    """

    current: ssl.SSLContext
    """What new connections use."""
    certificate_end_s: float | None
    """When the certificate that it shows ends, in seconds since 1970; None if it shows none."""

    def __init__(
        self,
        settings: Mapping[str, str],
        make: Callable[[Mapping[str, str]], ssl.SSLContext] = server_context,
        first: Callable[[Mapping[str, str]], ssl.SSLContext] | None = None,
    ) -> None:
        self._settings = settings
        self._make = make
        self._files = [Path(settings[key]) for key in _FILES if key in settings]
        # Taken before the files are read: a change in between is then seen as one.
        self._seen: Sequence[Stamp] | None = self._stamps()
        self._problem = ""
        self.current, self.certificate_end_s = (first or make)(settings), _certificate_end_s(settings)

    def refresh(self) -> bool:
        """Read the files again if one of them has changed since the last time.

        Returns whether there is a new context. Raises TlsError when the files cannot be used: the context stays as it
        is, and they are not tried again before they change once more. Files that the system could not read, as without
        a free file descriptor, are tried again the next time; the error is not raised again while it stays the same.
        """
        stamps = self._stamps()
        if stamps == self._seen:
            return False
        self._seen = stamps
        try:
            self.current, self.certificate_end_s = self._make(self._settings), _certificate_end_s(self._settings)
        except TlsError as error:
            told, self._problem = self._problem, str(error)
            if _may_pass(error):
                self._seen = None
                if self._problem == told:
                    return False
            raise
        self._problem = ""
        return True

    def follow(self, whose: str, key: Callable[[str], str]) -> None:
        """Refresh, and log what came of it: with files that cannot be used the context stays as it is.

        whose: names the side in the log, such as `the audit topic`
        key: gives the full key of one of the settings
        """
        try:
            if self.refresh():
                _LOG.info("The certificates of %s have been read again", whose)
        except TlsError as error:
            reason = ComposedText(f"{key(error.key)}: {error.reason}")
            _LOG.error("The certificates of %s stay, the new ones cannot be used: %s", whose, reason)

    def _stamps(self) -> list[Stamp]:
        return [stamp(path) for path in self._files]


def _may_pass(error: TlsError) -> bool:
    """Say whether the system is the reason, which may go away without a change of the files."""
    return isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, ssl.SSLError)


def _load_trust(context: ssl.SSLContext, settings: Mapping[str, str]) -> bool:
    certificates = read_trust(settings)
    if certificates is None:
        return False
    # Java trusts whatever is in the store, also a server's own certificate or an intermediate one.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=pem(certificates).decode("ascii"))
    except ssl.SSLError as error:
        setting = next(key for key in TRUST_STORES if settings.get(key))
        raise TlsError(setting, "OpenSSL cannot read a certificate in it") from error
    return True


def _load_identity(context: ssl.SSLContext, settings: Mapping[str, str]) -> bool:
    identity = read_identity(settings)
    if identity is None:
        return False
    try:
        with _unnamed_file(identity.pem) as path:
            context.load_cert_chain(path)
    except ssl.SSLError as error:
        raise TlsError(identity.setting, f"the key and its certificate do not fit: {error.reason}") from error
    except OSError as error:
        raise TlsError(identity.setting, f"it cannot be loaded: {error.strerror}") from error
    return True


def _certificate_end_s(settings: Mapping[str, str]) -> float | None:
    identity = read_identity(settings)
    return None if identity is None else identity.certificates[0].not_valid_after_utc.timestamp()


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
    """Hold a context to the versions and suites of its settings."""
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
