"""`kafka-dt zookeeper`: the embedded ZooKeeper alone."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import click

from kafka_dt.cli.options import example, secret_of
from kafka_dt.config import ConfigError
from kafka_dt.zookeeper.connection.settings import LoginScheme, ZooKeeperLogin
from kafka_dt.zookeeper.embedded.server import EmbeddedZooKeeper


@example("kafka-dt zookeeper --data-dir /var/lib/zookeeper --login file:/etc/zookeeper.login")
@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=2181,
    show_default=True,
    help="The port to listen on; 0 means any free port.",
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="The directory for its data; only its user may have access (chmod 700).",
)
@click.option(
    "--host",
    type=click.Choice(["127.0.0.1", "0.0.0.0"]),  # noqa: S104 - for those who ask, such as a container
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on. Without --login, use 0.0.0.0 only on a network of ZooKeeper's own.",
)
@click.option(
    "--login",
    metavar="file:F|env:N",
    help="A file or environment variable with `user:password`. ZooKeeper then serves only clients that log in as this "
    "user by SASL DIGEST-MD5 (kafka.dt.zookeeper.sasl.jaas.config). Without it every program that can connect can read "
    "and write everything.",
)
def zookeeper(port: int, data_dir: Path, host: str, login: str | None) -> None:
    """Run a ZooKeeper server until SIGTERM or Ctrl-C."""
    served = None if login is None else _login(login)
    server = EmbeddedZooKeeper(data_dir, port=port, login=served, properties={"clientPortAddress": host})
    with server:
        asyncio.run(_until_told(server))
        if not server.running:
            raise click.ClickException(f"ZooKeeper ended by itself; its log is {server.log}")


def _login(given: str) -> ZooKeeperLogin:
    username, colon, password = secret_of("--login", given).partition(":")
    if not (username and colon and password):
        raise ConfigError("--login", "is not of the form user:password")
    return ZooKeeperLogin(LoginScheme.SASL_DIGEST_MD5, username, password)


async def _until_told(server: EmbeddedZooKeeper) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    click.echo(f"ZooKeeper is ready: {server.address}")
    ends = [asyncio.ensure_future(told.wait()), asyncio.ensure_future(server.exited())]
    _, pending = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
