"""Settings of a broker that protect something and are not supported: ignoring them is not harmless.

An operator who starts kafka-dt on the file of a broker has to hear of these, unless the value is Kafka's default, which
asks for nothing. `listener.name.<name>.<key>`, with or without a mechanism before the key, counts as the key.

Source: Kafka's KafkaConfig, ZkConfigs, BrokerSecurityConfigs, SocketServerConfigs, SslConfigs.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "principal.builder.class": "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        "sasl.server.callback.handler.class": "",
        "security.providers": "",
        "ssl.engine.factory.class": "",
        "ssl.provider": "",
        "ssl.trustmanager.algorithm": "PKIX",
        "zookeeper.ssl.cipher.suites": "",
        "zookeeper.ssl.crl.enable": "false",
        "zookeeper.ssl.enabled.protocols": "",
        "zookeeper.ssl.ocsp.enable": "false",
        "zookeeper.ssl.protocol": "TLSv1.2",
    }
)
"""Kafka's default of each, empty for null."""

READ_FOR_OAUTHBEARER: Final = ".oauthbearer.sasl.server.callback.handler.class"
"""Is looked at there: a class that kafka-dt cannot stand for is an error."""


def protects(key: str, text: str) -> bool:
    """Say whether a setting that is not supported would protect something.

    Args:
        key: a key of a broker that kafka-dt does not have.
        text: its value.
    """
    return _differs(DEFAULTS.get(key), text)


def protects_listener(key: str, text: str) -> bool:
    """Say the same of a key that begins with `listener.name.`, which was not used for the listener."""
    if key.endswith(READ_FOR_OAUTHBEARER):
        return False
    default = next((value for name, value in DEFAULTS.items() if key.endswith(f".{name}")), None)
    return _differs(default, text)


def _differs(default: str | None, text: str) -> bool:
    return default is not None and text.strip().lower() not in {"", default.lower()}
