"""The client of the cluster behind a gateway, as the settings say: its login, and certificates that may change.

    upstream = UpstreamClient(gateway_settings.client)
    upstream.config                        # for each connection
    await upstream.refresh_certificates()  # every second

Source: org.apache.kafka.clients.CommonClientConfigs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from kafka_dt.client import Address, ClientConfig, ClientConfigError, Credentials
from kafka_dt.config import ConfigError
from kafka_dt.config.options.gateway import UPSTREAM_PREFIX
from kafka_dt.tls import ReloadingContext, TlsError, client_context
from kafka_dt_protocol.wire.proxy_header import proxy_header


class UpstreamClient:
    """How the cluster behind a gateway is reached.

    Certificates are taken from their files again when these change, as those of a listener are: a gateway lives for
    longer than they do. The login and the servers change when the node is told to read its settings again.

    Args:
        properties: Kafka's client properties by name.
        names_clients: whether each connection begins with a header of the PROXY protocol, which says for now that it
            is our own.

    Raises:
        ConfigError: naming the key whose value cannot be used.
    """

    def __init__(self, properties: Mapping[str, str], *, names_clients: bool = False) -> None:
        self._certificates: ReloadingContext | None = None
        try:
            config = ClientConfig.from_properties(properties)
            if config.security_protocol.uses_tls:
                self._certificates = followed = ReloadingContext(properties, client_context)
                config = replace(config, ssl_context=lambda: followed.current)
        except (ClientConfigError, TlsError) as error:
            raise ConfigError(UPSTREAM_PREFIX + error.key, error.reason) from error
        self._login, self._servers = config.login, config.bootstrap_servers
        if self._login is not None:
            config = replace(config, credentials=lambda: cast("Credentials", self._login))
        self.config: Final = replace(config, preamble=proxy_header(None, None)) if names_clients else config
        """The servers in it are those of the start."""

    @property
    def certificate_end_s(self) -> float | None:
        """When the certificate ends that the cluster is shown, in seconds since 1970; None if it is shown none."""
        return None if self._certificates is None else self._certificates.certificate_end_s

    def servers(self) -> Sequence[Address]:
        """Return the bootstrap servers of now."""
        return self._servers

    def prepare(self, properties: Mapping[str, str]) -> Callable[[], None]:
        """Check a new login and new bootstrap servers, and return what takes them over.

        Raises:
            ConfigError: naming the key whose value cannot be used.
        """
        try:
            config = ClientConfig.from_properties(properties)
        except ClientConfigError as error:
            raise ConfigError(UPSTREAM_PREFIX + error.key, error.reason) from error

        def take_over() -> None:
            self._login, self._servers = config.login, config.bootstrap_servers

        return take_over

    async def refresh_certificates(self) -> None:
        """Take new certificates if their files have changed; with those that cannot be used the old ones stay."""
        if self._certificates is not None:
            await asyncio.to_thread(self._certificates.follow, "the gateway at the cluster", UPSTREAM_PREFIX.__add__)
