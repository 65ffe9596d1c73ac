"""`kafka-dt accept-restore`: make the nodes continue with a ZooKeeper that was restored from a backup.

Source: docs/how-to/zookeeper.md, "Restore".
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafka_dt.bulk import token_ids
from kafka_dt.cli.errors import one_line
from kafka_dt.cli.keys.nodes import counted
from kafka_dt.cli.node_options import Output, connected, node_options, node_settings, tell_if_no_token_was_made
from kafka_dt.config import ConfigError
from kafka_dt.zookeeper.errors import ZooKeeperError
from kafka_dt.zookeeper.proofs.history import accept

if TYPE_CHECKING:
    from kafka_dt.config import Settings


@click.command("accept-restore")
@node_options
@click.option("--yes", "confirmed", is_flag=True, help="Do not ask.")
def accept_restore(*, config: Path | None, overrides: tuple[str, ...], output: Output, confirmed: bool) -> None:
    """Make all nodes continue with a restored ZooKeeper.

    Tokens that were revoked after the backup exist again: end them first, with kafka-dt token expire-all. Nodes that
    noticed the restore then start their workers again and read all tokens again.
    """
    with one_line(ConfigError, ZooKeeperError):
        settings = node_settings(config, overrides, needs_key=False)
        if not confirmed:
            _confirm()
        tokens = asyncio.run(_accept(settings))
    if output is Output.JSON:
        click.echo(json.dumps({"accepted": True, "tokens": tokens}))
    else:
        click.echo(f"ZooKeeper's history is accepted as it is, with {counted(tokens, 'token')}")


def _confirm() -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("Tokens that were revoked after the backup are valid again from then on: say --yes.")
    click.confirm(
        "Tokens that were revoked after the backup are valid again from then on. Go on?", abort=True, err=True
    )


async def _accept(settings: Settings) -> int:
    """Accept the history; returns how many tokens there are."""
    async with connected(settings) as client:
        await tell_if_no_token_was_made(client, settings.zookeeper_connect)
        await accept(client)
        return len(await token_ids(client))
