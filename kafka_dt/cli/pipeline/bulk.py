"""`kafka-dt pipeline seal|unseal|rotate|verify|expire`: work on every token, distributed over Spark's executors.

They do what `kafka-dt keys seal|unseal|verify` and `token expire-all` do, with the settings of a node, for so many
tokens that one machine takes too long. `rotate` does the long work after `kafka-dt keys rotate`: it seals with the
current key the tokens that an older key has sealed, and leaves plain tokens plain. `keys retire` then has few tokens
left to seal.

Each executor reads the secret keys itself, so they have to be `file:` or `env:` in the configuration. `--rate` limits
the changes of a second, for all executors together.

The commands check what they need before Spark starts, or before they change the first token. Nodes have to accept the
key that executors seal with. Until the work is done, commands on this machine that change keys refuse to run.

Limits: sealing does not change which key made a token's HMAC; see docs/how-to/change-keys.md.

Source: KIP-395, "Future work"; kafka_dt.pipeline.bulk.jobs.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from kafka_dt.bulk import TokenFilter
from kafka_dt.cli.bulk_run import BulkRun, now_ms
from kafka_dt.cli.errors import one_line
from kafka_dt.cli.keys.bulk import VERIFIED
from kafka_dt.cli.keys.files import KeyFiles, KeysError
from kafka_dt.cli.keys.nodes import any_node, named, workers_with_tokens
from kafka_dt.cli.node_options import Output, node_options, tell_if_no_token_was_made
from kafka_dt.cli.pipeline.session import session_options, started
from kafka_dt.cli.token.expire_all import expiry_run, write_expiry
from kafka_dt.cli.token.filters import confirm, confirmed_option, filter_options
from kafka_dt.config import ConfigError, from_properties, given_properties
from kafka_dt.config.secret_keys import CURRENT
from kafka_dt.log import set_up_logging
from kafka_dt.pipeline.bulk.cluster_access import ClusterAccess
from kafka_dt.pipeline.bulk.job import CHANGES_A_SECOND, BulkJob, JobKind, PartitionResult
from kafka_dt.zookeeper.errors import ZooKeeperError
from kafka_dt.zookeeper.stores.nodes import live_brokers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka_dt.bulk import Report
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

_parallelism = click.option(
    "--parallelism",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many partitions are worked on at the same time. [default: as many as the executors have cores]",
)
_rate = click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    default=CHANGES_A_SECOND,
    show_default=True,
    metavar="N",
    help="How many tokens are changed in a second at most, by all executors together; where brokers have to hear of "
    "the changes, no more than they take in.",
)
_dry_run = click.option("--dry-run", is_flag=True, help="Only count what would be changed.")


def _job_options(*, writes: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of every command as the argument `given`, and `--dry-run` to a command that writes."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_given(**arguments: Any) -> None:
            told = {name: arguments.pop(name, None) for name in Given.__slots__}
            command(given=Given(**told), **arguments)

        decorated: Callable[..., None] = session_options(with_given)
        for option in (_parallelism, _rate, _dry_run) if writes else (_parallelism,):
            decorated = option(decorated)
        return node_options(decorated)

    return decorate


@click.command()
@_job_options(writes=True)
def seal(*, given: Given, dry_run: bool) -> None:
    """Seal every token in ZooKeeper with the current key.

    What is sealed with an older key is sealed again. Brokers cannot read sealed tokens.
    """
    Work(BulkRun("Sealing", dry_run=dry_run), given, JobKind.SEAL, dry_run=dry_run).do()


@click.command()
@_job_options(writes=True)
def unseal(*, given: Given, dry_run: bool) -> None:
    """Write every token in ZooKeeper plain, as brokers do, and tell them."""
    Work(BulkRun("Unsealing", dry_run=dry_run), given, JobKind.UNSEAL, dry_run=dry_run).do()


@click.command()
@_job_options(writes=True)
def rotate(*, given: Given, dry_run: bool) -> None:
    """Seal with the current key what older keys have sealed.

    For after `kafka-dt keys rotate`, which gives all nodes a new key. Plain tokens stay plain. Then
    `kafka-dt keys retire` takes the older key away, when the tokens that it made have ended.
    """
    run = BulkRun("Sealing again", dry_run=dry_run)
    Work(run, given, JobKind.ROTATE, dry_run=dry_run).do()


@click.command()
@_job_options(writes=False)
def verify(*, given: Given) -> None:
    """Check every token in ZooKeeper: MAC, JSON, name, key and times."""
    Work(BulkRun("Verifying", words=VERIFIED), given, JobKind.VERIFY).do()


@click.command()
@_job_options(writes=True)
@filter_options
@confirmed_option
def expire(*, given: Given, selected: TokenFilter, dry_run: bool, confirmed: bool) -> None:
    """End all tokens, or those of an owner, of a renewer, or issued before a time.

    Several owners, or renewers, mean any of them; different filters must all hold. A token that is not readable
    has no known owner: with a filter the command leaves and counts it, without one it counts as failed.
    """
    if not (dry_run or confirmed):
        confirm(selected)
    Work(expiry_run(dry_run=dry_run), given, JobKind.EXPIRE, selected=selected, dry_run=dry_run).do()


@dataclass(frozen=True, slots=True)
class Given:
    """The options that every command has."""

    config: Path | None
    overrides: tuple[str, ...]
    output: Output
    parallelism: int | None
    rate: float | None
    master: str | None
    conf: Mapping[str, str]


class Work:
    """One command's work.

    Args:
        run: shows it.
        given: what the command was told.
        kind: what is done.
        selected: which tokens end.
        dry_run: whether the command only counts what it would change.
    """

    def __init__(
        self, run: BulkRun, given: Given, kind: JobKind, *, selected: TokenFilter | None = None, dry_run: bool = False
    ) -> None:
        self._run = run
        self._given = given
        self._kind = kind
        self._selected = selected or TokenFilter()
        self._dry_run = dry_run
        self._by_owner: Counter[str] = Counter()
        self._not_readable = 0

    def do(self) -> None:
        """Do it, print the summary and end the process."""
        set_up_logging("pipeline", logging.ERROR)
        given = self._given
        with one_line(ConfigError, KeysError, OSError):
            properties = given_properties(given.config, given.overrides)
            access = _access(given.config, properties)
            lock = _keys_stay(properties) if self._kind.seals and not self._dry_run else nullcontext()
        name = f"pipeline {self._kind.value}"
        with (
            one_line(ConfigError, KeysError, OSError, ZooKeeperError),
            lock,
            started(name, given.master, given.conf) as spark,
        ):
            try:
                asyncio.run(self._with(spark, access))
            finally:
                if self._run.begun:
                    self._write()
        self._run.exit()

    async def _with(self, spark: SparkSession, access: ClusterAccess) -> None:
        # Imported here: pyspark is an extra, and starting takes long enough.
        from kafka_dt.pipeline.bulk.jobs import BulkJobs  # noqa: PLC0415

        async with access.connected() as client:
            await tell_if_no_token_was_made(client, access.zookeeper)
            at_once, key_ids = await self._executors(spark, access)
            job = BulkJob(self._kind, access, self._selected, self._dry_run, at_once, self._given.rate, key_ids)
            if not self._dry_run:
                await self._look_around(client, key_ids[0])
            jobs = BulkJobs(spark, job, now_ms=now_ms)
            with Console(stderr=True).status("Listing the tokens"):
                total = await jobs.prepare(client)

            async def work(stop: asyncio.Event, _report: Report) -> None:
                await jobs.run(client, heard=self._heard, stop=stop)

            await self._run.through(total, work)

    async def _executors(self, spark: SparkSession, access: ClusterAccess) -> tuple[int, tuple[str, ...]]:
        """Return how many tasks they run at a time, and the ids of their secret keys; a busy cluster takes its time."""
        from kafka_dt.pipeline.bulk.executors import cancel_jobs, executors_ring, slots  # noqa: PLC0415 - as above

        with Console(stderr=True).status("Waiting for executors"):
            try:
                at_once = self._given.parallelism
                if at_once is None:
                    at_once = await asyncio.to_thread(slots, spark)
                return at_once, await asyncio.to_thread(executors_ring, spark, access, at_once)
            except asyncio.CancelledError:
                cancel_jobs(spark.sparkContext)  # or the process would wait for their threads
                raise

    async def _look_around(self, client: ZooKeeperClient, current: str) -> None:
        """See that nodes can read what is sealed, and tell of nodes that write the other form."""
        if self._kind.seals:
            lagging = [state for state in await workers_with_tokens(client) if current not in state.keys]
            if lagging:
                raise KeysError(
                    f"the current key of the executors, {current}, is not accepted by {named(lagging)}, which could "
                    "not read what is sealed with it: give nodes and executors the same keys, or finish the rotation "
                    "first (kafka-dt keys rotate)"
                )
        if self._kind is JobKind.SEAL:
            if brokers := await live_brokers(client):
                self._run.tell(f"Brokers are live (ids {', '.join(brokers)}): they cannot read what is sealed")
            if await any_node(client, seals=False):
                self._run.tell(
                    "Nodes are live that write tokens plain (delegation.token.metadata.encryption.enable=false)"
                )
        if self._kind is JobKind.UNSEAL and await any_node(client, seals=True):
            self._run.tell("Nodes are live that write tokens sealed (delegation.token.metadata.encryption.enable=true)")

    def _heard(self, result: PartitionResult) -> None:
        self._run.merge(result.summary)
        self._by_owner.update(result.by_owner)
        self._not_readable += result.not_readable

    def _write(self) -> None:
        if self._kind is JobKind.EXPIRE:
            write_expiry(self._run, self._given.output, self._by_owner, self._not_readable)
        else:
            self._run.write_summary(self._given.output)


def _access(config: Path | None, properties: Mapping[str, str]) -> ClusterAccess:
    if config is None and not properties:
        raise click.UsageError("Missing option '--config', the server.properties of a node.")
    access = ClusterAccess.of_properties(properties)
    if not access.has_key:
        raise ConfigError(CURRENT, "is needed, as file:/path or env:NAME, which executors look up")
    return access


def _keys_stay(properties: Mapping[str, str]) -> AbstractContextManager[None]:
    """Keep the commands of this machine that change keys from it, if the keys are in files here."""
    try:
        return KeyFiles(from_properties(properties).settings).locked()
    except (ConfigError, KeysError):
        return nullcontext()
