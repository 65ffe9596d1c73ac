"""`kafka-dt token create|renew|expire|describe`: the flags of kafka-delegation-tokens.sh, as sub-commands.

A token is printed in one of four forms:

- table: for people. A line for each field and an empty one between tokens, for a row of a whole token is wider than
  any terminal. Instants in ISO 8601 UTC; whole token ids and HMACs, however narrow the terminal, so that they can be
  copied; bold only on a terminal; control characters (a principal may hold some) are escaped.
- json: for programs, stable. A token is the object that `token list` prints (`ListedToken`) with `hmac` (base64).
  create prints one such object, describe `{"tokens": [...]}`, renew and expire `{"expiry_timestamp": ...}`. The names
  of 0.1.0 stand beside these for its scripts: `tokenId`, `tokenRequester`, `issueTimestamp`, `expiryTimestamp` and
  `maxTimestamp` (docs/decisions/0056-names-of-a-token-in-json.md).
- properties: Java client properties, ready to paste; of several tokens each below a comment with its id, and with an
  empty line between. A client takes one of them: of all in one file the last would win.
- jaas: the value of `sasl.jaas.config`, one line a token.

Source: org.apache.kafka.tools.DelegationTokenCommand.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Final, TextIO

import click
import javaproperties
from rich.text import Text

from kafka_dt.cli.options import PrincipalType, ask, config_option, example, together
from kafka_dt.cli.output import Output, output_option, printable, write_json
from kafka_dt.cli.tables import iso_utc, messages
from kafka_dt.cli.token.listed import ListedToken
from kafka_dt.client import (
    ClientConfig,
    DelegationToken,
    InvalidArgument,
    TokenClient,
    hmac_from_base64,
    jaas_line,
    settings,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HMAC_VARIABLE: Final = "KAFKA_DT_HMAC"


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
_hmac_options: Final = together(
    click.option(
        "--hmac",
        metavar="BASE64",
        help="The token's HMAC in base64, as create shows it. Other users of this machine can see a command line: to "
        "keep the HMAC secret, use --hmac-file, or neither option and the environment variable "
        f"{_HMAC_VARIABLE}.",
    ),
    click.option(
        "--hmac-file",
        type=click.File("r", encoding="utf-8"),
        metavar="FILE",
        help="A file with the HMAC in base64; - is the standard input.",
    ),
)
_token_output: Final = output_option(*Output, help="The form of the result. Every form holds the HMAC.")


@example(
    "kafka-dt token create --renewer-principal User:bob --max-life-time-period 86400000",
    "kafka-dt token create --owner-principal User:alice --output properties > alice.properties",
)
@click.command()
@config_option
@click.option(
    "--max-life-time-period",
    type=_MILLISECONDS,
    default=-1,
    show_default=True,
    metavar="MS",
    help="The token's maximum lifetime, in milliseconds; 0 or less means the server's maximum.",
)
@click.option(
    "--owner-principal",
    type=PrincipalType(),
    metavar="User:NAME",
    help="The owner of the token. [default: the user that logs in]",
)
@click.option(
    "--renewer-principal",
    "renewers",
    multiple=True,
    type=PrincipalType(),
    metavar="User:NAME",
    help="A principal that may also renew and expire the token; may be given several times.",
)
@_token_output
def create(
    *,
    config: ClientConfig,
    max_life_time_period: int,
    owner_principal: str | None,
    renewers: tuple[str, ...],
    output: Output,
) -> None:
    """Create a token and print it with its HMAC, the secret."""
    made = ask(TokenClient(config), lambda client: client.create(owner_principal, renewers, max_life_time_period))
    try:
        write_token(made, output, config)
    except OSError as error:
        raise click.ClickException(
            f"the token {printable(made.token_id)} is made, but the output cannot be written: {error.strerror}; "
            "kafka-dt token describe prints it again"
        ) from error


@example("kafka-dt token renew --hmac-file hmac.txt --renew-time-period 3600000")
@click.command()
@config_option
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
@output_option()
def renew(
    *,
    config: ClientConfig,
    hmac: str | None,
    hmac_file: TextIO | None,
    renew_time_period: int,
    output: Output,
) -> None:
    """Renew a token: set a new expiry, at most its maximum lifetime."""
    secret = _hmac(hmac, hmac_file)
    _write_expiry(ask(TokenClient(config), lambda client: client.renew(secret, renew_time_period)), output)


@example("kafka-dt token expire --hmac-file -")
@click.command()
@config_option
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
@output_option()
def expire(
    *,
    config: ClientConfig,
    hmac: str | None,
    hmac_file: TextIO | None,
    expiry_time_period: int,
    output: Output,
) -> None:
    """Expire a token: delete it at once, or set an earlier expiry."""
    secret = _hmac(hmac, hmac_file)
    expiry_timestamp_ms = ask(TokenClient(config), lambda client: client.expire(secret, expiry_time_period))
    _write_expiry(expiry_timestamp_ms, output, deleted=expiry_time_period < 0)


@example("kafka-dt token describe --owner-principal User:alice --output json")
@click.command()
@config_option
@click.option(
    "--owner-principal",
    "owners",
    multiple=True,
    type=PrincipalType(),
    metavar="User:NAME",
    help="An owner whose tokens to print; may be given several times. [default: all tokens that you may see]",
)
@_token_output
def describe(*, config: ClientConfig, owners: tuple[str, ...], output: Output) -> None:
    """Print the tokens that you may see, with their HMACs."""
    tokens = ask(TokenClient(config), lambda client: client.describe(owners or None))
    write_tokens(tokens, output, config)


def write_token(token: DelegationToken, output: Output, config: ClientConfig) -> None:
    """Print a token that was just made.

    config: of the client that made it; its servers, security protocol and mechanism go into the properties
    """
    match output:
        case Output.TABLE:
            _print(_block(token))
        case Output.JSON:
            write_json(_fields(token), indent=2)
        case _:
            _write_settings([token], output, config)


def write_tokens(tokens: Sequence[DelegationToken], output: Output, config: ClientConfig) -> None:
    """Print tokens that were described; `config` as in `write_token`."""
    match output:
        case Output.TABLE:
            _print(Text("\n\n").join(map(_block, tokens)) if tokens else Text("no tokens"))
        case Output.JSON:
            write_json({"tokens": [_fields(token) for token in tokens]}, indent=2)
        case _:
            _write_settings(tokens, output, config)


def _write_expiry(expiry_timestamp_ms: int, output: Output, *, deleted: bool = False) -> None:
    """Print the new expiry of a token, or, for people, that it was deleted at once."""
    if output is Output.JSON:
        write_json({"expiry_timestamp": expiry_timestamp_ms, "expiryTimestamp": expiry_timestamp_ms}, indent=2)
    elif deleted:
        _print(Text("deleted"))
    else:
        _print(Text(f"EXPIRES  {iso_utc(expiry_timestamp_ms)}"))


def _block(token: DelegationToken) -> Text:
    cells = {**ListedToken.of(token).cells, "HMAC": token.hmac_base64}
    lines = (Text.assemble((f"{name:9}", "bold"), f"  {cell}") for name, cell in cells.items())
    return Text("\n").join(lines)


def _fields(token: DelegationToken) -> Mapping[str, object]:
    of_0_1_0 = {
        "tokenId": token.token_id,
        "tokenRequester": token.requester,
        "issueTimestamp": token.issue_timestamp_ms,
        "expiryTimestamp": token.expiry_timestamp_ms,
        "maxTimestamp": token.max_timestamp_ms,
    }
    return {**asdict(ListedToken.of(token)), "hmac": token.hmac_base64, **of_0_1_0}


def _write_settings(tokens: Sequence[DelegationToken], output: Output, config: ClientConfig) -> None:
    if output is Output.JAAS:
        click.echo("".join(f"{jaas_line(token)}\n" for token in tokens), nl=False)
        return
    pieces = [javaproperties.dumps(_properties(token, config), timestamp=None) for token in tokens]
    if len(tokens) > 1:
        pieces = [f"# {printable(token.token_id)}\n{piece}" for token, piece in zip(tokens, pieces, strict=True)]
    click.echo("\n".join(pieces), nl=False)


def _properties(token: DelegationToken, config: ClientConfig) -> Mapping[str, str]:
    made: dict[str, object] = {"bootstrap_servers": ",".join(str(server) for server in config.bootstrap_servers)}
    if config.security_protocol.uses_sasl:
        made["security_protocol"] = config.security_protocol
    if config.login and config.login.mechanism.startswith("SCRAM-"):
        made["mechanism"] = config.login.mechanism
    return settings(token, "java", **made)  # type: ignore[arg-type]


def _print(what: Text) -> None:
    # Without soft_wrap rich would cut lines at the terminal's edge, which breaks copying.
    messages().print(what, soft_wrap=True)


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
