"""`kafka-dt token create|renew|expire|describe`: the flags of kafka-delegation-tokens.sh, as sub-commands.

`expire-all` is in a module of its own, which needs more of the server than these.

Source: org.apache.kafka.tools.DelegationTokenCommand.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO, TypeVar

import click

from kafka_dt.cli import LazyGroup
from kafka_dt.cli.client_options import client_config, client_errors, connection_options
from kafka_dt.cli.token.output import TokenOutput, write_expiry, write_token, write_tokens
from kafka_dt.client import (
    ClientConfig,
    InvalidArgument,
    TokenClient,
    hmac_from_base64,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")
_HMAC_VARIABLE: Final = "KAFKA_DT_HMAC"
_EXPIRY_OUTPUTS: Final = (TokenOutput.TABLE, TokenOutput.JSON)
_HMAC_HELP: Final = (
    "The token's HMAC in base64, as create shows it. Other users of this machine can see a command line: to keep the "
    f"HMAC secret, use --hmac-file, or neither option and the environment variable {_HMAC_VARIABLE}."
)


class _Milliseconds(click.ParamType[int]):
    """A signed number of 64 bits; click's own range would print its 38 digits into every help."""

    name = "milliseconds"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{value!r} is not a valid integer.", param, ctx)
        if not -(2**63) <= number < 2**63:
            self.fail(f"{value} does not fit 64 bits.", param, ctx)
        return number


_MILLISECONDS: Final = _Milliseconds()


@click.group(cls=LazyGroup, lazy_commands={"expire-all": "kafka_dt.cli.token.expire_all:expire_all"})
def token() -> None:
    """Create, renew, expire and describe delegation tokens."""


def _hmac_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option(
            "--hmac-file",
            type=click.File("r", encoding="utf-8"),
            metavar="FILE",
            help="A file with the HMAC in base64; - is the standard input.",
        ),
        click.option("--hmac", metavar="BASE64", help=_HMAC_HELP),
    ):
        command = option(command)
    return command


def _output_option(*outputs: TokenOutput) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        "--output",
        type=click.Choice([output.value for output in outputs]),
        default=TokenOutput.TABLE.value,
        show_default=True,
        callback=lambda _context, _parameter, value: TokenOutput(value),
        help="The form of the output." + (" Every form holds the HMAC." if TokenOutput.JAAS in outputs else ""),
    )


@token.command()
@connection_options
@click.option(
    "--max-life-time-period",
    type=_MILLISECONDS,
    default=-1,
    show_default=True,
    metavar="MS",
    help="The token's maximum lifetime, in milliseconds; 0 or less means the server's maximum.",
)
@click.option("--owner-principal", metavar="User:NAME", help="The owner of the token. [default: the user that logs in]")
@click.option(
    "--renewer-principal",
    "renewers",
    multiple=True,
    metavar="User:NAME",
    help="A principal that may also renew and expire the token; may be given several times.",
)
@_output_option(*TokenOutput)
def create(
    *,
    bootstrap_server: str | None,
    command_config: Path | None,
    max_life_time_period: int,
    owner_principal: str | None,
    renewers: tuple[str, ...],
    output: TokenOutput,
) -> None:
    """Create a token and print it with its HMAC, the secret."""
    with client_errors():
        config = client_config(bootstrap_server, command_config)
        made = _ask(config, lambda client: client.create(owner_principal, renewers, max_life_time_period))
    write_token(made, output, config)


@token.command()
@connection_options
@_hmac_options
@click.option(
    "--renew-time-period",
    type=_MILLISECONDS,
    default=-1,
    show_default=True,
    metavar="MS",
    help="The time from now to the new expiry, in milliseconds. The new expiry may be earlier than the old one, and is "
    "never beyond the maximum lifetime. A negative period means the server's default.",
)
@_output_option(*_EXPIRY_OUTPUTS)
def renew(
    *,
    bootstrap_server: str | None,
    command_config: Path | None,
    hmac: str | None,
    hmac_file: TextIO | None,
    renew_time_period: int,
    output: TokenOutput,
) -> None:
    """Renew a token: set a new expiry, at most its maximum lifetime."""
    with client_errors():
        secret = _hmac(hmac, hmac_file)
        config = client_config(bootstrap_server, command_config)
        expiry_timestamp_ms = _ask(config, lambda client: client.renew(secret, renew_time_period))
    write_expiry(expiry_timestamp_ms, output)


@token.command()
@connection_options
@_hmac_options
@click.option(
    "--expiry-time-period",
    type=_MILLISECONDS,
    default=-1,
    show_default=True,
    metavar="MS",
    help="The time from now to the expiry, in milliseconds. A negative period deletes the token at once, even if "
    "it has expired.",
)
@_output_option(*_EXPIRY_OUTPUTS)
def expire(
    *,
    bootstrap_server: str | None,
    command_config: Path | None,
    hmac: str | None,
    hmac_file: TextIO | None,
    expiry_time_period: int,
    output: TokenOutput,
) -> None:
    """Expire a token: delete it at once, or set an earlier expiry."""
    with client_errors():
        secret = _hmac(hmac, hmac_file)
        config = client_config(bootstrap_server, command_config)
        expiry_timestamp_ms = _ask(config, lambda client: client.expire(secret, expiry_time_period))
    write_expiry(expiry_timestamp_ms, output, deleted=expiry_time_period < 0)


@token.command()
@connection_options
@click.option(
    "--owner-principal",
    "owners",
    multiple=True,
    metavar="User:NAME",
    help="An owner whose tokens to print; may be given several times. [default: all tokens that you may see]",
)
@_output_option(*TokenOutput)
def describe(
    *, bootstrap_server: str | None, command_config: Path | None, owners: tuple[str, ...], output: TokenOutput
) -> None:
    """Print the tokens that you may see, with their HMACs."""
    with client_errors():
        config = client_config(bootstrap_server, command_config)
        tokens = _ask(config, lambda client: client.describe(owners or None))
    write_tokens(tokens, output, config)


def _ask(config: ClientConfig, request: Callable[[TokenClient], Awaitable[T]]) -> T:
    async def connect_and_ask() -> T:
        async with TokenClient(config) as client:
            return await request(client)

    return asyncio.run(connect_and_ask())


def _hmac(text: str | None, file: TextIO | None) -> bytes:
    if text is not None and file is not None:
        raise click.UsageError("Give --hmac or --hmac-file, not both.")
    source = "--hmac"
    if file is not None:
        source, text = f"--hmac-file {file.name}", _read_hmac(file)
    elif text is None:
        source, text = _HMAC_VARIABLE, os.environ.get(_HMAC_VARIABLE)
    if text is None:
        raise click.UsageError(f"Missing option '--hmac-file', '--hmac' or the variable {_HMAC_VARIABLE}.")
    return hmac_from_base64(text, source)


def _read_hmac(file: TextIO) -> str:
    try:
        return file.read()
    except (OSError, ValueError) as error:
        # Not the codec's words: they hold bytes of the file.
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InvalidArgument(f"--hmac-file {file.name} cannot be read: {reason}") from None
