"""`kafka-dt user create|delete|list|passwd`: the SCRAM users of a cluster, at a node or a broker, or in ZooKeeper.

What kafka-configs.sh does with `--entity-type users`. A password never stands on a command line, and never leaves this
machine: the server gets the salted password of each mechanism. There are two ways in (`cluster_options.py`).

- table: for people; a row for each user, in the order of their names.
- json: for programs, stable. `list` prints an array of objects with `name` and `credentials`, a list of `mechanism` and
  `iterations`. The other commands print one such object: what they made, or what they deleted.

Source: KIP-554; kafka.admin.ConfigCommand.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from kafka_dt.cli import SuggestingGroup
from kafka_dt.cli.administration import administer
from kafka_dt.cli.cluster_options import cluster_options
from kafka_dt.cli.options import example, secret_of
from kafka_dt.cli.output import Output, printable, write_json
from kafka_dt.cli.tables import console, table
from kafka_dt.client.admin_client import DEFAULT_ITERATIONS, MAX_ITERATIONS
from kafka_dt_protocol.sasl import ScramMechanism

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_dt.cli.administration import Administration
    from kafka_dt.cli.cluster_options import ClusterOptions

_MIN_ITERATIONS: Final = ScramMechanism.SHA_256.min_iterations


class _MechanismName(click.Choice[str]):
    """The name of a mechanism in Kafka's letters; small ones will do."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(value.upper(), param, ctx)


_mechanism_option: Final = click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    type=_MechanismName([mechanism.value for mechanism in ScramMechanism]),
    callback=lambda _context, _parameter, names: tuple(dict.fromkeys(map(ScramMechanism, names))),
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
    """Create, change, list and delete SCRAM users.

    With --config a command works on ZooKeeper itself, with the settings of a node, and needs no user that may do so.
    Without it the command asks a node or a broker, as the user that logs in.
    """


@example("kafka-dt user create alice", "kafka-dt user create etl --password file:/run/secrets/etl")
@user.command()
@click.argument("name")
@cluster_options
@_password_option
@_mechanism_option
@_iterations_option
def create(
    *,
    name: str,
    options: ClusterOptions,
    password: str | None,
    mechanisms: Sequence[ScramMechanism],
    iterations: int,
    output: Output,
) -> None:
    """Create a SCRAM user.

    The user can log in with SCRAM-SHA-256 and SCRAM-SHA-512, unless --mechanism chooses one.
    """
    if not name.isascii():
        raise click.UsageError(f"No client can log in as {name!r}: Kafka's SCRAM has names of ASCII only.")
    secret = _password(password)
    chosen = mechanisms or tuple(ScramMechanism)

    async def create_new(admin: Administration) -> None:
        if name in await admin.scram_users([name]):
            raise click.ClickException(f"user {name!r} exists; kafka-dt user passwd sets its password")
        await admin.set_password(name, secret, chosen, iterations)

    administer(options, "user create", create_new)
    _write(f"created {printable(name)}", name, dict.fromkeys(chosen, iterations), output)


@example("kafka-dt user passwd etl --password env:NEW_PASSWORD")
@user.command()
@click.argument("name")
@cluster_options
@_password_option
@_mechanism_option
@_iterations_option
def passwd(
    *,
    name: str,
    options: ClusterOptions,
    password: str | None,
    mechanisms: Sequence[ScramMechanism],
    iterations: int,
    output: Output,
) -> None:
    """Set the password of a SCRAM user.

    The password is set for all mechanisms that the user has, unless --mechanism chooses one. Sessions that are open
    stay open. A client needs the new password when it logs in the next time.
    """
    secret = _password(password)

    async def change(admin: Administration) -> Sequence[ScramMechanism]:
        held = await _credentials(admin, name)
        chosen = mechanisms or tuple(held)
        await admin.set_password(name, secret, chosen, iterations)
        return chosen

    changed = administer(options, "user passwd", change)
    _write(f"changed the password of {printable(name)}", name, dict.fromkeys(changed, iterations), output)


@example("kafka-dt user delete etl", "kafka-dt user delete etl --mechanism SCRAM-SHA-256")
@user.command()
@click.argument("name")
@cluster_options
@_mechanism_option
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@click.option(
    "--yes", is_flag=True, expose_value=False, help="For scripts: the command does not ask without it either."
)
def delete(
    *, name: str, options: ClusterOptions, mechanisms: Sequence[ScramMechanism], dry_run: bool, output: Output
) -> None:
    """Delete a SCRAM user, or some of its mechanisms.

    The user's delegation tokens stay: end them with `kafka-dt token revoke --owner`. Its ACLs stay, too.
    """

    async def remove(admin: Administration) -> Mapping[ScramMechanism, int]:
        held = await _credentials(admin, name)
        if missing := [each for each in mechanisms if each not in held]:
            raise click.ClickException(f"user {name!r} has no {' and no '.join(missing)}, only {', '.join(held)}")
        meant = {each: held[each] for each in mechanisms or held}
        if not dry_run:
            await admin.delete_user(name, meant)
        return meant

    deleted = administer(options, "user delete", remove)
    of_user = f"{', '.join(deleted)} of {printable(name)}" if mechanisms else printable(name)
    _write(f"would delete {of_user}" if dry_run else f"deleted {of_user}", name, deleted, output)


@example("kafka-dt user list --output json", "kafka-dt user list --config server.properties")
@user.command("list")
@cluster_options
def list_users(*, options: ClusterOptions, output: Output) -> None:
    """List the SCRAM users with their mechanisms."""
    users = sorted(administer(options, "user list", lambda admin: admin.scram_users()).items())
    if output is Output.JSON:
        write_json([_fields(name, held) for name, held in users], indent=2)
    elif users:
        made = table("NAME", *ScramMechanism, numbers=tuple(ScramMechanism))
        for name, held in users:
            iterations = (str(held[mechanism]) if mechanism in held else "-" for mechanism in ScramMechanism)
            made.add_row(printable(name), *iterations)
        console().print(made)
    else:
        click.echo("no SCRAM users")


def _write(line: str, name: str, credentials: Mapping[ScramMechanism, int], output: Output) -> None:
    if output is Output.JSON:
        write_json(_fields(name, credentials), indent=2)
    else:
        click.echo(line)


def _fields(name: str, held: Mapping[ScramMechanism, int]) -> Mapping[str, object]:
    credentials = [{"mechanism": mechanism.value, "iterations": count} for mechanism, count in held.items()]
    return {"name": name, "credentials": credentials}


async def _credentials(admin: Administration, name: str) -> Mapping[ScramMechanism, int]:
    """Give what a user has."""
    held = (await admin.scram_users([name])).get(name)
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
    if "\n" in password:
        raise click.UsageError("The password has a line end in it.")
    return password
