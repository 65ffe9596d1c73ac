"""`kafka-dt user create|delete|list|passwd`: the SCRAM users of a cluster, at a node or a broker.

What kafka-configs.sh does with `--entity-type users`. A password never stands on a command line, and never leaves this
machine: the server gets the salted password of each mechanism.

- table: for people; a row for each user, in the order of their names.
- json: for programs, stable. `list` prints an array of objects with `name` and `credentials`, a list of `mechanism` and
  `iterations`.

Source: KIP-554; kafka.admin.ConfigCommand.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click
from rich.text import Text

from kafka_dt.cli import SuggestingGroup
from kafka_dt.cli.options import ask, config_option, example, secret_of
from kafka_dt.cli.output import Output, output_option, printable, write_json
from kafka_dt.cli.tables import console, table
from kafka_dt.client import AdminClient
from kafka_dt.client.admin_client import DEFAULT_ITERATIONS, MAX_ITERATIONS
from kafka_dt_protocol.sasl import ScramMechanism

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_dt.client import ClientConfig

_MIN_ITERATIONS: Final = ScramMechanism.SHA_256.min_iterations

_mechanism_option: Final = click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    type=click.Choice([mechanism.value for mechanism in ScramMechanism], case_sensitive=False),
    callback=lambda _context, _parameter, names: tuple(map(ScramMechanism, names)),
    help="A mechanism of the user; may be given several times. [default: all that apply]",
)
_password_option: Final = click.option(
    "--password",
    metavar="file:F|env:N",
    help="The file or the environment variable that holds the password. [default: the command asks for it]",
)
_iterations_option: Final = click.option(
    "--iterations",
    type=click.IntRange(_MIN_ITERATIONS, MAX_ITERATIONS),
    default=DEFAULT_ITERATIONS,
    show_default=True,
    help="The rounds of hashing. More rounds make a stolen credential harder to use, and each login slower.",
)


@click.group(cls=SuggestingGroup)
def user() -> None:
    """Create, change, list and delete SCRAM users."""


@example("kafka-dt user create alice", "kafka-dt user create etl --password file:/run/secrets/etl")
@user.command()
@click.argument("name")
@config_option
@_password_option
@_mechanism_option
@_iterations_option
def create(
    *,
    name: str,
    config: ClientConfig,
    password: str | None,
    mechanisms: Sequence[ScramMechanism],
    iterations: int,
) -> None:
    """Create a SCRAM user, for SCRAM-SHA-256 and SCRAM-SHA-512 unless told otherwise."""
    secret = _password(password)

    async def create_new(client: AdminClient) -> None:
        if name in await client.scram_users([name]):
            raise click.ClickException(f"user {name!r} exists; kafka-dt user passwd sets its password")
        await client.set_password(name, secret, mechanisms or tuple(ScramMechanism), iterations)

    ask(AdminClient(config), create_new)
    click.echo(f"created {printable(name)}")


@example("kafka-dt user passwd etl --password env:NEW_PASSWORD")
@user.command()
@click.argument("name")
@config_option
@_password_option
@_mechanism_option
@_iterations_option
def passwd(
    *,
    name: str,
    config: ClientConfig,
    password: str | None,
    mechanisms: Sequence[ScramMechanism],
    iterations: int,
) -> None:
    """Set the password of a SCRAM user, for all mechanisms that it has unless told otherwise.

    Sessions that are open stay open. A client needs the new password when it logs in the next time.
    """
    secret = _password(password)

    async def change(client: AdminClient) -> None:
        held = await _credentials(client, name)
        await client.set_password(name, secret, mechanisms or tuple(held), iterations)

    ask(AdminClient(config), change)
    click.echo(f"changed the password of {printable(name)}")


@example("kafka-dt user delete etl", "kafka-dt user delete etl --mechanism SCRAM-SHA-256")
@user.command()
@click.argument("name")
@config_option
@_mechanism_option
def delete(*, name: str, config: ClientConfig, mechanisms: Sequence[ScramMechanism]) -> None:
    """Delete a SCRAM user, or some of its mechanisms.

    The user's delegation tokens stay: end them with `kafka-dt token revoke --owner`. Its ACLs stay, too.
    """

    async def remove(client: AdminClient) -> None:
        await client.delete_user(name, mechanisms or tuple(await _credentials(client, name)))

    ask(AdminClient(config), remove)
    click.echo(f"deleted {', '.join(mechanisms)} of {printable(name)}" if mechanisms else f"deleted {printable(name)}")


@example("kafka-dt user list --output json")
@user.command("list")
@config_option
@output_option()
def list_users(*, config: ClientConfig, output: Output) -> None:
    """List the SCRAM users with their mechanisms."""
    users = sorted(ask(AdminClient(config), lambda client: client.scram_users()).items())
    if output is Output.JSON:
        write_json([_fields(name, held) for name, held in users], indent=2)
    elif users:
        made = table("NAME", *ScramMechanism, numbers=tuple(ScramMechanism))
        for name, held in users:
            iterations = (str(held[mechanism]) if mechanism in held else "-" for mechanism in ScramMechanism)
            made.add_row(Text(printable(name)), *iterations)
        console().print(made)
    else:
        click.echo("no SCRAM users")


def _fields(name: str, held: Mapping[ScramMechanism, int]) -> Mapping[str, object]:
    credentials = [{"mechanism": mechanism.value, "iterations": count} for mechanism, count in held.items()]
    return {"name": name, "credentials": credentials}


async def _credentials(client: AdminClient, name: str) -> Mapping[ScramMechanism, int]:
    """Give what a user has."""
    held = (await client.scram_users([name])).get(name)
    if held is None:
        raise click.ClickException(f"there is no SCRAM user {name!r}; kafka-dt user create makes one")
    return held


def _password(given: str | None) -> str:
    """Read the password from where the option says, or ask for it twice."""
    if given is not None:
        password = secret_of("--password", given)
    elif sys.stdin.isatty():
        password = str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    else:
        raise click.UsageError("Missing option '--password' (file:F or env:N): there is no terminal to ask on.")
    if not password:
        raise click.UsageError("The password is empty.")
    return password
