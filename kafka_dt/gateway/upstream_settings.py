"""How the cluster behind a gateway is reached: the settings as values that a connection is made with.

Source: org.apache.kafka.clients.CommonClientConfigs; KIP-48.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kafka_dt.client.config import ClientConfig
from kafka_dt.client.errors import ClientConfigError
from kafka_dt.config import ConfigError, GatewaySettings, UpstreamIdentity
from kafka_dt.config.gateway_options import UPSTREAM_PREFIX
from protocol.sasl import ScramMechanism


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

    @classmethod
    def of(cls, settings: GatewaySettings) -> Self:
        """Make the values of settings; reads the files of trust and key stores.

        Raises:
            ConfigError: naming the key whose value cannot be used.
        """
        try:
            client = ClientConfig.from_properties(settings.client)
        except ClientConfigError as error:
            raise ConfigError(UPSTREAM_PREFIX + error.key, error.reason) from error
        return cls(
            client=client,
            identity=settings.identity,
            identity_file=settings.identity_file,
            identity_mechanism=ScramMechanism(settings.identity_mechanism),
        )
