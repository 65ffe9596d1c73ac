"""The options that commands share, and the question before a change that cannot be undone.

@click.command()
@config_option
def command(*, config: ClientConfig) -> None:
    tokens = ask(TokenClient(config), lambda client: client.describe())

Source: org.apache.kafka.tools.DelegationTokenCommand.
"""

from __future__ import annotations

import asyncio
import functools
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from kafka_dt.cli.contexts import chosen, named
from kafka_dt.client import ClientConfig, ClientConfigError, LoginMissing, parse_addresses
from kafka_dt.client.session_client import SessionClient
from kafka_dt.config.options.option import ConfigError, resolve_secret
from kafka_dt.properties_file import MALFORMED, parse
from kafka_dt.tokens import InvalidPrincipal, Principal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

C = TypeVar("C", bound=SessionClient)
T = TypeVar("T")


def example(*lines: str) -> Callable[[click.Command], click.Command]:
    """Add examples to the end of a command's help, a line each."""

    def decorate(command: click.Command) -> click.Command:
        # click's mark: these lines are not joined
        command.epilog = "\b\n" + "\n".join((f"Example{'s'[: len(lines) > 1]}:", *(f"  {line}" for line in lines)))
        return command

    return decorate


def together(*options: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make one decorator of several options; the help lists them in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


class PrincipalType(click.ParamType[str]):
    """A principal, as it stands in a token."""

    name = "principal"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the principal as a text."""
        try:
            return str(Principal.parse(value))
        except InvalidPrincipal:
            self.fail(f"{value!r} has no type: write User:{value}", param, ctx)


class _ExistingFile(click.Path[Path]):
    """A file that is there; click says of one in a folder that the user may not enter that it does not exist."""

    def __init__(self, *, allow_dash: bool = False) -> None:
        super().__init__(exists=True, dir_okay=False, allow_dash=allow_dash, path_type=Path)

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Path:
        try:
            Path(value).stat()
        except PermissionError as error:
            self.fail(f"{click.format_filename(value)}: {error.strerror}", param, ctx)
        except OSError:
            pass  # click tells
        return super().convert(value, param, ctx)


EXISTING_FILE: Final = _ExistingFile()
"""The type of an option for a file that has to be there."""


def _each_has_a_value(
    _context: click.Context, _parameter: click.Parameter, overrides: tuple[str, ...]
) -> tuple[str, ...]:
    for override in overrides:
        key, equals, _ = override.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{key.strip()!r} is not of the form KEY=VALUE")
    return overrides


def _are_addresses(_context: click.Context, _parameter: click.Parameter, servers: str | None) -> str | None:
    try:
        if servers is not None and not parse_addresses(servers):
            raise click.BadParameter("it names no server")
    except ClientConfigError as error:
        raise click.BadParameter(error.reason) from None
    return servers


def bootstrap_server_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--bootstrap-server`, whose help is `text`: the argument `bootstrap_server`."""
    return click.option("--bootstrap-server", metavar="HOST:PORT[,...]", callback=_are_addresses, help=text)


_override_option: Final = click.option(
    "--override",
    "overrides",
    multiple=True,
    callback=_each_has_a_value,
    metavar="KEY=VALUE",
    help="A setting that replaces the one in the file; may be given several times. Give a secret as KEY=file:F or "
    "KEY=env:N: other users of this machine can see a command line.",
)


def config_file_option(text: str, *, required: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--config`, whose help is `text`: the argument `config`."""
    return click.option(
        "--config",
        type=EXISTING_FILE,
        metavar="FILE",
        required=required,
        help=text,
    )


def settings_file_option(text: str, *, required: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--config`, whose help is `text`, and `--override`: the arguments `config` and `overrides`."""
    return together(config_file_option(text, required=required), _override_option)


connection_options: Final = together(
    bootstrap_server_option(
        "Servers to connect to; the command uses the first that answers. [default: bootstrap.servers in FILE; "
        "without both options, those of the context]"
    ),
    click.option(
        "--command-config",
        type=_ExistingFile(allow_dash=True),
        metavar="FILE",
        help="Kafka client properties (security.protocol, sasl.mechanism, sasl.jaas.config, ssl.*).",
    ),
)
"""Adds `--bootstrap-server` and `--command-config`: the arguments `bootstrap_server` and `command_config`."""


def config_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add `connection_options`, and make the client's configuration of them: the argument `config`."""

    @functools.wraps(command)
    def with_config(*, bootstrap_server: str | None, command_config: Path | None, **others: object) -> None:
        command(config=client_config(bootstrap_server, command_config), **others)

    decorated: Callable[..., None] = connection_options(with_config)
    return decorated


def client_config(bootstrap_server: str | None, command_config: Path | None) -> ClientConfig:
    """Make a client's configuration of `connection_options`, or of a context where neither option is given.

    Raises:
        ClientConfigError: they cannot be used.
        click.UsageError: no server is named, or a context beside the options.
    """
    if bootstrap_server is None and command_config is None:
        if context := chosen():
            bootstrap_server = context.bootstrap_server
            command_config = Path(context.command_config) if context.command_config else None
    elif named():
        raise click.UsageError("Give --context, or --bootstrap-server and --command-config, not both.")
    properties = {} if command_config is None else read_properties(command_config)
    if bootstrap_server is not None:
        properties["bootstrap.servers"] = bootstrap_server
    if not properties.get("bootstrap.servers"):
        raise click.UsageError(
            "Missing option '--bootstrap-server' (and no bootstrap.servers in --command-config, and no context)."
        )
    return ClientConfig.from_properties(properties)


yes_option: Final = click.option(
    "--yes", "confirmed", is_flag=True, help="Do not ask; a script without a terminal needs it."
)
"""Adds `--yes`: the argument `confirmed`."""


def secret_of(option: str, given: str) -> str:
    """Read a secret that an option gives as `file:F` or `env:N`; a file's last line end is no part of it.

    Raises:
        click.UsageError: it is neither form, or there is no such file or variable.
    """
    if not given.startswith(("file:", "env:")):
        raise click.UsageError(f"{option} takes file:F or env:N: every user of this machine can read a command line.")
    try:
        return resolve_secret(option, given).value
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def ask(client: C, request: Callable[[C], Awaitable[T]]) -> T:
    """Connect a client, have it send a request, and return what came of it.

    Raises:
        TokenClientError: it cannot connect, or was refused.
    """

    async def connect_and_ask() -> T:
        async with client:
            return await request(client)

    with login_option_named():
        return asyncio.run(connect_and_ask())


@contextmanager
def login_option_named() -> Iterator[None]:
    """Name the option that brings a login where a client has none."""
    try:
        yield
    except LoginMissing as error:
        raise click.ClickException(f"{error} in the file of --command-config") from error


def user_data_dir() -> Path:
    """Say where kafka-dt keeps a user's data (XDG base directories)."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "kafka-dt"


def make_user_data_dir() -> Path:
    """Make the directory of `user_data_dir` if it is missing, for the user alone, and return it.

    `kafka-dt run` keeps secrets in it, and refuses a directory that other users can open.
    """
    directory = user_data_dir()
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    return directory


def confirm(question: str, advice: str) -> None:
    """Ask before a command deletes what it was not given by name; the advice names the option for a script.

    A command deletes at once what its arguments name, as Kafka's tools do: ids, a user, the ACLs of a principal.

    Raises:
        click.UsageError: there is no terminal to ask on.
        click.Abort: the user says no.
    """
    if not sys.stdin.isatty():
        raise click.UsageError(advice)
    click.confirm(question, abort=True, err=True)


def read_properties(path: Path) -> dict[str, str]:
    """Read a file in Java's properties form.

    Raises:
        ClientConfigError: it cannot be read; the text shows nothing of it.
    """
    try:
        with click.open_file(str(path), "rb") as file:
            return parse(file.read())
    except (OSError, ValueError) as error:
        # Not the escape: it may be of a password.
        reason = error.strerror if isinstance(error, OSError) else MALFORMED
        raise ClientConfigError(str(path), f"cannot be read: {reason}") from None
