"""The options of the commands that are clients of a server: the servers, and the login.

Source: org.apache.kafka.tools.DelegationTokenCommand.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
import javaproperties

from kafka_dt.cli.errors import one_line
from kafka_dt.client import ClientConfig, ClientConfigError, LoginMissing, TokenClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def connection_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--bootstrap-server` and `--command-config`: the arguments `bootstrap_server` and `command_config`."""
    for option in (
        click.option(
            "--command-config",
            type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
            metavar="FILE",
            help="Kafka client properties (security.protocol, sasl.mechanism, sasl.jaas.config, ssl.*).",
        ),
        click.option(
            "--bootstrap-server",
            metavar="HOST:PORT[,...]",
            help="Servers to connect to; the command uses the first that answers. [default: bootstrap.servers in FILE]",
        ),
    ):
        command = option(command)
    return command


def client_config(bootstrap_server: str | None, command_config: Path | None) -> ClientConfig:
    """Make a client's configuration of these options.

    Raises:
        ClientConfigError: they cannot be used.
    """
    properties = {} if command_config is None else _read_properties(command_config)
    if bootstrap_server is not None:
        properties["bootstrap.servers"] = bootstrap_server
    if not properties.get("bootstrap.servers"):
        raise click.UsageError("Missing option '--bootstrap-server' (and no bootstrap.servers in --command-config).")
    return ClientConfig.from_properties(properties)


@contextmanager
def client_errors() -> Iterator[None]:
    """Turn the client's errors into one line and exit status 1; a missing login names the option that brings one."""
    with one_line(TokenClientError):
        try:
            yield
        except LoginMissing as error:
            raise click.ClickException(f"{error} in the file of --command-config") from error


def _read_properties(path: Path) -> dict[str, str]:
    try:
        with click.open_file(str(path), encoding="utf-8") as file:
            properties: dict[str, str] = javaproperties.loads(file.read())
    except (OSError, ValueError) as error:
        # Neither the line nor the codec's bytes: they may be a password.
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text in Java's properties form"
        raise ClientConfigError(str(path), f"cannot be read: {reason}") from None
    return properties
