"""`kafka-dt token expire-all`: end many tokens at once.

Two ways in, with the same filters and the same summary: on ZooKeeper itself with the settings of a node (`--config`),
or over the Kafka protocol as a client (`--bootstrap-server`, `--command-config`). There the server describes the tokens
that the user may see, and each token that the filter selects is deleted by its HMAC. A server answers one connection's
requests one after the other, so several connections share the work.

Source: KIP-48, first draft ("invalidate all tokens"); KIP-48 (ExpireDelegationToken).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kafka_dt.bulk import NOT_READABLE, Expire, Result, ZnodeResult
from kafka_dt.cli.filters import ExpiryRun, confirm_all, filter_options
from kafka_dt.cli.keys.nodes import wait_for_workers
from kafka_dt.cli.node_options import keyring_if_any, node_options, node_settings
from kafka_dt.cli.options import client_config, confirm, connection_options, login_option_named
from kafka_dt.cli.output import Output
from kafka_dt.client import ClientConfig, ConnectionLost, RequestRefused, TokenClient, TokenClientError, TokenNotFound
from kafka_dt.lanes import run_lanes

if TYPE_CHECKING:
    from kafka_dt.bulk import Report, TokenFilter
    from kafka_dt.client import DelegationToken
    from kafka_dt.config import Settings
    from kafka_dt.tokens import Keyring
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

CONNECTIONS: Final = 16
ATTEMPTS: Final = 3
"""How often the expiry of a token is asked for when the connection breaks."""
_NODES_TIMEOUT_S: Final = 5.0
"""How long nodes may take to read their key files again; they look every second."""


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
    way: Settings | ClientConfig
    if on_zookeeper:
        way = node_settings(config, overrides, needs_key=not unreadable)
    else:
        way = client_config(bootstrap_server, command_config)
    if not (dry_run or everything or confirmed):
        if unreadable:
            unread = "every token that no secret key of these settings can read"
            confirm(f"This ends {unread}. Continue?", f"This would end {unread}: say --yes.")
        else:
            confirm_all(selected)
    only_unreadable = unreadable and selected.selects_all and not everything
    expiry = _Expiry(None if only_unreadable else selected, unreadable=unreadable, dry_run=dry_run)
    if dry_run and output is Output.JSON:
        expiry.token_ids = []
    with login_option_named():
        expiry.do(expiry.over_kafka(way) if isinstance(way, ClientConfig) else expiry.on_settings(way), output)


class _Expiry(ExpiryRun):
    """One run; it ends the selected tokens (None = none of the readable ones), and the unreadable ones if asked to."""

    def __init__(self, selected: TokenFilter | None, *, unreadable: bool, dry_run: bool) -> None:
        super().__init__(dry_run=dry_run)
        self._selected = selected
        self._unreadable = unreadable
        self._advice = ""

    def write(self, output: Output) -> None:
        """Print which tokens ended, and how those end that failed."""
        super().write(output)
        if self.summary.failed and self._advice:
            self.tell(self._advice)

    async def on_settings(self, settings: Settings) -> None:
        """End the tokens in ZooKeeper."""
        keyring = keyring_if_any(settings)
        ends_all = self._selected is not None and self._selected.selects_all

        async def look_around(client: ZooKeeperClient) -> None:
            if self._unreadable and not ends_all:
                await _require_no_other_keys(client, keyring)

        self._advice = "" if self._unreadable else "Tokens that are not readable end with --unreadable"
        expire = Expire(keyring, self._selected, unreadable=self._unreadable)
        await self.on_zookeeper(settings, expire, before=look_around, heard=self._heard)

    async def over_kafka(self, config: ClientConfig) -> None:
        """End the tokens that a server shows."""
        assert self._selected is not None  # noqa: S101 - a node shows readable tokens only
        tokens = await _selected_tokens(config, self._selected)

        async def work(stop: asyncio.Event, report: Report) -> None:
            if self.dry_run:
                report([Result(token.token_id, ZnodeResult.CHANGED, note=token.owner) for token in tokens])
            else:
                lane = partial(_lane, config, iter(tokens), report, stop)
                await run_lanes(lane, min(CONNECTIONS, len(tokens)), raises=TokenClientError)

        await self.through(len(tokens), work, heard=self._heard)

    def _heard(self, results: Sequence[Result]) -> None:
        for result in results:
            changed = result.outcome is ZnodeResult.CHANGED
            if result.note is NOT_READABLE:
                self.ended_unread += changed
                self.not_readable += not changed
            elif changed and isinstance(result.note, str):
                self.by_owner[result.note] += 1
            if changed and self.token_ids is not None:
                self.token_ids.append(result.token_id)


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


async def _selected_tokens(config: ClientConfig, selected: TokenFilter) -> list[DelegationToken]:
    async with TokenClient(config) as client:
        # Those that an owner may renew come along; the filter takes them out.
        tokens = await client.describe(sorted(selected.owners) or None)
    return [token for token in tokens if selected.selects(token.owner, token.renewers, token.issue_timestamp_ms)]


async def _lane(config: ClientConfig, left: Iterator[DelegationToken], report: Report, stop: asyncio.Event) -> None:
    async with TokenClient(config) as client:
        for token in left:
            report([await _expire(client, token)])
            if stop.is_set():
                return


async def _expire(client: TokenClient, token: DelegationToken) -> Result:
    lost: ConnectionLost | None = None
    result = partial(Result, token.token_id, note=token.owner)
    for _ in range(ATTEMPTS):
        try:
            await client.expire(token.hmac)
        except TokenNotFound:
            # After a lost answer it was most likely this request that ended it.
            return result(ZnodeResult.CHANGED if lost else ZnodeResult.GONE)
        except RequestRefused as refused:
            return result(ZnodeResult.FAILED, str(refused))
        except ConnectionLost as error:
            lost = error
        else:
            return result(ZnodeResult.CHANGED)
    return result(ZnodeResult.FAILED, str(lost))
