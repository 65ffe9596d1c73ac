"""`kafka-dt token expire-all`: end many tokens at once, for good.

Two ways in, with the same filters and the same summary: on ZooKeeper itself with the settings of a node (`--config`),
or over the Kafka protocol as a client (`--bootstrap-server`, `--command-config`), where each token is ended that the
user may see and may end.

Source: KIP-48, first draft ("invalidate all tokens").
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kafka_dt.bulk.decisions import Outcome, Result
from kafka_dt.bulk.expiry import NOT_READABLE, Expire
from kafka_dt.bulk.filters import TokenFilter
from kafka_dt.bulk.kafka_expiry import expire_over_kafka, selected_tokens
from kafka_dt.cli.bulk_run import BulkRun, ascii_name
from kafka_dt.cli.client_options import client_config, connection_options
from kafka_dt.cli.errors import one_line
from kafka_dt.cli.key_nodes import counted
from kafka_dt.cli.node_options import Output, keyring_of, node_options, node_settings
from kafka_dt.client import ClientConfig, TokenClientError
from kafka_dt.config import ConfigError
from kafka_dt.tokens import InvalidPrincipal, Principal
from kafka_dt.zookeeper.errors import ZooKeeperError

if TYPE_CHECKING:
    from kafka_dt.bulk.engine import Report
    from kafka_dt.client import DelegationToken
    from kafka_dt.config import Settings

_OWNERS_SHOWN: Final = 20
_WORDS: Final = {
    Outcome.CHANGED: "ended",
    Outcome.UNCHANGED: "not meant",
    Outcome.GONE: "gone",
    Outcome.FAILED: "failed",
}
_PLAUSIBLE_MS: Final = 10**12
"""September 2001; a smaller number is a date without its hyphens, or seconds."""


class _Principal(click.ParamType[str]):
    """A principal, as it stands in a token."""

    name = "principal"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return str(Principal.parse(value))
        except InvalidPrincipal:
            self.fail(f"{value!r} has no type: write User:{value}", param, ctx)


class _Instant(click.ParamType[int]):
    """An instant: ISO 8601, in UTC where it does not say, or milliseconds since 1970."""

    name = "instant"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int) or value.isdecimal():
            if int(value) < _PLAUSIBLE_MS:
                self.fail(
                    f"{value} milliseconds since 1970 are before any token: write a date like 2026-11-21, and a number "
                    "in milliseconds.",
                    param,
                    ctx,
                )
            return int(value)
        try:
            instant = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is neither ISO 8601 (2026-11-21T08:00:00Z) nor milliseconds since 1970.", param, ctx)
        instant = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
        return round(instant.timestamp() * 1000)


@click.command("expire-all")
@node_options
@connection_options
@click.option("--owner", "owners", multiple=True, type=_Principal(), metavar="User:NAME", help="Tokens that it owns.")
@click.option(
    "--renewer", "renewers", multiple=True, type=_Principal(), metavar="User:NAME", help="Tokens that it may renew."
)
@click.option(
    "--issued-before",
    "issued_before_ms",
    type=_Instant(),
    metavar="TIME",
    help="Tokens issued before: ISO 8601 (UTC unless it says otherwise), or milliseconds since 1970.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would end.")
@click.option("--all", "--yes", "confirmed", is_flag=True, help="Without a filter: every token is meant; do not ask.")
def expire_all(
    *,
    config: Path | None,
    overrides: tuple[str, ...],
    output: Output,
    bootstrap_server: str | None,
    command_config: Path | None,
    owners: tuple[str, ...],
    renewers: tuple[str, ...],
    issued_before_ms: int | None,
    dry_run: bool,
    confirmed: bool,
) -> None:
    """End all tokens, or those of an owner, of a renewer, or issued before a time.

    With --config on ZooKeeper itself, with the settings of a node; else over the Kafka protocol, as the user that logs
    in: tokens that this user may not see stay. Several owners, or renewers, mean any of them; different filters must
    all hold.

    A token that is not readable belongs to nobody that a filter could name: with a filter it is left and told of,
    without one it has failed.
    """
    on_zookeeper = config is not None or bool(overrides)
    if on_zookeeper and (bootstrap_server is not None or command_config is not None):
        raise click.UsageError("Give --config for ZooKeeper, or --bootstrap-server and --command-config, not both.")
    if not on_zookeeper and bootstrap_server is None and command_config is None:
        raise click.UsageError("Missing option '--config', or '--bootstrap-server' (and '--command-config').")
    selected = TokenFilter(frozenset(owners), frozenset(renewers), issued_before_ms)
    with one_line(ConfigError, TokenClientError):
        way = node_settings(config, overrides) if on_zookeeper else client_config(bootstrap_server, command_config)
    if not (dry_run or confirmed or not selected.selects_all):
        _confirm()
    expiry = _Expiry(selected, output, dry_run=dry_run)
    with one_line(ConfigError, TokenClientError, ZooKeeperError):
        expiry.run(way)


def _confirm() -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("Without --owner, --renewer or --issued-before every token would end: say --all.")
    click.confirm("Every token ends, for everybody. Is that meant?", abort=True, err=True)


class _Expiry:
    def __init__(self, selected: TokenFilter, output: Output, *, dry_run: bool) -> None:
        self._selected = selected
        self._output = output
        self._dry_run = dry_run
        words = {**_WORDS, Outcome.CHANGED: "would end"} if dry_run else _WORDS
        self._run = BulkRun("Looking at tokens" if dry_run else "Ending tokens", dry_run=dry_run, words=words)
        self._not_readable = 0
        self._by_owner: Counter[str] = Counter()
        self._token_ids: list[str] | None = [] if dry_run and output is Output.JSON else None

    def run(self, way: Settings | ClientConfig) -> None:
        """Do it, print the summary and end the process."""
        try:
            asyncio.run(self._over_kafka(way) if isinstance(way, ClientConfig) else self._on_zookeeper(way))
        finally:
            if self._run.begun:
                self._write()
        if self._not_readable:
            left = counted(self._not_readable, "token")
            self._run.tell(f"Not readable, so left alone: {left}, meant or not; kafka-dt keys verify says why")
        self._run.exit()

    async def _on_zookeeper(self, settings: Settings) -> None:
        await self._run.on_zookeeper(settings, Expire(keyring_of(settings), self._selected), heard=self._heard)

    async def _over_kafka(self, config: ClientConfig) -> None:
        tokens = await selected_tokens(config, self._selected)

        async def work(stop: asyncio.Event, report: Report) -> None:
            if self._dry_run:
                report([_would_end(token) for token in tokens])
            else:
                await expire_over_kafka(config, tokens, report=report, stop=stop)

        await self._run.through(len(tokens), work, heard=self._heard)

    def _heard(self, results: Sequence[Result]) -> None:
        self._not_readable += sum(result.note is NOT_READABLE for result in results)
        changed = [result for result in results if result.outcome is Outcome.CHANGED]
        self._by_owner.update(result.note for result in changed if isinstance(result.note, str))
        if self._token_ids is not None:
            self._token_ids += (result.token_id for result in changed)

    def _write(self) -> None:
        more: dict[str, object] = {
            "byOwner": dict(self._by_owner.most_common()),
            "notReadable": self._not_readable,
        }
        if self._token_ids is not None:
            more["tokenIds"] = self._token_ids
        lines = [f"{ascii_name(owner)}: {count}" for owner, count in self._by_owner.most_common(_OWNERS_SHOWN)]
        if len(self._by_owner) > _OWNERS_SHOWN:
            lines.append(f"({len(self._by_owner) - _OWNERS_SHOWN} more owners)")
        apart = {NOT_READABLE: self._not_readable} if self._not_readable else {}
        self._run.write_summary(self._output, more, lines, apart)


def _would_end(token: DelegationToken) -> Result:
    return Result(token.token_id, Outcome.CHANGED, note=token.owner)
