"""`kafka-dt keys seal|unseal|verify`: every token znode either way, or checked, while nodes run.

Source: KIP-395, "Future work".
"""

from __future__ import annotations

import secrets
from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from kafka_dt.bulk import Seal, Unseal, Verify
from kafka_dt.cli.bulk_run import VERIFIED, BulkRun
from kafka_dt.cli.keys.files import keys_stay
from kafka_dt.cli.keys.nodes import in_the_other_form
from kafka_dt.cli.node_options import dry_run_option, keyring_of, settings_options
from kafka_dt.cli.options import example

if TYPE_CHECKING:
    from kafka_dt.cli.output import Output
    from kafka_dt.config import Settings
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient


@example("kafka-dt keys seal --config server.properties --dry-run")
@click.command()
@settings_options()
@dry_run_option
def seal(*, settings: Settings, output: Output, dry_run: bool) -> None:
    """Seal every token in ZooKeeper with the current key.

    Tokens that an older key sealed are sealed again. Brokers cannot read sealed tokens.
    """
    run = BulkRun("Sealing", dry_run=dry_run)

    async def warn(client: ZooKeeperClient) -> None:
        if not settings.metadata_encryption:
            run.tell("Nodes with these settings write tokens plain (delegation.token.metadata.encryption.enable=false)")
        for line in await in_the_other_form(client, sealed=True):
            run.tell(line)

    with nullcontext() if dry_run else keys_stay(settings):
        # Read under the lock, so that no token is sealed with a key that has been retired since.
        task = Seal(keyring_of(settings), secrets.token_bytes)
        run.do(run.on_zookeeper(settings, task, before=warn), output)


@example("kafka-dt keys unseal --config server.properties --dry-run")
@click.command()
@settings_options()
@dry_run_option
def unseal(*, settings: Settings, output: Output, dry_run: bool) -> None:
    """Write every token in ZooKeeper plain, as brokers do.

    The command announces each change, so that brokers read the token.
    """
    run = BulkRun("Unsealing", dry_run=dry_run)

    async def warn(client: ZooKeeperClient) -> None:
        for line in await in_the_other_form(client, sealed=False):
            run.tell(line)

    run.do(run.on_zookeeper(settings, Unseal(keyring_of(settings)), before=warn), output)


@example("kafka-dt keys verify --config server.properties")
@click.command()
@settings_options()
def verify(*, settings: Settings, output: Output) -> None:
    """Check every token in ZooKeeper: MAC, JSON, name, key and times."""
    run = BulkRun("Verifying", words=VERIFIED)
    run.do(run.on_zookeeper(settings, Verify(keyring_of(settings))), output)
