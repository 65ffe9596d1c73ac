"""`kafka-dt keys list`: list the secret keys, how many tokens each made or seals, and which nodes have them.

- table: for people; a table of keys, one of nodes, and remarks.
- json: for programs, stable. `keys` (in the order of the ring: `keyId`, `role`, `liveTokens`, `sealedTokens`),
  `liveTokensWithoutKeyId`, `plainTokens`, `unknownKeys` (`keyId`, `tokens`), `unreadableTokens` (a list of `reason`
  and `count`), `nodes` (`host`, `pid`, `worker`, `brokerId`, `currentKey`, `keys`, `seals`, `version`, `lags`).

Source: KIP-48 "Delegation Token Master Key Rotation".
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from kafka_dt.bulk import census
from kafka_dt.cli.keys.files import HeldKeys, Stage
from kafka_dt.cli.keys.nodes import named
from kafka_dt.cli.node_options import connected, keyring_of, now_ms, settings_options, tell_if_no_token_was_made
from kafka_dt.cli.options import example
from kafka_dt.cli.output import Output, counted, printable, write_json
from kafka_dt.cli.tables import console, table
from kafka_dt.config import SecretKeyFiles
from kafka_dt.zookeeper.stores.cluster import live_workers

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from kafka_dt.bulk import Census
    from kafka_dt.config import Settings
    from kafka_dt.stores import WorkerState
    from kafka_dt.tokens import Keyring, SecretKey

_NUMBERS: Final = {"BROKER ID", "WORKER", "PID", "LIVE TOKENS", "SEALED WITH IT"}


@example("kafka-dt keys list --config server.properties")
@click.command("list")
@settings_options()
def list_keys(*, settings: Settings, output: Output) -> None:
    """List the secret keys, their tokens and their nodes.

    For each key the command shows how many live tokens it made, how many tokens it seals, and which nodes have it. It
    shows the ids of keys, which reveal nothing about the keys themselves.
    """
    found = asyncio.run(_look(settings))
    if output is Output.JSON:
        write_json(found.fields(), indent=2)
    else:
        found.show(console())


async def _look(settings: Settings) -> Found:
    keys = SecretKeyFiles(settings).keys
    assert keys is not None  # noqa: S101 - there is a secret key
    keyring = keyring_of(settings)
    async with connected(settings) as client:
        await tell_if_no_token_was_made(client, settings.zookeeper_connect)
        nodes = await live_workers(client)
        return Found(HeldKeys.of(keys), keyring, await census(client, keyring, now_ms=now_ms), nodes)


@dataclass(frozen=True, slots=True)
class Found:
    """The keys, the tokens of each, and the nodes, as the command found them."""

    held: HeldKeys
    keyring: Keyring
    tokens: Census
    nodes: Sequence[WorkerState]

    def fields(self) -> Mapping[str, object]:
        """Return it for programs."""
        return {
            "keys": [
                {
                    "keyId": key.id,
                    "role": self._role(key),
                    "liveTokens": self.tokens.live_by_key.get(key.id, 0),
                    "sealedTokens": self.tokens.sealed_by_key.get(key.id, 0),
                }
                for key in self.keyring.keys
            ],
            "liveTokensWithoutKeyId": self.tokens.live_by_key.get(None, 0),
            "plainTokens": self.tokens.plain,
            "unknownKeys": [{"keyId": key_id, "tokens": count} for key_id, count in self.tokens.unknown_keys.items()],
            "unreadableTokens": [{"reason": reason, "count": count} for reason, count in self._unreadable()],
            "nodes": [
                {
                    "host": node.host,
                    "pid": node.pid,
                    "worker": node.worker,
                    "brokerId": node.broker_id,
                    "currentKey": node.current_key,
                    "keys": list(node.keys),
                    "seals": node.seals,
                    "version": node.version,
                    "lags": self._lags(node),
                }
                for node in self.nodes
            ],
        }

    def show(self, console: Console) -> None:
        """Print it for people."""
        console.print(self._key_table())
        console.print(self._node_table() if self.nodes else "No live nodes")
        for line in self._remarks():
            console.print(printable(line), soft_wrap=True)

    def _key_table(self) -> Table:
        made = table("KEY", "ROLE", "LIVE TOKENS", "SEALED WITH IT", numbers=_NUMBERS)
        for key in self.keyring.keys:
            live, sealed = self.tokens.live_by_key.get(key.id, 0), self.tokens.sealed_by_key.get(key.id, 0)
            made.add_row(key.id, self._role(key), f"{live:,}", f"{sealed:,}")
        return made

    def _node_table(self) -> Table:
        names = ("NODE", "BROKER ID", "WORKER", "PID", "CURRENT KEY", "OTHER KEYS", "SEALS", "VERSION")
        made = table(*names, numbers=_NUMBERS)
        for node in self.nodes:
            others = ", ".join(node.keys[1:]) or "-"
            seals = "yes" if node.seals else "no"
            numbers = map(str, (node.broker_id, node.worker, node.pid))
            row = (node.host, *numbers, node.current_key or "-", others, seals, node.version)
            made.add_row(*map(printable, row), style="bold" if self._lags(node) else "")
        return made

    def _remarks(self) -> Iterator[str]:
        if self.tokens.plain:
            yield f"Plain in ZooKeeper, not sealed: {counted(self.tokens.plain, 'token')}"
        if nameless := self.tokens.live_by_key.get(None, 0):
            yield f"Without a key id, and so of any of the keys: {counted(nameless, 'live token')}"
        for key_id, count in self.tokens.unknown_keys.items():
            yield f"The key {key_id} is not in these settings: {counted(count, 'token')} cannot be used without it"
        for reason, count in self._unreadable():
            yield f"Not readable: {counted(count, 'token')}, {reason}"
        if lagging := [node for node in self.nodes if self._lags(node)]:
            yield f"Other keys than these settings have: {named(lagging)}"

    def _role(self, key: SecretKey) -> str:
        if key == self.held.current:
            return "current"
        return "next" if self.held.stage is Stage.PREPARED and key == self.held.previous[0] else "previous"

    def _lags(self, node: WorkerState) -> bool:
        """Say whether a node has other keys than these settings; one without tokens needs none."""
        if node.current_key is None:
            return False
        return node.current_key != self.held.current.id or set(node.keys) != {key.id for key in self.keyring.keys}

    def _unreadable(self) -> Sequence[tuple[str, int]]:
        return Counter(self.tokens.unreadable.values()).most_common()
