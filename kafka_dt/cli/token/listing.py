"""`kafka-dt token list|show`: which tokens there are, without their HMACs.

Two ways in (`kafka_dt/cli/cluster_options.py`). On ZooKeeper the commands see every token, also one that has expired
and is not purged yet. Over the Kafka protocol they see what the user that logs in may see.

- table: for people; a row for each token, in the order of owner, issue and id. `show` prints a line for each field.
- json: for programs, stable. A token (`listed.py`) is an object with `token_id`, `owner`, `requester`, `renewers`
  (principals as `User:alice`), `issue_timestamp`, `expiry_timestamp` and `max_timestamp` (milliseconds since 1970).
  `list` prints an array of them in the same order, `show` one of them.

Source: KIP-48 (DescribeDelegationToken).
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING

import click
from rich.text import Text

from kafka_dt.bulk import inventory, token_ids
from kafka_dt.cli.cluster_options import ClusterOptions, cluster_options
from kafka_dt.cli.filters import filter_options
from kafka_dt.cli.node_options import connected, keyring_of, tell_if_no_token_was_made
from kafka_dt.cli.options import ask, example
from kafka_dt.cli.output import Output, counted, printable, write_json
from kafka_dt.cli.tables import console, table
from kafka_dt.cli.token.ids import TakesTokenIds
from kafka_dt.cli.token.listed import ListedToken
from kafka_dt.client import TokenClient

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_dt.bulk import TokenFilter
    from kafka_dt.config import Settings


@example(
    "kafka-dt token list --owner User:alice",
    "kafka-dt token list --config server.properties --issued-before 30d --output json",
)
@click.command("list")
@filter_options
@cluster_options
def list_tokens(*, options: ClusterOptions, output: Output, selected: TokenFilter) -> None:
    """List tokens without their HMACs.

    The command lists all tokens, or those that the filters select, sorted by owner and issue.

    With --config the command reads ZooKeeper itself, with the settings of a node, and lists every token. Without it the
    command lists the tokens that the user that logs in may see. Several owners, or renewers, mean any of them;
    different filters must all hold.
    """
    tokens = [
        token
        for token in _tokens(options, sorted(selected.owners) or None)
        if selected.selects(token.owner, token.renewers, token.issue_timestamp)
    ]
    tokens.sort(key=lambda token: (token.owner, token.issue_timestamp, token.token_id))
    if output is Output.JSON:
        write_json([asdict(token) for token in tokens], indent=2)
    elif tokens:
        made = table(*tokens[0].cells)
        for token in tokens:
            made.add_row(*token.cells.values())
        console().print(made)
    else:
        click.echo("no tokens")


@example("kafka-dt token show W23eVbJOQheJ-v0f6A8uRg")
@click.command(cls=TakesTokenIds)
@click.argument("token_id", metavar="ID")
@cluster_options
def show(*, token_id: str, options: ClusterOptions, output: Output) -> None:
    """Show one token without its HMAC.

    With --config the command reads ZooKeeper itself, with the settings of a node. Without it the command asks a server,
    as the user that logs in. `describe` shows HMACs.
    """
    token = next((token for token in _tokens(options, None) if token.token_id == token_id), None)
    if token is None:
        whose = "there is no token" if options.on_zookeeper else "there is no token, or none that this user may see,"
        raise click.ClickException(f"{whose} with the id {printable(token_id)}")
    if output is Output.JSON:
        write_json(asdict(token), indent=2)
    else:
        for name, cell in token.cells.items():
            console().print(Text.assemble((f"{name:9}", "bold"), f"  {cell}"))


def _tokens(options: ClusterOptions, owners: Sequence[str] | None) -> list[ListedToken]:
    """Give the tokens that there are; over the Kafka protocol also those that `owners` may renew, None = of all."""
    if options.on_zookeeper:
        return asyncio.run(_on_zookeeper(options.settings()))
    described = ask(TokenClient(options.client()), lambda client: client.describe(owners))
    return [ListedToken.of(token) for token in described]


async def _on_zookeeper(settings: Settings) -> list[ListedToken]:
    async with connected(settings) as client:
        await tell_if_no_token_was_made(client, settings.zookeeper_connect)
        rows = await inventory(client, await token_ids(client), keyring_of(settings).keys)
    if unread := sum(row.token is None for row in rows):
        click.echo(f"Not readable: {counted(unread, 'token')}; kafka-dt keys verify says why", err=True)
    return [ListedToken.of(row.token) for row in rows if row.token is not None]
