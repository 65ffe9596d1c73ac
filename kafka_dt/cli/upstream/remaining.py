"""`kafka-dt upstream remaining`: list what is left in ZooKeeper while tokens move to the cluster behind a gateway.

- table: for people; a row for each owner, and when ZooKeeper can be switched off.
- json: for programs, stable. `tokens` (how many are alive), `unreadable`, `expiry_timestamp` and `max_timestamp` (the
  last of all, milliseconds since 1970; null if there is none), and `owners`: `owner` (as `User:alice`), `tokens`,
  `expiry_timestamp`, `max_timestamp`.

Source: docs/how-to/move-to-kafka-4.md.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Self

import click

from kafka_dt.bulk import inventory, token_ids
from kafka_dt.cli.node_options import connected, keyring_of, now_ms, settings_options, tell_if_no_token_was_made
from kafka_dt.cli.options import example
from kafka_dt.cli.output import Output, counted, printable, write_json
from kafka_dt.cli.tables import console, iso_utc, table

if TYPE_CHECKING:
    from rich.console import Console

    from kafka_dt.bulk import Row
    from kafka_dt.config import Settings
    from kafka_dt.tokens import Token


@example("kafka-dt upstream remaining --config server.properties")
@click.command()
@settings_options()
def remaining(*, settings: Settings, output: Output) -> None:
    """List the owners with live tokens in ZooKeeper.

    The command also tells when ZooKeeper can be switched off. The command reads ZooKeeper itself, with the settings of
    a node, and changes nothing. MAX is the end that no renewal moves, EXPIRES the end unless a token is renewed.
    """
    found = asyncio.run(_look(settings))
    if output is Output.JSON:
        write_json(found.fields(), indent=2)
    else:
        found.show(console())


async def _look(settings: Settings) -> Remaining:
    async with connected(settings) as client:
        await tell_if_no_token_was_made(client, settings.zookeeper_connect)
        rows = await inventory(client, await token_ids(client), keyring_of(settings).keys)
    return Remaining.of(rows, now_ms())


@dataclass(frozen=True, slots=True)
class OwnedTokens:
    """The live tokens of an owner; the fields are those of the JSON."""

    owner: str
    tokens: int
    expiry_timestamp: int
    """The last of them."""
    max_timestamp: int
    """The last of them."""

    @classmethod
    def of(cls, owner: str, tokens: Sequence[Token]) -> Self:
        """Count what an owner has; one token at least."""
        expiry = max(token.end_timestamp_ms for token in tokens)
        return cls(owner, len(tokens), expiry, max(token.max_timestamp_ms for token in tokens))


@dataclass(frozen=True, slots=True)
class Remaining:
    """What is left in ZooKeeper."""

    owners: Sequence[OwnedTokens]
    """Those with the last max timestamp first."""
    unreadable: int
    """How many tokens cannot be read with the secret keys of the settings."""

    @classmethod
    def of(cls, rows: Iterable[Row], now_ms: int) -> Self:
        """Sum up the tokens that were found."""
        alive: dict[str, list[Token]] = defaultdict(list)
        unreadable = 0
        for row in rows:
            if row.token is None or row.reason is not None:
                unreadable += 1
            elif not row.token.is_expired(now_ms):
                alive[str(row.token.owner)].append(row.token)
        owners = [OwnedTokens.of(owner, tokens) for owner, tokens in alive.items()]
        return cls(sorted(owners, key=lambda each: (-each.max_timestamp, each.owner)), unreadable)

    @property
    def tokens(self) -> int:
        """How many are alive."""
        return sum(each.tokens for each in self.owners)

    def fields(self) -> Mapping[str, object]:
        """Return it for programs."""
        return {
            "tokens": self.tokens,
            "unreadable": self.unreadable,
            "expiry_timestamp": max((each.expiry_timestamp for each in self.owners), default=None),
            "max_timestamp": max((each.max_timestamp for each in self.owners), default=None),
            "owners": [asdict(each) for each in self.owners],
        }

    def show(self, console: Console) -> None:
        """Print it for people."""
        if self.owners:
            made = table("OWNER", "TOKENS", "EXPIRES", "MAX", numbers={"TOKENS"})
            for each in self.owners:
                ends = iso_utc(each.expiry_timestamp), iso_utc(each.max_timestamp)
                made.add_row(printable(each.owner), f"{each.tokens:,}", *ends)
            console.print(made)
        for line in self._summary():
            console.print(line, soft_wrap=True)

    def _summary(self) -> Iterator[str]:
        if self.unreadable:
            yield f"Not readable: {counted(self.unreadable, 'token')}; kafka-dt keys verify says why"
        if self.owners:
            until = iso_utc(max(each.max_timestamp for each in self.owners))
            yield f"{counted(self.tokens, 'live token')} in ZooKeeper: keep it until {until} at the latest"
        else:
            yield "No live token is left in ZooKeeper: nodes can run with kafka.dt.token.store=upstream"
