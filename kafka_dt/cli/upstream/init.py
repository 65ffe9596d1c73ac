"""`kafka-dt upstream init`: make in the cluster what nodes keep there, the topic of revocations.

It prints whether the topic was made, and the command that gives the gateway's user its rights on it.

Source: docs/how-to/kafka-4.md.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafka_dt.cli.options import EXISTING_FILE, client_config, example, settings_file_option
from kafka_dt.cli.upstream.gateway import GATEWAY_FILE, gateway_of, upstream_settings_named
from kafka_dt.client import RequestRefused
from kafka_dt.config import ConfigError
from kafka_dt.config.options.gateway import NEWS_TOPIC
from kafka_dt.kraft.news.settings import allowed, ensure
from kafka_dt.kraft.session import gateway_principal, session
from kafka_dt.log import set_up_logging

if TYPE_CHECKING:
    from kafka_dt.client import ClientConfig


@example("kafka-dt upstream init --config gateway.properties --command-config admin.properties")
@click.command()
@settings_file_option(GATEWAY_FILE)
@click.option(
    "--command-config",
    type=EXISTING_FILE,
    metavar="FILE",
    help="Kafka client properties of a user who may create the topic. [default: the gateway's own user]",
)
def init(*, config: Path | None, overrides: tuple[str, ...], command_config: Path | None) -> None:
    """Create the topic of revocations in the cluster.

    Nodes tell each other of revocations by this topic. The command also prints the rights that nodes need on it.
    A topic that is there already stays as it is; kafka-dt upstream check tells whether it is fit.
    """
    set_up_logging("upstream", level="ERROR")
    settings, client = gateway_of(config, overrides)
    name = settings.upstream_news_topic
    if not name:
        raise ConfigError(NEWS_TOPIC, "is empty: nodes with these settings use no topic")
    asking = client
    named: AbstractContextManager[None] = upstream_settings_named()
    if command_config is not None:
        asking = client_config(",".join(settings.upstream_bootstrap_servers), command_config)
        named = nullcontext()
    rights = allowed(name, gateway_principal(client))
    try:
        with named:
            made = asyncio.run(_ensure(asking, name))
    except RequestRefused as refusal:
        way_out = "log in by --command-config as a user who may do so, or allow it to the gateway"
        raise click.ClickException(f"{refusal}; {way_out}:\n{rights}") from refusal
    click.echo(f"Created topic {name}" if made else f"Topic {name} is there already")
    click.echo(f"Nodes need these rights on it:\n{rights}")


async def _ensure(client: ClientConfig, name: str) -> bool:
    asking = session(client)
    try:
        return await ensure(await asking.ready(), name)
    finally:
        await asking.close()
