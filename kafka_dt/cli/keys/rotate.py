"""`kafka-dt keys rotate`: a new secret key on all nodes, with no login refused in between.

1. The new key goes to the previous keys: every node learns to accept it. Wait until all of them do.
2. It goes to the secret key's file: nodes make new tokens with it. Wait until all of them do.
3. It leaves the previous keys, where the one before it now stands.

At any moment all nodes accept what any of them makes. The files say how far a rotation has come (`files.py`), so
one that was interrupted, or stopped because a node did not learn the key in time, goes on when it is run again.

Source: KIP-48, "Delegation Token Master Key Rotation".
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kafka_dt.cli import Interrupted
from kafka_dt.cli.keys.files import KeyFiles, KeysError, Stage
from kafka_dt.cli.keys.nodes import require_workers, see_to, wait_for_workers, workers_with_tokens
from kafka_dt.cli.node_options import connected, settings_options, waiting_options
from kafka_dt.cli.options import EXISTING_FILE, example
from kafka_dt.cli.output import Output, counted, write_json
from kafka_dt.cli.tables import messages
from kafka_dt.config.secret_keys import split_keys
from kafka_dt.tokens import SecretKey
from kafka_dt.tokens.keyring import SHORT_CHARACTERS
from kafka_dt.zookeeper.stores.cluster import live_brokers

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import Console

    from kafka_dt.cli.keys.nodes import Wanted
    from kafka_dt.config import Settings
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

NEW_KEY_BYTES: Final = 32
_GOES_ON: Final = "; it goes on where it stopped"


@example("kafka-dt keys rotate --config server.properties")
@click.command()
@settings_options()
@click.option(
    "--new-key-file",
    type=EXISTING_FILE,
    metavar="FILE",
    help="A file with the new key. [default: a random key]",
)
@waiting_options
@click.option("--prepare", is_flag=True, help="Only let nodes accept the new key. Run it again to wait until all do.")
@click.option("--activate", is_flag=True, help="Only make the prepared key the current one, when all nodes accept it.")
def rotate(
    *,
    settings: Settings,
    output: Output,
    new_key_file: Path | None,
    timeout_s: float,
    no_nodes: bool,
    prepare: bool,
    activate: bool,
) -> None:
    """Give all nodes a new secret key, without a refused login.

    Tokens that older keys made keep working until they expire. Both settings must be files:
    delegation.token.secret.key and kafka.dt.secret.keys.previous. If nodes do not share these files: run --prepare and
    copy the previous keys to the other machines, then run --activate and copy the secret key.
    """
    if prepare and activate:
        raise click.UsageError("--prepare and --activate are two steps: say one of them, or none for the whole way")
    until = Stage.PREPARED if prepare else Stage.ACTIVATED if activate else Stage.IDLE
    files = KeyFiles(settings)
    given = None if new_key_file is None else _read_key(new_key_file)
    console = messages(stderr=True)

    async def run() -> Rotated:
        async with connected(settings) as client:
            if not no_nodes:
                await require_workers(client)
            return await Rotation(client, files, console, timeout_s).run(given, until)

    try:
        with files.locked():
            rotated = asyncio.run(run())
    except KeyboardInterrupt:
        raise Interrupted("interrupted; a rotation that has begun goes on when the command is run again") from None
    _write(rotated, output)


@dataclass(frozen=True, slots=True)
class Rotated:
    """What a rotation has come to."""

    stage: Stage
    """IDLE when it is done."""
    key_id: str
    """Of the new key."""
    workers: int
    """How many live workers have it, as far as that stage goes."""
    lagging: tuple[str, ...] = ()
    """Those that do not."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """One run of the command; the console hears how it goes, and each step waits for so long at most."""

    client: ZooKeeperClient
    files: KeyFiles
    console: Console
    timeout_s: float

    async def run(self, given: str | None, until: Stage) -> Rotated:
        """Go as far as is wanted; IDLE is the end. No given key means a random one, or the one that was prepared.

        Raises:
            KeysError: a node is not as it should be in time, or the key cannot be taken.
            ConfigError: a file cannot be used.
            OSError: a file cannot be written.
            ZooKeeperError: ZooKeeper cannot be asked.
        """
        was_prepared = self.files.read().stage is Stage.PREPARED
        new = await self._prepared(given, until)
        if self.files.read().stage is Stage.PREPARED:
            if until is Stage.PREPARED:
                if was_prepared:
                    return Rotated(Stage.PREPARED, new.id, await self._accepted(new))
                return await self._as_it_is(Stage.PREPARED, new, lambda state: new.id in state.keys)
            await self._activate(new)
        if until is Stage.ACTIVATED:
            return await self._as_it_is(Stage.ACTIVATED, new, lambda state: state.current_key == new.id)
        return await self._finish(new)

    async def _prepared(self, given: str | None, until: Stage) -> SecretKey:
        """Return the key that a rotation is about, which is begun if there is none."""
        keys = self.files.read()
        wanted = None if given is None else SecretKey(given)
        if keys.stage is Stage.ACTIVATED and until is Stage.PREPARED:
            raise KeysError(
                f"the rotation to the key {keys.current.id} is not finished: run the command without --prepare"
            )
        if keys.stage is not Stage.IDLE:
            new = keys.previous[0]
            if wanted not in (None, new):
                raise KeysError(f"a rotation to the key {new.id} is under way: finish it first, without --new-key-file")
            self.console.print(f"Going on with the rotation to the key {new.id}")
            return new
        if wanted == keys.current:
            raise KeysError(f"the new key is the current one already, {keys.current.id}: nothing is changed")
        if until is Stage.ACTIVATED:
            raise KeysError("no key is prepared: run the command with --prepare first")
        if wanted in keys.previous:
            raise KeysError("the new key is one of the previous keys already: take another one")
        await self._agree(keys.current)
        text = given or secrets.token_urlsafe(NEW_KEY_BYTES)
        self.files.prepare(text)
        return SecretKey(text)

    async def _agree(self, current: SecretKey) -> None:
        """Begin only where all nodes make tokens with the key of these files."""
        with self._status("Waiting until all nodes agree on the current key"):
            await self._wait(
                lambda state: state.current_key == current.id,
                f"tokens are made with another key than that of {self.files.current}, {current.id}, by",
                "give all nodes the same key first",
            )

    async def _accepted(self, new: SecretKey) -> int:
        """Wait until all workers accept a key; returns how many there are."""
        with self._status(f"Waiting until all nodes accept the key {new.id}"):
            return await self._wait(
                lambda state: new.id in state.keys,
                f"the key {new.id} is not accepted by",
                see_to(self.files.previous, _GOES_ON),
            )

    async def _activate(self, new: SecretKey) -> None:
        workers = await self._accepted(new)
        self.console.print(f"1/3  The key {new.id} is accepted by {counted(workers, 'worker')}")
        if brokers := await live_brokers(self.client):
            self.console.print(
                f"     Brokers are live (ids {', '.join(brokers)}): new tokens do not log in there before they have "
                "the same key",
                soft_wrap=True,
            )
        self.files.activate(new)

    async def _finish(self, new: SecretKey) -> Rotated:
        with self._status(f"Waiting until all nodes make tokens with the key {new.id}"):
            workers = await self._wait(
                lambda state: state.current_key == new.id,
                f"tokens are not made with the key {new.id} by",
                see_to(self.files.current, _GOES_ON),
            )
        self.console.print(f"2/3  New tokens are made with it by {counted(workers, 'worker')}")
        if self.files.read().stage is Stage.ACTIVATED:
            self.files.drop(new)
        self.console.print("3/3  The key before it is the first of the previous ones")
        return Rotated(Stage.IDLE, new.id, workers)

    async def _as_it_is(self, stage: Stage, new: SecretKey, wanted: Wanted) -> Rotated:
        """Tell which nodes have come along, without waiting: the others may need to be given the file."""
        workers = await workers_with_tokens(self.client)
        lagging = tuple(str(state) for state in workers if not wanted(state))
        return Rotated(stage, new.id, len(workers) - len(lagging), lagging)

    async def _wait(self, wanted: Wanted, lacking: str, advice: str) -> int:
        return await wait_for_workers(self.client, wanted, self.timeout_s, lacking=lacking, advice=advice)

    def _status(self, text: str) -> AbstractContextManager[object]:
        return self.console.status(text) if self.console.is_terminal else nullcontext()


def _read_key(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise KeysError(f"--new-key-file {path} is not UTF-8 text") from None
    if split_keys(text) != (text,):
        raise KeysError(f"{path} has to hold the new key, in one line")
    if SecretKey(text).is_short:
        raise KeysError(f"the key in {path} has fewer than {SHORT_CHARACTERS} characters and could be guessed")
    return text


def _write(rotated: Rotated, output: Output) -> None:
    if output is Output.JSON:
        fields = {
            "keyId": rotated.key_id,
            "stage": "done" if rotated.stage is Stage.IDLE else rotated.stage.value,
            "workers": rotated.workers,
            "lagging": list(rotated.lagging),
        }
        write_json(fields, indent=2)
        return
    workers = counted(rotated.workers, "worker")
    key = f"The key {rotated.key_id} is"
    match rotated.stage:
        case Stage.PREPARED:
            click.echo(f"{key} prepared, and accepted by {workers}")
        case Stage.ACTIVATED:
            click.echo(f"{key} the current one here; tokens are made with it by {workers}")
        case Stage.IDLE:
            click.echo(f"{key} the current one; tokens are made with it by {workers}")
    for worker in rotated.lagging:
        click.echo(f"  not yet: {worker}")
    if rotated.lagging and rotated.stage is Stage.PREPARED:
        click.echo("Run with --prepare again, the command waits for them")
