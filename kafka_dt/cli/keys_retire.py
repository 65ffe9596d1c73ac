"""`kafka-dt keys retire`: a secret key that no node accepts any more.

What hangs on the key goes first: the tokens that it made (they have to have ended, or `--expire-tokens` ends them), and
what it seals, which is sealed with the current key. Then it leaves the previous keys, and the command waits until no
live node has it. Run again after an interruption it goes on with what is left.

Tokens that do not say which key made them are a broker's, or of a time before keys had ids. They count for the oldest
key.

Source: KIP-48, "Delegation Token Master Key Rotation".
"""

from __future__ import annotations

import asyncio
import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kafka_dt.bulk.census import census
from kafka_dt.bulk.decisions import Outcome
from kafka_dt.bulk.engine import ALWAYS_CHANGED, UNREACHABLE, process, token_ids
from kafka_dt.bulk.expiry import ExpireOfKeys
from kafka_dt.bulk.summary import Summary
from kafka_dt.bulk.tasks import Reseal
from kafka_dt.cli.errors import one_line
from kafka_dt.cli.key_files import KeyFiles, KeysError, Stage
from kafka_dt.cli.key_nodes import counted, named, wait_for_workers, workers_with_tokens
from kafka_dt.cli.node_options import Output, connected, node_options, node_settings, now_ms, timeout_option
from kafka_dt.config import ConfigError
from kafka_dt.tokens import Keyring
from kafka_dt.zookeeper.errors import ZooKeeperError

if TYPE_CHECKING:
    from kafka_dt.bulk.decisions import Task
    from kafka_dt.tokens import SecretKey
    from kafka_dt.zookeeper.client import ZooKeeperClient

_MAY_HANG_ON_IT: Final = (ALWAYS_CHANGED, UNREACHABLE)


@click.command()
@click.argument("key_id")
@node_options
@timeout_option
@click.option("--expire-tokens", is_flag=True, help="End the tokens that hang on the key.")
def retire(
    *,
    key_id: str,
    config: Path | None,
    overrides: tuple[str, ...],
    output: Output,
    timeout_s: float,
    expire_tokens: bool,
) -> None:
    """Take a secret key away from all nodes, once no token hangs on it.

    KEY-ID is as `kafka-dt keys list` shows it.
    """
    with one_line(ConfigError, KeysError, OSError, ZooKeeperError):
        settings = node_settings(config, overrides)
        files = KeyFiles(settings)

        async def run() -> int:
            async with connected(settings) as client:
                return await Retirement(client, files, key_id, timeout_s).run(expire_tokens=expire_tokens)

        with files.locked():
            ended = asyncio.run(run())
    if output is Output.JSON:
        click.echo(json.dumps({"keyId": key_id, "endedTokens": ended}, indent=2))
    else:
        click.echo(f"The key {key_id} is retired; {counted(ended, 'token')} of it deleted")


class Retirement:
    """One run of the command.

    Args:
        client: the connection.
        files: the keys.
        key_id: of the key that is to go.
        timeout_s: how long to wait for nodes.
    """

    def __init__(self, client: ZooKeeperClient, files: KeyFiles, key_id: str, timeout_s: float) -> None:
        self._client = client
        self._files = files
        self._key_id = key_id
        self._timeout_s = timeout_s
        keys = files.read()
        self._stage = keys.stage
        self._keyring = Keyring(keys.current, previous=keys.previous)

    async def run(self, *, expire_tokens: bool) -> int:
        """Retire the key; returns how many tokens of it were deleted, expired ones among them.

        Raises:
            KeysError: it is in use, or a node does not follow in time.
            OSError: a file cannot be written.
            ZooKeeperError: ZooKeeper cannot be asked.
        """
        await self._require_unused()
        key = self._keyring.get(self._key_id)
        deleted = 0
        if key is not None:
            made_by = await self._hanging_on(key, expire_tokens=expire_tokens)
            deleted = await self._process(ExpireOfKeys(self._keyring, made_by))
            await self._process(Reseal(self._keyring, secrets.token_bytes, self._key_id))
            self._take_away(key)
        await wait_for_workers(
            self._client,
            lambda state: self._key_id not in state.keys,
            self._timeout_s,
            lacking=f"still accept the key {self._key_id}",
            advice=f"see that its machine has what is in {self._files.previous}, and run the command again",
        )
        return deleted

    async def _require_unused(self) -> None:
        workers = await workers_with_tokens(self._client)
        users = [state for state in workers if state.current_key == self._key_id]
        if self._key_id == self._keyring.current.id or users:
            where = named(users) or f"in {self._files.current}"
            raise KeysError(f"the key {self._key_id} is the current one ({where}): rotate to another one first")
        if self._keyring.get(self._key_id) is None:
            if not any(self._key_id in state.keys for state in workers):
                raise KeysError(f"there is no key {self._key_id} in {self._files.previous} or on a live node")
            return
        # What is sealed again must be readable everywhere.
        current = self._keyring.current.id
        await wait_for_workers(
            self._client,
            lambda state: current in state.keys,
            self._timeout_s,
            lacking=f"do not accept the current key {current}",
            advice="finish the rotation first: kafka-dt keys rotate",
        )

    async def _hanging_on(self, key: SecretKey, *, expire_tokens: bool) -> set[str | None]:
        """Return whose tokens are to be deleted; expired ones, which nobody could read later, always are."""
        counts = (await census(self._client, self._keyring, now_ms=now_ms)).live_by_key
        nameless = counts.get(None, 0) if key == self._keyring.oldest else 0
        live = counts.get(key.id, 0) + nameless
        if live and not expire_tokens:
            some = f" ({nameless:,} of them without a key id)" if nameless else ""
            raise KeysError(
                f"the key {key.id} still has {counted(live, 'live token')}{some}: wait until they end, or end them "
                "with --expire-tokens"
            )
        return {key.id, None} if nameless else {key.id}

    async def _process(self, task: Task) -> int:
        """Have a task done with every token; returns how many it changed."""
        summary = Summary()
        names = await token_ids(self._client)
        await process(self._client, names, task, report=summary.add, now_ms=now_ms)
        # What is not readable fails as well, and does not hang on the key; it would be there the next time, too.
        if left := sum(summary.failures[reason].count for reason in _MAY_HANG_ON_IT if reason in summary.failures):
            raise KeysError(f"{counted(left, 'token')} could not be read or written: run the command again")
        return summary.counts[Outcome.CHANGED]

    def _take_away(self, key: SecretKey) -> None:
        if self._stage is Stage.PREPARED and key == self._files.read().previous[0]:
            # With the key that was to come goes the mark that one is to come.
            self._files.drop(key, self._keyring.current)
        else:
            self._files.drop(key)
