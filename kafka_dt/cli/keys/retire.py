"""`kafka-dt keys retire`: take a secret key away from all nodes.

The tokens that the key made must have ended, or `--expire-tokens` ends them. The command seals again, with the current
key, what the old key sealed. Then it removes the key from the previous keys and waits until no live node has it. Run
again after an interruption, it continues with the rest, and succeeds if nothing is left.

Tokens that do not say which key made them come from a broker, or from a time before keys had ids. They may be of any
key, so they block every retirement until the operator says whether they end or stay.

A token has expired here only after a minute, because this machine's clock decides what is deleted; the command refuses
if that clock differs from ZooKeeper's by more than a minute.

Source: KIP-48, "Delegation Token Master Key Rotation".
"""

from __future__ import annotations

import asyncio
import re
import secrets
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from kafka_dt.bulk import (
    ALWAYS_CHANGED,
    STILL_LIVE,
    UNREACHABLE,
    ExpireOfKey,
    Reseal,
    Summary,
    ZnodeResult,
    census,
    process,
    token_ids,
)
from kafka_dt.cli.keys.files import KeyFiles, KeysError, Stage
from kafka_dt.cli.keys.nodes import named, require_workers, see_to, wait_for_workers, workers_with_tokens
from kafka_dt.cli.node_options import connected, now_ms, settings_options, waiting_options
from kafka_dt.cli.options import example
from kafka_dt.cli.output import Output, counted, write_json
from kafka_dt.tokens import Keyring
from kafka_dt.tokens.purge import compare_clocks
from kafka_dt.zookeeper.connection.reads import zookeeper_time_ms

if TYPE_CHECKING:
    from kafka_dt.bulk import Task
    from kafka_dt.config import Settings
    from kafka_dt.tokens import SecretKey
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

CLOCK_SLACK_MS: Final = 60_000
_KEY_ID: Final = re.compile("[0-9a-f]{16}")
_MAY_HANG_ON_IT: Final = (ALWAYS_CHANGED, UNREACHABLE)


class Nameless(Enum):
    """What becomes of live tokens that do not say which key made them."""

    BLOCK = "block"
    KEEP = "keep"
    EXPIRE = "expire"


