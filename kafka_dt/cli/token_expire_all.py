"""`kafka-dt token expire-all`: end many tokens at once, for good.

Two ways in, with the same filters and the same summary: on ZooKeeper itself with the settings of a node (`--config`),
or over the Kafka protocol as a client (`--bootstrap-server`, `--command-config`), where each token is ended that the
user may see and may end.

Source: KIP-48, first draft ("invalidate all tokens").
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kafka_dt.bulk.decisions import Outcome, Result
from kafka_dt.bulk.expiry import NOT_READABLE, Expire
from kafka_dt.bulk.kafka_expiry import expire_over_kafka, selected_tokens
from kafka_dt.cli.bulk_run import BulkRun, ascii_name
from kafka_dt.cli.client_options import client_config, client_errors, connection_options
from kafka_dt.cli.errors import one_line
from kafka_dt.cli.key_nodes import counted
from kafka_dt.cli.node_options import Output, keyring_of, node_options, node_settings
from kafka_dt.cli.token_filters import confirm, confirmed_option, filter_options
from kafka_dt.client import ClientConfig, TokenClientError
from kafka_dt.config import ConfigError
from kafka_dt.zookeeper.errors import ZooKeeperError

if TYPE_CHECKING:
    from kafka_dt.bulk.engine import Report
    from kafka_dt.bulk.filters import TokenFilter
    from kafka_dt.client import DelegationToken
    from kafka_dt.config import Settings

_OWNERS_SHOWN: Final = 20
_WORDS: Final = {
    Outcome.CHANGED: "ended",
    Outcome.UNCHANGED: "not meant",
    Outcome.GONE: "gone",
    Outcome.FAILED: "failed",
}


@click.command("expire-all")
@node_options
@connection_options
@filter_options
@click.option("--dry-run", is_flag=True, help="Only show what would end.")
@confirmed_option
def expire_all(
    *,
    config: Path | None,
    overrides: tuple[str, ...],
    output: Output,
    bootstrap_server: str | None,
    command_config: Path | None,
    selected: TokenFilter,
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
    with one_line(ConfigError, TokenClientError):
        way = node_settings(config, overrides) if on_zookeeper else client_config(bootstrap_server, command_config)
    if not (dry_run or confirmed):
        confirm(selected)
    expiry = _Expiry(selected, output, dry_run=dry_run)
    with one_line(ConfigError, ZooKeeperError), client_errors():
        expiry.run(way)


class _Expiry:
    def __init__(self, selected: TokenFilter, output: Output, *, dry_run: bool) -> None:
        self._selected = selected
        self._output = output
        self._dry_run = dry_run
        self._run = expiry_run(dry_run=dry_run)
        self._not_readable = 0
        self._by_owner: Counter[str] = Counter()
        self._token_ids: list[str] | None = [] if dry_run and output is Output.JSON else None

    def run(self, way: Settings | ClientConfig) -> None:
        """Do it, print the summary and end the process."""
        try:
            asyncio.run(self._over_kafka(way) if isinstance(way, ClientConfig) else self._on_zookeeper(way))
        finally:
            if self._run.begun:
                write_expiry(self._run, self._output, self._by_owner, self._not_readable, self._token_ids)
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


def expiry_run(*, dry_run: bool) -> BulkRun:
    """Make a run that ends tokens, in these words."""
    words = {**_WORDS, Outcome.CHANGED: "would end"} if dry_run else _WORDS
    return BulkRun("Looking at tokens" if dry_run else "Ending tokens", dry_run=dry_run, words=words)


def write_expiry(
    run: BulkRun, output: Output, by_owner: Mapping[str, int], not_readable: int, token_ids: Sequence[str] | None = None
) -> None:
    """Print which tokens ended.

    Args:
        run: the one that ended them.
        output: in which form.
        by_owner: how many of each owner.
        not_readable: how many were left because nobody can say whether they are meant.
        token_ids: all of them, for the JSON of a dry run; None = they are not told.
    """
    owners = sorted(by_owner.items(), key=lambda item: -item[1])
    more: dict[str, object] = {"byOwner": dict(owners), "notReadable": not_readable}
    if token_ids is not None:
        more["tokenIds"] = token_ids
    lines = [f"{ascii_name(owner)}: {count}" for owner, count in owners[:_OWNERS_SHOWN]]
    if len(owners) > _OWNERS_SHOWN:
        lines.append(f"({len(owners) - _OWNERS_SHOWN} more owners)")
    apart = {NOT_READABLE: not_readable} if not_readable else {}
    run.write_summary(output, more, lines, apart)
    if not_readable:
        left = counted(not_readable, "token")
        run.tell(f"Not readable, so left alone: {left}, meant or not; kafka-dt keys verify says why")


def _would_end(token: DelegationToken) -> Result:
    return Result(token.token_id, Outcome.CHANGED, note=token.owner)
