"""`kafka-dt run`: the embedded mode. A ZooKeeper, a node, and a first token to use.

It ends its start by using itself as a user would: it creates a token through its own port, logs in with it, and shows
the token as settings for other clients. Then it serves until Ctrl-C.
"""

from __future__ import annotations

import asyncio
import logging
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from kafka_dt import app
from kafka_dt.cli import embedded
from kafka_dt.cli.errors import one_line
from kafka_dt.client import ClientKind, DelegationToken, SecurityProtocol, TokenClient, TokenClientError, settings
from kafka_dt.config import ConfigError, Endpoint, from_properties
from kafka_dt.log import set_up_logging
from kafka_dt.processes.supervisor import WorkerFailed
from kafka_dt.zookeeper.embedded.server import EmbeddedZooKeeper
from kafka_dt.zookeeper.errors import EmbeddedZooKeeperError


@click.command(short_help="Start ZooKeeper and kafka-dt, and create a first token.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9092,
    show_default=True,
    help="The port of kafka-dt; 0 means any free port.",
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=embedded.default_data_dir,
    help="The directory for ZooKeeper's data and the generated secrets.  [default: the user's data directory]",
)
@click.option(
    "--workers",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="How many processes serve; 0 means one for each core.",
)
def run(port: int, data_dir: Path, workers: int) -> None:
    """Start ZooKeeper and kafka-dt, create a token and log in with it."""
    set_up_logging("supervisor", logging.WARNING)
    console = Console(highlight=False)
    with one_line(ConfigError, WorkerFailed, EmbeddedZooKeeperError, TokenClientError, OSError):
        node = embedded.prepare(data_dir)
        zookeeper = EmbeddedZooKeeper(node.zookeeper_dir, login=node.zookeeper_login)
        with console.status("Starting ZooKeeper"):
            zookeeper.start()
        try:
            app.run(_serve(node, port, workers, zookeeper, console))
            console.print(f"kafka-dt has stopped; the tokens stay in {node.data_dir}.", soft_wrap=True, markup=False)
        except ConfigError as error:
            if error.key == "listeners":
                raise click.ClickException(f"{error.reason}; choose another port with --port, 0 is any") from None
            raise
        finally:
            zookeeper.stop()


async def _serve(
    node: embedded.EmbeddedNode, port: int, workers: int, zookeeper: EmbeddedZooKeeper, console: Console
) -> None:
    """Serve until told to stop, until ZooKeeper ends, or until the first token fails."""
    properties = node.server_properties(port, zookeeper.address) | {"kafka.dt.workers": str(workers)}
    node.write_configuration(properties)
    ready: asyncio.Future[Sequence[Endpoint]] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(app.serve(from_properties(properties), ready.set_result, logging.WARNING))
    zookeeper_ended = asyncio.create_task(zookeeper.exited())
    ends = (serving, zookeeper_ended)
    try:
        with console.status("Starting kafka-dt"):
            starts: set[asyncio.Future[Any]] = {ready, *ends}
            await asyncio.wait(starts, return_when=asyncio.FIRST_COMPLETED)
        if ready.done():
            address = f"{ready.result()[0].host}:{ready.result()[0].port}"
            _show(console, node, zookeeper, address, await _first_token(node, address))
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if zookeeper_ended.done() and not serving.done():
            raise WorkerFailed(f"ZooKeeper ended by itself; its log is {zookeeper.log}")
    finally:
        for task in ends:
            task.cancel()
        await asyncio.wait(ends)
    if not serving.cancelled():
        serving.result()


async def _first_token(node: embedded.EmbeddedNode, address: str) -> DelegationToken:
    """Create a token as the user, and log in with it."""
    node.write_client_properties(address)
    async with TokenClient.from_config(node.login_properties(address)) as client:
        token = await client.create()
    async with TokenClient.from_config(_settings(token, ClientKind.JAVA, address)):
        return token


def _show(
    console: Console, node: embedded.EmbeddedNode, zookeeper: EmbeddedZooKeeper, address: str, token: DelegationToken
) -> None:
    """Print the addresses, the user, the token, and the token as settings to paste."""
    facts = {
        "Kafka clients": f"{address} (SASL_PLAINTEXT)",
        "ZooKeeper": zookeeper.address,
        "User": f"{embedded.USER}, password {node.password} (PLAIN)",
        "Its settings": str(node.client_properties),
        "Node settings": f"{node.configuration} (kafka-dt keys list --config ...)",
        "Token": f"{token.token_id}, owner {token.owner}: created and logged in with",
    }
    console.rule("[bold]kafka-dt is ready[/bold]")
    for name, fact in facts.items():
        console.print(f"[bold]{name:14}[/bold] {fact}", soft_wrap=True)
    for title, kind, line in _PASTE:
        console.print()
        console.rule(f"The token for {title}", align="left")
        for key, value in _settings(token, kind, address).items():
            console.print(line.format(key=key, value=value), soft_wrap=True, markup=False)
    console.print()
    console.rule("Make another one", align="left")
    login = shlex.quote(str(node.client_properties))
    console.print(
        f"{sys.argv[0]} token create --bootstrap-server {address} --command-config {login}",
        soft_wrap=True,
        markup=False,
    )
    console.print("\nCtrl-C stops it; the tokens stay.")


def _settings(token: DelegationToken, kind: ClientKind, address: str) -> Mapping[str, str]:
    return settings(token, kind, bootstrap_servers=address, security_protocol=SecurityProtocol.SASL_PLAINTEXT)


_PASTE: Final = (
    ("the Java tools (token.properties)", ClientKind.JAVA, "{key}={value}"),
    ("kcat (kcat.conf)", ClientKind.CONFLUENT, "{key}={value}"),
    ("aiokafka (keyword arguments)", ClientKind.AIOKAFKA, "{key}={value!r},"),
)
"""What to paste where: a title, whose settings, and how a setting is written there."""
