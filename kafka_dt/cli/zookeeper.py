"""`kafka-dt zookeeper`: the embedded ZooKeeper alone."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import click

from kafka_dt.cli.errors import one_line
from kafka_dt.zookeeper.embedded import EmbeddedZooKeeper
from kafka_dt.zookeeper.errors import EmbeddedZooKeeperError


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=2181, show_default=True, help="0 is any free port.")
@click.option(
    "--data-dir", type=click.Path(path_type=Path, file_okay=False), required=True, help="Where it keeps its data."
)
@click.option(
    "--host",
    type=click.Choice(["127.0.0.1", "0.0.0.0"]),  # noqa: S104 - for those who ask, such as a container
    default="127.0.0.1",
    show_default=True,
    help="Where it listens. It asks nobody for a password: 0.0.0.0 is for a network that is its own.",
)
def zookeeper(port: int, data_dir: Path, host: str) -> None:
    """Run a ZooKeeper server until SIGTERM or Ctrl-C."""
    server = EmbeddedZooKeeper(data_dir, port=port, properties={"clientPortAddress": host})
    with one_line(EmbeddedZooKeeperError), server:
        click.echo(f"ZooKeeper is ready: {server.address}")
        asyncio.run(_until_told(server))
        if not server.running:
            raise click.ClickException(f"ZooKeeper ended by itself; its log is {server.log}")


async def _until_told(server: EmbeddedZooKeeper) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    ends = [asyncio.ensure_future(told.wait()), asyncio.ensure_future(server.exited())]
    _, pending = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
