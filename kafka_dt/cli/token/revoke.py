"""`kafka-dt token revoke`, also named `expire-all`: end tokens by their ids, or all that a filter selects.

Two ways in (`kafka_dt/cli/cluster_options.py`), with the same filters and the same summary: on ZooKeeper itself, or
over the Kafka protocol. There the server describes the tokens that the user may see, and each token that is selected
is deleted by its HMAC. A server answers one connection's requests one after the other, so several connections share
the work.

Source: KIP-48, first draft ("invalidate all tokens"); KIP-48 (ExpireDelegationToken).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Final, TextIO

import click

from kafka_dt.audit import EventType, Outcome
from kafka_dt.bulk import NOT_READABLE, Expire, Result, ZnodeResult
from kafka_dt.cli.audit_recorder import origin_of, recorder_of
from kafka_dt.cli.cluster_options import ClusterOptions, cluster_options
from kafka_dt.cli.filters import ExpiryRun, all_option, confirm_selection, filter_options
from kafka_dt.cli.keys.nodes import wait_for_workers
from kafka_dt.cli.node_options import keyring_if_any
from kafka_dt.cli.options import example, login_option_named, yes_option
from kafka_dt.cli.output import Output, printable
from kafka_dt.cli.token.ids import TakesTokenIds
from kafka_dt.client import ClientConfig, ConnectionLost, RequestRefused, TokenClient, TokenClientError, TokenNotFound
from kafka_dt.lanes import run_lanes
from kafka_dt.zookeeper.znodes.kafka import is_node_name

if TYPE_CHECKING:
    from kafka_dt.audit.recorder import Recorder
    from kafka_dt.bulk import Report, TokenFilter
    from kafka_dt.client import DelegationToken
    from kafka_dt.config import Settings
    from kafka_dt.tokens import Keyring
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

CONNECTIONS: Final = 16
ATTEMPTS: Final = 3
"""How often the expiry of a token is asked for when the connection breaks."""
NOT_SHOWN: Final = "the server shows this user no such token"
"""Why a named token fails over the Kafka protocol: it may be gone, or belong to another user."""
_NODES_TIMEOUT_S: Final = 5.0
"""How long nodes may take to read their key files again; they look every second."""
_NAMES_SHOWN: Final = 20


@example(
    "kafka-dt token revoke W23eVbJOQheJ-v0f6A8uRg",
    "kafka-dt token revoke --config server.properties --owner User:alice --dry-run",
    "kafka-dt token revoke --config server.properties --from-file stolen.txt",
)
@click.command(cls=TakesTokenIds)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--from-file",
    "file",
    type=click.File("r", encoding="utf-8"),
    metavar="FILE",
    help="A file with token ids, one a line; - is the standard input. Empty lines and lines with # are left out.",
)
@filter_options
@cluster_options
@click.option("--unreadable", is_flag=True, help="End tokens that no secret key of the settings can read.")
@click.option("--dry-run", is_flag=True, help="Only show which tokens would end.")
@all_option
@yes_option
def revoke(
    *,
    ids: tuple[str, ...],
    file: TextIO | None,
    options: ClusterOptions,
    output: Output,
    selected: TokenFilter,
    unreadable: bool,
    dry_run: bool,
    everything: bool,
    confirmed: bool,
) -> None:
    """End tokens, by their ids or by filters.

    The command ends tokens that are given by their ids at once. It asks before it ends those of an owner, of a renewer,
    or issued before a time, and a script must say --yes. Without ids and filters the command ends every token: it asks,
    and a script must say --all (--yes is not enough).

    With --config the command works on ZooKeeper itself, with the settings of a node, and records an audit event for
    each token if those settings have audit. Without it the command works over the Kafka protocol, as the user that logs
    in; tokens that this user may not see stay. Several owners, or renewers, mean any of them; different filters must
    all hold. `expire-all` is another name of this command.

    The owner of an unreadable token is unknown: with a filter the command leaves and counts the token, without one the
    token counts as failed. A token that is given by its id ends in any case. --unreadable ends these tokens: alone it
    ends no others, with a filter it also ends the tokens that the filter selects, with --all it ends every token. It
    needs no secret key in the settings. Without --all the command refuses it while a live node has keys that the
    settings lack.
    """
    names = None if file is None and not ids else list(dict.fromkeys((*ids, *_ids_of(file))))
    if names is not None and (unreadable or everything):
        raise click.UsageError("Give token ids, or --unreadable and --all, not both: a named token ends in any case.")
    for name in names or ():
        if not is_node_name(name):
            raise click.UsageError(f"{name!r} cannot be the id of a token.")
    if unreadable and not options.on_zookeeper:
        raise click.UsageError("--unreadable needs --config: a node does not show tokens that it cannot read.")
    # Before the question: an answer to it is no use where a setting is wrong.
    reach = options.settings(needs_key=not unreadable) if options.on_zookeeper else options.client()
    if names is None:
        confirm_selection(selected, everything=everything, dry_run=dry_run, unreadable=unreadable, confirmed=confirmed)
    only_unreadable = unreadable and selected.selects_all and not everything
    revocation = _Revocation(None if only_unreadable else selected, names, unreadable=unreadable, dry_run=dry_run)
    if dry_run and output is Output.JSON:
        revocation.token_ids = []
    with login_option_named():
        work = revocation.over_kafka(reach) if isinstance(reach, ClientConfig) else revocation.on_settings(reach)
        revocation.do(work, output)


def _ids_of(file: TextIO | None) -> Iterator[str]:
    if file is None:
        return
    try:
        lines = [line.strip() for line in file]
    except ValueError:
        raise click.UsageError(f"--from-file {file.name} is no text.") from None
    yield from (line for line in lines if line and not line.startswith("#"))


class _Revocation(ExpiryRun):
    """One run.

    selected: the readable tokens that end; None = none of them
    names: the only tokens that are looked at; None = all
    unreadable: whether unreadable tokens end as well
    """

    def __init__(
        self, selected: TokenFilter | None, names: Sequence[str] | None, *, unreadable: bool, dry_run: bool
    ) -> None:
        super().__init__(dry_run=dry_run)
        self._selected = selected
        self._names = names
        self._unreadable = unreadable
        self._missing: list[str] = []
        self._advice = ""

    def write(self, output: Output) -> None:
        """Print which tokens ended, and how those end that failed."""
        super().write(output)
        if self._missing:
            more = f" and {len(self._missing) - _NAMES_SHOWN} more" if len(self._missing) > _NAMES_SHOWN else ""
            self.tell(f"No such token: {', '.join(map(printable, self._missing[:_NAMES_SHOWN]))}{more}")
        if self.summary.failed and self._advice:
            self.tell(self._advice)

    async def on_settings(self, settings: Settings) -> None:
        """End the tokens in ZooKeeper."""
        keyring = keyring_if_any(settings)
        selected, names = self._selected, self._names
        ends_all = selected is not None and selected.selects_all

        async def look_around(client: ZooKeeperClient) -> None:
            if self._unreadable and not ends_all:
                await _require_no_other_keys(client, keyring)

        self._advice = "" if self._unreadable else "Tokens that are not readable end with --unreadable"
        expire = Expire(keyring, selected, unreadable=self._unreadable or (ends_all and names is not None))
        async with AsyncExitStack() as stack:
            recorder = None if self.dry_run else await stack.enter_async_context(recorder_of(settings, "revoke"))

            def heard(results: Sequence[Result]) -> None:
                self._heard(results)
                if recorder is not None:
                    _record(recorder, results)

            await self.on_zookeeper(settings, expire, names=names, before=look_around, heard=heard)

    async def over_kafka(self, config: ClientConfig) -> None:
        """End the tokens that a server shows."""
        assert self._selected is not None  # noqa: S101 - a node shows readable tokens only
        shown = await _described(config, None if self._names is not None else sorted(self._selected.owners) or None)
        not_shown: list[str] = []
        if self._names is not None:
            by_id = {token.token_id: token for token in shown}
            not_shown = [name for name in self._names if name not in by_id]
            shown = [by_id[name] for name in self._names if name in by_id]
        tokens = [
            token for token in shown if self._selected.selects(token.owner, token.renewers, token.issue_timestamp_ms)
        ]

        async def work(stop: asyncio.Event, report: Report) -> None:
            report([Result(name, ZnodeResult.FAILED, NOT_SHOWN) for name in not_shown])
            if self.dry_run:
                report([Result(token.token_id, ZnodeResult.CHANGED, note=token.owner) for token in tokens])
            else:
                lane = partial(_lane, config, iter(tokens), report, stop)
                await run_lanes(lane, min(CONNECTIONS, len(tokens)), raises=TokenClientError)

        await self.through(len(not_shown) + len(tokens), work, heard=self._heard)

    def _heard(self, results: Sequence[Result]) -> None:
        for result in results:
            changed = result.outcome is ZnodeResult.CHANGED
            if result.outcome is ZnodeResult.GONE and self._names is not None:
                self._missing.append(result.token_id)
            if result.note is NOT_READABLE:
                self.ended_unread += changed
                self.not_readable += not changed
            elif changed and isinstance(result.note, str):
                self.by_owner[result.note] += 1
            if changed and self.token_ids is not None:
                self.token_ids.append(result.token_id)


def _record(recorder: Recorder, results: Sequence[Result]) -> None:
    for result in results:
        if result.outcome is ZnodeResult.CHANGED:
            owner = result.note if isinstance(result.note, str) and result.note is not NOT_READABLE else None
            recorder.record(
                EventType.TOKEN_EXPIRED, Outcome.OK, origin_of("token revoke"), token_id=result.token_id, owner=owner
            )


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


async def _described(config: ClientConfig, owners: Sequence[str] | None) -> list[DelegationToken]:
    async with TokenClient(config) as client:
        # Those that an owner may renew come along; the filter takes them out.
        return await client.describe(owners)


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
