"""Put together the settings of the endpoint of metrics and health.

    metrics = metrics_settings(settings)     # None where there is none
    metrics.endpoint, metrics.tls

A setting of the endpoint is an error if there is no endpoint.

Source: docs/how-to/monitor.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from kafka_dt.config.listeners import Endpoint
from kafka_dt.config.options.metrics import METRICS_PREFIX, NO_LISTENER
from kafka_dt.config.options.option import ConfigError, Secret
from kafka_dt.config.settings import Settings

METRICS_LISTENER: Final = f"{METRICS_PREFIX}listener"
METRICS_TLS_PREFIX: Final = f"{METRICS_PREFIX}ssl."
_KEY_STORE: Final = f"{METRICS_TLS_PREFIX}keystore.location"
_ADDRESS: Final = re.compile(r"(?P<scheme>https?)://\[?(?P<host>[0-9a-zA-Z\-%._:]*?)\]?:(?P<port>[0-9]{1,5})/?")
_LARGEST_PORT: Final = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings:
    """The endpoint."""

    endpoint: Endpoint
    """Where it is bound; its name is the scheme of its URLs."""
    user: str
    """The name that `/metrics` asks for; empty if it asks for none."""
    password: Secret | None
    tls: Mapping[str, str] | None = field(repr=False)
    """Kafka's `ssl.*` settings by name, as `kafka_dt.tls` takes them; None where it is not encrypted."""


def metrics_settings(settings: Settings) -> MetricsSettings | None:
    """Put together the settings of the endpoint; None if there is none.

    :raises ConfigError: naming the key whose value cannot be used, or that sets nothing
    """
    text = settings.metrics_listener
    if text == NO_LISTENER:
        settings.refuse_leftovers(METRICS_PREFIX, METRICS_LISTENER)
        return None
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > _LARGEST_PORT:
        raise ConfigError(METRICS_LISTENER, f"{text!r} is not of the form http://host:port, https://host:port or none")
    if bool(settings.metrics_user) != (settings.metrics_password is not None):
        missing = "password" if settings.metrics_user else "user"
        raise ConfigError(METRICS_PREFIX + missing, "user and password are needed both, or neither")
    tls = settings.client_properties(METRICS_PREFIX, ("listener", "user", "password"))
    if match["scheme"] == "http":
        settings.refuse_leftovers(METRICS_TLS_PREFIX, f"{METRICS_LISTENER}=https://...")
    elif "ssl.keystore.location" not in tls:
        raise ConfigError(_KEY_STORE, f"is needed for {text}")
    return MetricsSettings(
        endpoint=Endpoint(match["scheme"], match["host"], int(match["port"])),
        user=settings.metrics_user,
        password=settings.metrics_password,
        tls=MappingProxyType(dict(tls)) if match["scheme"] == "https" else None,
    )
