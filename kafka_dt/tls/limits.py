"""Protocol versions and cipher suites: what a context is held to.

Suites are named as Java does (the RFCs' names) or as OpenSSL does. Limit: of the suites of TLS 1.3 either all are
named or none, because Python can neither add to them nor take away.

Source: org.apache.kafka.common.config.SslConfigs (`ssl.protocol`, `ssl.enabled.protocols`, `ssl.cipher.suites`).
"""

from __future__ import annotations

import re
import ssl
from typing import TYPE_CHECKING, Final

from kafka_dt.tls.errors import TlsError

if TYPE_CHECKING:
    from collections.abc import Mapping

_VERSIONS: Final = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
# OpenSSL's defaults.
_TLS_1_3_SUITES: Final = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"})


def limit(context: ssl.SSLContext, settings: Mapping[str, str]) -> None:
    """Hold a context to the versions and suites of its settings.

    Raises TlsError.
    """
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
