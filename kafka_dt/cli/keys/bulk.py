"""`kafka-dt keys seal|unseal|verify`: every token znode either way, or checked, while nodes run.

Source: KIP-395, "Future work".
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kafka_dt.bulk import Seal, Unseal, Verify, ZnodeResult
from kafka_dt.cli.bulk_run import BulkRun
from kafka_dt.cli.errors import one_line
from kafka_dt.cli.keys.files import KeyFiles, KeysError
from kafka_dt.cli.keys.nodes import any_node
from kafka_dt.cli.node_options import Output, keyring_of, node_options, node_settings
from kafka_dt.config import ConfigError
from kafka_dt.zookeeper.errors import ZooKeeperError
from kafka_dt.zookeeper.stores.nodes import live_brokers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractContextManager

    from kafka_dt.bulk import Task
    from kafka_dt.config import Settings
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

VERIFIED: Final = {ZnodeResult.UNCHANGED: "valid", ZnodeResult.GONE: "gone", ZnodeResult.FAILED: "failed"}
_dry_run = click.option("--dry-run", is_flag=True, help="Only count the tokens that would change.")


@click.command()
@node_options
@_dry_run
def seal(*, config: Path | None, overrides: tuple[str, ...], output: Output, dry_run: bool) -> None:
    """Seal every token in ZooKeeper with the current key.

    Tokens that an older key sealed are sealed again. Brokers cannot read sealed tokens.
    """
    with one_line(ConfigError, KeysError, OSError):
        settings = node_settings(config, overrides)
        lock = nullcontext() if dry_run else _keys_stay(settings)
    run = BulkRun("Sealing", dry_run=dry_run)

    async def warn(client: ZooKeeperClient) -> None:
        if not settings.metadata_encryption:
            run.tell("Nodes with these settings write tokens plain (delegation.token.metadata.encryption.enable=false)")
        if brokers := await live_brokers(client):
            run.tell(f"Brokers are live (ids {', '.join(brokers)}): they cannot read what is sealed")
        if await any_node(client, seals=False):
            run.tell("Nodes are live that write tokens plain (delegation.token.metadata.encryption.enable=false)")

    with one_line(ConfigError, KeysError, OSError), lock:
        # Read under the lock, so that no token is sealed with a key that has been retired since.
        _work(run, settings, Seal(keyring_of(settings), secrets.token_bytes), output, warn)


@click.command()
@node_options
@_dry_run
def unseal(*, config: Path | None, overrides: tuple[str, ...], output: Output, dry_run: bool) -> None:
    """Write every token in ZooKeeper plain, as brokers do.

    The command announces each change, so that brokers read the token.
    """
    with one_line(ConfigError):
        settings = node_settings(config, overrides)
    run = BulkRun("Unsealing", dry_run=dry_run)

    async def warn(client: ZooKeeperClient) -> None:
        if await any_node(client, seals=True):
            run.tell("Nodes are live that write tokens sealed (delegation.token.metadata.encryption.enable=true)")

    _work(run, settings, Unseal(keyring_of(settings)), output, warn)


@click.command()
@node_options
def verify(*, config: Path | None, overrides: tuple[str, ...], output: Output) -> None:
    """Check every token in ZooKeeper: MAC, JSON, name, key and times."""
    with one_line(ConfigError):
        settings = node_settings(config, overrides)
    _work(BulkRun("Verifying", words=VERIFIED), settings, Verify(keyring_of(settings)), output)


def _keys_stay(settings: Settings) -> AbstractContextManager[None]:
    """Keep the commands that change keys from it, where they can; keys that are not in files change with no command."""
    try:
        files = KeyFiles(settings)
    except KeysError:
        return nullcontext()
    return files.locked()


def _work(
    run: BulkRun,
    settings: Settings,
    task: Task,
    output: Output,
    before: Callable[[ZooKeeperClient], Awaitable[None]] | None = None,
) -> None:
    with one_line(ConfigError, ZooKeeperError):
        try:
            asyncio.run(run.on_zookeeper(settings, task, before=before))
        finally:
            if run.begun:
                run.write_summary(output)
    run.exit()
