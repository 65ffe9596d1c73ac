"""The settings of the gateway whose cluster the commands ask, and how the gateway reaches it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kafka_dt.client import LoginFailed
from kafka_dt.config import ConfigError, load, names_clients, upstream_client_properties
from kafka_dt.config.gateway import BOOTSTRAP
from kafka_dt.config.options.gateway import UPSTREAM_PREFIX
from kafka_dt.upstream import UpstreamClient

if TYPE_CHECKING:
    from kafka_dt.client import ClientConfig
    from kafka_dt.config import Settings

GATEWAY_FILE: Final = (
    "The server.properties of a gateway, with the address of the cluster and the gateway's login there."
)
"""The help of `--config`."""


def gateway_of(config: Path | None, overrides: tuple[str, ...]) -> tuple[Settings, ClientConfig]:
    """Return the settings of a gateway, and its client of the cluster.

    Raises:
        ConfigError: they cannot be used, or are those of no gateway.
    """
    settings = load(config, overrides).settings
    if not settings.upstream_bootstrap_servers:
        raise ConfigError(
            BOOTSTRAP, "is needed: the brokers of the cluster; name the settings of a gateway by --config"
        )
    client = UpstreamClient(upstream_client_properties(settings), names_clients=names_clients(settings))
    return settings, client.config


@contextmanager
def upstream_settings_named() -> Iterator[None]:
    """Name the settings of the gateway where the cluster refuses its login."""
    try:
        yield
    except LoginFailed as error:
        raise click.ClickException(error.text(UPSTREAM_PREFIX)) from error
