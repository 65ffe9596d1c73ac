"""How the cluster behind a gateway is reached: the settings as values that a connection is made with.

    settings = UpstreamSettings.of(gateway_settings)
    await settings.refresh_certificates()        # now and then

Certificates are taken from their files again when these change, as those of a listener are: a gateway lives for longer
than they do. Passwords are not.

Source: org.apache.kafka.clients.CommonClientConfigs; KIP-48.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from kafka_dt.client.config import ClientConfig
from kafka_dt.client.errors import ClientConfigError
from kafka_dt.config import ConfigError, GatewaySettings, UpstreamIdentity
from kafka_dt.config.options.gateway import UPSTREAM_PREFIX
from kafka_dt.tls import ReloadingContext, TlsError, client_context
from kafka_dt_protocol.sasl import ScramMechanism

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamSettings:
    """The cluster behind a gateway, and who clients are there."""

    client: ClientConfig
    """Its bootstrap servers, how they are spoken to, and the gateway's own credentials (None without SASL)."""
    identity: UpstreamIdentity
    identity_file: Path | None = None
    """With MAPPED: where the credentials of each principal are."""
    identity_mechanism: ScramMechanism = ScramMechanism.SHA_256
    """How clients' tokens, and their users of a ScramLoginModule, log in."""
    certificates: ReloadingContext | None = field(default=None, repr=False)
    """With TLS: the one that `client` takes its context from."""

    @classmethod
    def of(cls, settings: GatewaySettings) -> Self:
        """Make the values of settings; reads the files of trust and key stores.

        Raises:
            ConfigError: naming the key whose value cannot be used.
        """
        certificates: ReloadingContext | None = None
        try:
            client = ClientConfig.from_properties(settings.client)
            if client.security_protocol.uses_tls:
                certificates = followed = ReloadingContext(settings.client, client_context)
                client = replace(client, ssl_context=lambda: followed.current)
        except (ClientConfigError, TlsError) as error:
            raise ConfigError(UPSTREAM_PREFIX + error.key, error.reason) from error
        return cls(
            client=client,
            identity=settings.identity,
            identity_file=settings.identity_file,
            identity_mechanism=ScramMechanism(settings.identity_mechanism),
            certificates=certificates,
        )

    async def refresh_certificates(self) -> None:
        """Take new certificates if their files have changed; with those that cannot be used the old ones stay."""
        if self.certificates is None:
            return
        try:
            if await asyncio.to_thread(self.certificates.refresh):
                _LOG.info("The gateway has read its upstream certificates again")
        except TlsError as error:
            reason = f"{UPSTREAM_PREFIX}{error.key}: {error.reason}"
            _LOG.error("The gateway keeps its upstream certificates, the new ones cannot be used: %s", reason)
