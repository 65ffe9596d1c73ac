"""The options and the connection of commands that work on a cluster's ZooKeeper with a node's own settings.

@click.command()
@settings_options()
def command(*, settings: Settings, output: Output) -> None:
    async with connected(settings) as client: ...
"""

from __future__ import annotations

import functools
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_dt.cli.options import settings_file_option, together
from kafka_dt.cli.output import output_option
from kafka_dt.config import SecretKeyFiles, Settings, TokenStore, load
from kafka_dt.config.gateway import STORE
from kafka_dt.log import set_up_logging
from kafka_dt.tokens import HmacAlgorithm, Keyring
from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.connection.settings import zookeeper_settings
from kafka_dt.zookeeper.znodes.kafka import TokenZnode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

DEFAULT_TIMEOUT_S: Final = 60.0
"""Longer than a session lasts by default: until then a worker that has died is among the live ones."""

node_options: Final = together(
    settings_file_option("The server.properties of a node, with the address of ZooKeeper and the secret keys."),
    output_option(),
)
"""Adds `--config`, `--override` and `--output`: the arguments `config`, `overrides` and `output`."""

dry_run_option: Final = click.option("--dry-run", is_flag=True, help="Only count the tokens that would change.")
"""Adds `--dry-run`."""

waiting_options: Final = together(
    click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0, min_open=True),
        default=DEFAULT_TIMEOUT_S,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for all nodes in each step.",
    ),
    click.option("--no-nodes", is_flag=True, help="Do not fail when no node runs."),
)
"""Adds `--timeout` and `--no-nodes`: the arguments `timeout_s` and `no_nodes`."""


def settings_options(*, needs_key: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `node_options` and load the settings: the arguments `settings` and `output`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_settings(*, config: Path | None, overrides: tuple[str, ...], **others: object) -> None:
            command(settings=node_settings(config, overrides, needs_key=needs_key), **others)

        return node_options(with_settings)

    return decorate


def now_ms() -> int:
    """Give the time: milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def node_settings(config: Path | None, overrides: tuple[str, ...], *, needs_key: bool = True) -> Settings:
    """Load the settings of a node for a command that says nothing but its result.

    Raises:
        ConfigError: they cannot be used.
        click.ClickException: they lack the address of ZooKeeper, or the secret key if the command needs it.
    """
    set_up_logging("keys", level="ERROR")
    settings = load(config, overrides).settings
    if not TokenStore(settings.token_store).has_zookeeper:
        raise click.ClickException(
            f"this command works on ZooKeeper, and {STORE}={settings.token_store} has none; ask a node about the "
            "cluster's tokens, users and ACLs: kafka-dt token, user and acl with --bootstrap-server"
        )
    if not settings.zookeeper_connect:
        raise _lacking(config, "zookeeper.connect")
    if needs_key and SecretKeyFiles(settings).keys is None:
        raise _lacking(config, "delegation.token.secret.key")
    return settings


def _lacking(config: Path | None, key: str) -> click.ClickException:
    if config is None:
        return click.UsageError(f"Missing option '--config', the server.properties of a node: {key} is needed.")
    return click.ClickException(f"{config} has no {key}")


def keyring_of(settings: Settings) -> Keyring:
    """Make the ring of a node's keys as their files have them now; `settings` as `node_settings` gives them.

    Raises:
        ConfigError: a file cannot be used.
    """
    keyring = keyring_if_any(settings)
    assert keyring is not None  # noqa: S101 - there is a secret key
    return keyring


def keyring_if_any(settings: Settings) -> Keyring | None:
    """Make the ring as `keyring_of` does; None where tokens are disabled, for there is no secret key."""
    files = SecretKeyFiles(settings)
    if files.keys is None:
        return None
    files.refresh()
    return Keyring(files.keys.current, HmacAlgorithm(settings.hmac_algorithm), files.keys.previous)


@asynccontextmanager
async def connected(settings: Settings) -> AsyncIterator[ZooKeeperClient]:
    """Give a client that is connected as the node would be, but makes no chroot.

    Raises:
        ConfigError: the settings cannot be used.
        NoChroot: the one of the settings does not exist.
        ZooKeeperError: ZooKeeper cannot be reached.
    """
    client = ZooKeeperClient(replace(zookeeper_settings(settings), makes_chroot=False))
    await client.start()
    try:
        yield client
    finally:
        await client.close()


async def tell_if_no_token_was_made(client: ZooKeeperClient, connect: str) -> None:
    """Write to stderr if no token was ever made there: a wrong address looks like a cluster where all is well."""
    if await client.exists(TokenZnode.PARENT) is None:
        click.echo(f"No token was ever made at {connect}: see zookeeper.connect", err=True)
