"""`kafka-dt accept-restore`: make the nodes continue with a ZooKeeper that was restored from a backup.

Source: docs/how-to/back-up.md, "Restore".
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from kafka_dt.bulk import token_ids
from kafka_dt.cli.node_options import connected, settings_options, tell_if_no_token_was_made
from kafka_dt.cli.options import confirm, example, yes_option
from kafka_dt.cli.output import Output, counted, write_json
from kafka_dt.zookeeper.proofs.history import accept

if TYPE_CHECKING:
    from kafka_dt.config import Settings


@example("kafka-dt accept-restore --config server.properties")
@click.command("accept-restore")
@settings_options(needs_key=False)
@yes_option
def accept_restore(*, settings: Settings, output: Output, confirmed: bool) -> None:
    """Make all nodes continue with a restored ZooKeeper.

    Tokens that were revoked after the backup exist again: end them first, with `kafka-dt token revoke`. Nodes that
    noticed the restore then start their workers again and read all tokens again.
    """
    if not confirmed:
        danger = "Tokens that were revoked after the backup are valid again from then on"
        confirm(f"{danger}. Go on?", f"{danger}: say --yes.")
    tokens = asyncio.run(_accept(settings))
    if output is Output.JSON:
        write_json({"accepted": True, "tokens": tokens})
    else:
        click.echo(f"ZooKeeper's history is accepted as it is, with {counted(tokens, 'token')}")


async def _accept(settings: Settings) -> int:
    """Accept the history; returns how many tokens there are."""
    async with connected(settings) as client:
        await tell_if_no_token_was_made(client, settings.zookeeper_connect)
        await accept(client)
        return len(await token_ids(client))
