"""`kafka-dt token expire-all`: end many tokens at once.

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

from kafka_dt.bulk import NOT_READABLE, Expire, Result, ZnodeResult
from kafka_dt.bulk.kafka_expiry import expire_over_kafka, selected_tokens
from kafka_dt.cli.bulk_run import BulkRun, ascii_name
from kafka_dt.cli.client_options import client_config, client_errors, connection_options
from kafka_dt.cli.errors import one_line
from kafka_dt.cli.keys.files import KeysError
from kafka_dt.cli.keys.nodes import counted, wait_for_workers
from kafka_dt.cli.node_options import Output, keyring_if_any, node_options, node_settings
from kafka_dt.cli.token.filters import confirm, filter_options
from kafka_dt.client import ClientConfig, TokenClientError
from kafka_dt.config import ConfigError, Settings
from kafka_dt.zookeeper.errors import ZooKeeperError

if TYPE_CHECKING:
    from kafka_dt.bulk import Report, TokenFilter
    from kafka_dt.client import DelegationToken
    from kafka_dt.tokens import Keyring
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

_OWNERS_SHOWN: Final = 20
_NODES_TIMEOUT_S: Final = 5.0
"""How long nodes may take to read their key files again; they look every second."""
_WORDS: Final = {
    ZnodeResult.CHANGED: "ended",
    ZnodeResult.UNCHANGED: "not meant",
    ZnodeResult.GONE: "gone",
    ZnodeResult.FAILED: "failed",
}


@click.command("expire-all")
@node_options
@connection_options
@filter_options
@click.option("--unreadable", is_flag=True, help="End tokens that no secret key of the settings can read.")
@click.option("--dry-run", is_flag=True, help="Only show which tokens would end.")
@click.option("--all", "everything", is_flag=True, help="End every token, without a question.")
@click.option("--yes", "confirmed", is_flag=True, help="Do not ask.")
def expire_all(
    *,
    config: Path | None,
    overrides: tuple[str, ...],
    output: Output,
    bootstrap_server: str | None,
    command_config: Path | None,
    selected: TokenFilter,
    unreadable: bool,
    dry_run: bool,
    everything: bool,
    confirmed: bool,
) -> None:
    """End all tokens, or those of an owner, of a renewer, or issued before a time.

    With --config the command works on ZooKeeper itself, with the settings of a node. Without it the command works over
    the Kafka protocol, as the user that logs in; tokens that this user may not see stay. Several owners, or renewers,
    mean any of them; different filters must all hold.

    The owner of an unreadable token is unknown: with a filter the command leaves and counts the token, without one the
    token counts as failed. --unreadable ends these tokens: alone it ends no others, with a filter it also ends the
    tokens that the filter selects, with --all it ends every token. It needs no secret key in the settings. Without
    --all the command refuses it while a live node has keys that the settings lack.
    """
    on_zookeeper = config is not None or bool(overrides)
    if on_zookeeper and (bootstrap_server is not None or command_config is not None):
        raise click.UsageError("Give --config for ZooKeeper, or --bootstrap-server and --command-config, not both.")
    if not on_zookeeper and bootstrap_server is None and command_config is None:
        raise click.UsageError("Missing option '--config', or '--bootstrap-server' (and '--command-config').")
    if unreadable and not on_zookeeper:
        raise click.UsageError("--unreadable needs --config: a node does not show tokens that it cannot read.")
    with one_line(ConfigError, TokenClientError):
        way: Settings | ClientConfig
        if on_zookeeper:
            way = node_settings(config, overrides, needs_key=not unreadable)
        else:
            way = client_config(bootstrap_server, command_config)
    if not (dry_run or everything or confirmed):
        confirm(selected, unreadable=unreadable)
    only_unreadable = unreadable and selected.selects_all and not everything
    expiry = _Expiry(None if only_unreadable else selected, output, unreadable=unreadable, dry_run=dry_run)
    with one_line(ConfigError, KeysError, ZooKeeperError), client_errors():
        expiry.run(way)


class _Expiry:
    """One run.

    Args:
        selected: which readable tokens end; None = none of them.
        output: how the result is printed.
        unreadable: whether the tokens end that are not readable.
        dry_run: whether it is only found out what would end.
    """

    def __init__(self, selected: TokenFilter | None, output: Output, *, unreadable: bool, dry_run: bool) -> None:
        self._selected = selected
        self._output = output
        self._unreadable = unreadable
        self._dry_run = dry_run
        self._run = expiry_run(dry_run=dry_run)
        self._ended_unread = 0
        self._not_readable = 0
        self._by_owner: Counter[str] = Counter()
        self._token_ids: list[str] | None = [] if dry_run and output is Output.JSON else None

    def run(self, way: Settings | ClientConfig) -> None:
        """Do it, print the summary and end the process."""
        try:
            asyncio.run(self._over_kafka(way) if isinstance(way, ClientConfig) else self._on_zookeeper(way))
        finally:
            if self._run.begun:
                write_expiry(
                    self._run,
                    self._output,
                    self._by_owner,
                    self._not_readable,
                    self._token_ids,
                    ended_unread=self._ended_unread,
                )
        if self._run.summary.failed and isinstance(way, Settings) and not self._unreadable:
            self._run.tell("Tokens that are not readable end with --unreadable")
        self._run.exit()

    async def _on_zookeeper(self, settings: Settings) -> None:
        keyring = keyring_if_any(settings)
        ends_all = self._selected is not None and self._selected.selects_all

        async def look_around(client: ZooKeeperClient) -> None:
            if self._unreadable and not ends_all:
                await _require_no_other_keys(client, keyring)

        expire = Expire(keyring, self._selected, unreadable=self._unreadable)
        await self._run.on_zookeeper(settings, expire, before=look_around, heard=self._heard)

    async def _over_kafka(self, config: ClientConfig) -> None:
        assert self._selected is not None  # noqa: S101 - a node shows readable tokens only
        tokens = await selected_tokens(config, self._selected)

        async def work(stop: asyncio.Event, report: Report) -> None:
            if self._dry_run:
                report([_would_end(token) for token in tokens])
            else:
                await expire_over_kafka(config, tokens, report=report, stop=stop)

        await self._run.through(len(tokens), work, heard=self._heard)

    def _heard(self, results: Sequence[Result]) -> None:
        changed = [result for result in results if result.outcome is ZnodeResult.CHANGED]
        ended_unread = sum(result.note is NOT_READABLE for result in changed)
        self._ended_unread += ended_unread
        self._not_readable += sum(result.note is NOT_READABLE for result in results) - ended_unread
        owners = (result.note for result in changed if result.note is not NOT_READABLE)
        self._by_owner.update(owner for owner in owners if isinstance(owner, str))
        if self._token_ids is not None:
            self._token_ids += (result.token_id for result in changed)


def expiry_run(*, dry_run: bool) -> BulkRun:
    """Make a run that ends tokens, in these words."""
    words = {**_WORDS, ZnodeResult.CHANGED: "would end"} if dry_run else _WORDS
    return BulkRun("Looking at tokens" if dry_run else "Ending tokens", dry_run=dry_run, words=words)


def write_expiry(
    run: BulkRun,
    output: Output,
    by_owner: Mapping[str, int],
    not_readable: int,
    token_ids: Sequence[str] | None = None,
    *,
    ended_unread: int = 0,
) -> None:
    """Print which tokens ended.

    Args:
        run: the one that ended them.
        output: in which form.
        by_owner: how many of each owner.
        not_readable: how many were left because the filters cannot be applied to them.
        token_ids: all of them, for the JSON of a dry run; None = they are not told.
        ended_unread: how many ended that were not readable.
    """
    owners = sorted(by_owner.items(), key=lambda item: -item[1])
    more: dict[str, object] = {"byOwner": dict(owners), "notReadable": not_readable, "endedUnread": ended_unread}
    if token_ids is not None:
        more["tokenIds"] = token_ids
    lines = [f"{ascii_name(owner)}: {count}" for owner, count in owners[:_OWNERS_SHOWN]]
    if len(owners) > _OWNERS_SHOWN:
        lines.append(f"({len(owners) - _OWNERS_SHOWN} more owners)")
    if ended_unread:
        lines.append(f"not readable: {ended_unread}")
    apart = {NOT_READABLE: not_readable} if not_readable else {}
    run.write_summary(output, more, lines, apart)
    if not_readable:
        left = counted(not_readable, "token")
        run.tell(f"Not readable, so left alone: {left}, meant or not; kafka-dt keys verify says why")
        run.tell("--unreadable ends them")


async def _require_no_other_keys(client: ZooKeeperClient, keyring: Keyring | None) -> None:
    """See that no live node can read what these settings cannot: its tokens would end by a slip in the settings."""
    ours = {key.id for key in keyring.keys} if keyring else set()
    await wait_for_workers(
        client,
        lambda state: ours.issuperset(state.keys),
        _NODES_TIMEOUT_S,
        lacking="secret keys that these settings lack are accepted by",
        advice="the tokens of these keys would end as well. Take the keys from the nodes first, or give the settings "
        "of the nodes; with --all every token ends",
    )


def _would_end(token: DelegationToken) -> Result:
    return Result(token.token_id, ZnodeResult.CHANGED, note=token.owner)
