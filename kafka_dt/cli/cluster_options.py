"""The options that name a cluster, for its tokens, users and ACLs: ZooKeeper itself, or the Kafka protocol.

@click.command()
@cluster_options
def command(*, options: ClusterOptions, output: Output) -> None:
    config = options.settings() if options.on_zookeeper else options.client()

With `--config` a command works on ZooKeeper with the settings of a node, and may do everything. With
`--bootstrap-server` and `--command-config`, or with neither and a context, it works as the user that logs in, and does
what this user may do.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from kafka_dt.cli.contexts import chosen, named
from kafka_dt.cli.node_options import node_options, node_settings
from kafka_dt.cli.options import client_config, connection_options, together

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kafka_dt.client import ClientConfig
    from kafka_dt.config import Settings

_options = together(node_options, connection_options)


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The cluster that a command line names, in exactly one of the two ways."""

    config: Path | None
    overrides: tuple[str, ...]
    bootstrap_server: str | None
    command_config: Path | None

    def __post_init__(self) -> None:
        over_kafka = self.bootstrap_server is not None or self.command_config is not None
        if self.on_zookeeper and (over_kafka or named()):
            raise click.UsageError(
                "Give --config for ZooKeeper, or --bootstrap-server and --command-config or --context, not both."
            )
        if not (self.on_zookeeper or over_kafka or chosen()):
            raise click.UsageError(
                "Missing option '--config', or '--bootstrap-server' (and '--command-config'), or a context."
            )

    @property
    def on_zookeeper(self) -> bool:
        """Whether it is ZooKeeper itself."""
        return self.config is not None or bool(self.overrides)

    def settings(self, *, needs_key: bool = True) -> Settings:
        """Load the settings of a node, for the way on ZooKeeper.

        Raises:
            ConfigError: they cannot be used.
            click.ClickException: they lack the address of ZooKeeper, or the secret key if the command needs it.
        """
        return node_settings(self.config, self.overrides, needs_key=needs_key)

    def client(self) -> ClientConfig:
        """Make a client's configuration, for the way over the Kafka protocol.

        Raises:
            ClientConfigError: the options cannot be used.
        """
        return client_config(self.bootstrap_server, self.command_config)


def cluster_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `node_options` and `connection_options`: the arguments `options` and `output`."""

    @functools.wraps(command)
    def with_options(
        *,
        config: Path | None,
        overrides: tuple[str, ...],
        bootstrap_server: str | None,
        command_config: Path | None,
        **others: object,
    ) -> None:
        command(options=ClusterOptions(config, overrides, bootstrap_server, command_config), **others)

    decorated: Callable[..., None] = _options(with_options)
    return decorated