def _key_id(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    if not _KEY_ID.fullmatch(value):
        raise click.BadParameter(
            f"{value!r} is not the id of a key: give the 16 hex digits that `kafka-dt keys list` shows"
        )
    return value


@example("kafka-dt keys retire 3f1c9a7be0d24c55 --config server.properties")
@click.command()
@click.argument("key_id", metavar="KEY-ID", callback=_key_id)
@settings_options()
@waiting_options
@click.option("--expire-tokens", is_flag=True, help="End the tokens that the key made.")
@click.option(
    "--expire-nameless",
    is_flag=True,
    help="End the tokens that do not say which key made them, valid tokens of brokers included.",
)
@click.option(
    "--keep-nameless",
    is_flag=True,
    help="Keep the tokens that do not say which key made them. Use it only when another key made them.",
)
def retire(
    *,
    key_id: str,
    settings: Settings,
    output: Output,
    timeout_s: float,
    no_nodes: bool,
    expire_tokens: bool,
    expire_nameless: bool,
    keep_nameless: bool,
) -> None:
    """Take a secret key away from all nodes.

    The command refuses while a live token may depend on the key, unless the options say to end or keep such tokens.

    KEY-ID is the key's id, as `kafka-dt keys list` shows it.
    """
    if expire_nameless and keep_nameless:
        raise click.UsageError("--expire-nameless ends what --keep-nameless leaves: say one of them")
    nameless = Nameless.EXPIRE if expire_nameless else Nameless.KEEP if keep_nameless else Nameless.BLOCK
    files = KeyFiles(settings)

    async def run() -> int | None:
        async with connected(settings) as client:
            if not no_nodes:
                await require_workers(client)
            retirement = Retirement(client, files, key_id, timeout_s)
            return await retirement.run(expire_tokens=expire_tokens, nameless=nameless)

    with files.locked():
        ended = asyncio.run(run())
    if output is Output.JSON:
        write_json({"keyId": key_id, "endedTokens": ended or 0}, indent=2)
    elif ended is None:
        click.echo(f"There is no key {key_id} in {files.previous} or on a live node: nothing to do")
    else:
        click.echo(f"The key {key_id} is retired; {counted(ended, 'token')} deleted")


class Retirement:
    """One run of the command, which waits so long for nodes."""

    def __init__(self, client: ZooKeeperClient, files: KeyFiles, key_id: str, timeout_s: float) -> None:
        self._client = client
        self._files = files
        self._key_id = key_id
        self._timeout_s = timeout_s
        keys = files.read()
        self._stage = keys.stage
        self._keyring = Keyring(keys.current, previous=keys.previous)

    async def run(self, *, expire_tokens: bool = False, nameless: Nameless = Nameless.BLOCK) -> int | None:
        """Retire the key; returns how many tokens were deleted, expired ones among them, or None if it is nowhere.

        Raises:
            KeysError: it is in use, or a node does not follow in time.
            OSError: a file cannot be written.
            ZooKeeperError: ZooKeeper cannot be asked.
        """
        await self._require_unused()
        key = self._keyring.get(self._key_id)
        if key is None and not await self._is_on_a_node():
            return None
        deleted = 0
        if key is not None:
            await self._require_right_clock()
            await self._require_free(key, expire_tokens=expire_tokens, nameless=nameless)
            ends_nameless = nameless is Nameless.EXPIRE
            # Expired ones go in any case: no node could read them later.
            expire = ExpireOfKey(self._keyring, key.id, _surely_ms, live=expire_tokens, nameless=ends_nameless)
            deleted = await self._process(expire)
            await self._process(Reseal(self._keyring, secrets.token_bytes, self._key_id))
            self._take_away(key)
        await wait_for_workers(
            self._client,
            lambda state: self._key_id not in state.keys,
            self._timeout_s,
            lacking=f"the key {self._key_id} is still accepted by",
            advice=see_to(self._files.previous, f"; tokens deleted already: {deleted:,}" if deleted else ""),
        )
        return deleted

    async def _is_on_a_node(self) -> bool:
        return any(self._key_id in state.keys for state in await workers_with_tokens(self._client))

    async def _require_unused(self) -> None:
        workers = await workers_with_tokens(self._client)
        users = [state for state in workers if state.current_key == self._key_id]
        if self._key_id == self._keyring.current.id or users:
            where = named(users) or f"in {self._files.current}"
            raise KeysError(f"the key {self._key_id} is the current one ({where}): rotate to another one first")
        if self._keyring.get(self._key_id) is None:
            return
        # What is sealed again must be readable everywhere.
        current = self._keyring.current.id
        await wait_for_workers(
            self._client,
            lambda state: current in state.keys,
            self._timeout_s,
            lacking=f"the current key {current} is not accepted by",
            advice="finish the rotation first: kafka-dt keys rotate",
        )

    async def _require_right_clock(self) -> None:
        """See that this machine can tell which tokens have expired."""
        clocks = await compare_clocks(partial(zookeeper_time_ms, self._client), now_ms)
        if clocks.differ_too_much:
            raise KeysError(f"{clocks}: set the clocks right, for they say which tokens have expired")

    async def _require_free(self, key: SecretKey, *, expire_tokens: bool, nameless: Nameless) -> None:
        counts = (await census(self._client, self._keyring, now_ms=_surely_ms)).live_by_key
        if (live := counts.get(key.id, 0)) and not expire_tokens:
            raise KeysError(_in_use(key.id, live))
        if (unsure := counts.get(None, 0)) and nameless is Nameless.BLOCK:
            raise KeysError(
                f"{counted(unsure, 'live token')} without a key id may be of the key {key.id}: wait until there are "
                "none; or leave them with --keep-nameless, if brokers have had another key for longer than tokens "
                "live, or there are no brokers; or end them with --expire-nameless"
            )

    async def _process(self, task: Task) -> int:
        """Have a task done with every token; returns how many it changed."""
        summary = Summary()
        names = await token_ids(self._client)
        await process(self._client, names, task, report=summary.add, now_ms=now_ms)
        if live := summary.failures.get(STILL_LIVE):
            raise KeysError(_in_use(self._key_id, live.count))
        # What is not readable fails as well, and does not hang on the key; it would be there the next time, too.
        if left := sum(summary.failures[reason].count for reason in _MAY_HANG_ON_IT if reason in summary.failures):
            raise KeysError(f"{counted(left, 'token')} could not be read or written: run the command again")
        return summary.counts[ZnodeResult.CHANGED]

    def _take_away(self, key: SecretKey) -> None:
        if self._stage is Stage.PREPARED and key == self._files.read().previous[0]:
            # With the key that was to come goes the mark that one is to come.
            self._files.drop(key, self._keyring.current)
        else:
            self._files.drop(key)


def _in_use(key_id: str, live: int) -> str:
    tokens = counted(live, "live token")
    return f"the key {key_id} still has {tokens}: wait until they end, or end them with --expire-tokens"


def _surely_ms() -> int:
    """Give a time that has passed by every clock."""
    return now_ms() - CLOCK_SLACK_MS
