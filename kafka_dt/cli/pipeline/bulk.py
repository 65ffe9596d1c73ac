"""`kafka-dt pipeline seal|unseal|rotate|verify|expire`: work on every token, distributed over Spark's executors.

They do what `kafka-dt keys seal|unseal|verify` and `token revoke` do, with the settings of a node, for so many
tokens that one machine takes too long. `rotate` does the long work after `kafka-dt keys rotate`, so that `keys retire`
then has few tokens left to seal.

Each executor reads the secret keys itself, so they have to be `file:` or `env:` in the configuration. The commands
check what they need before Spark starts, or before they change the first token. Nodes have to accept the key that
executors seal with. Until the work is done, commands on this machine that change keys refuse to run.

Limits: sealing does not change which key made a token's HMAC; see docs/how-to/change-keys.md.

Source: KIP-395, "Future work"; kafka_dt.pipeline.bulk.jobs.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from kafka_dt.bulk import TokenFilter
from kafka_dt.cli.bulk_run import VERIFIED, BulkRun
from kafka_dt.cli.filters import ExpiryRun, all_option, confirm_selection, filter_options
from kafka_dt.cli.keys.files import KeysError, keys_stay
from kafka_dt.cli.keys.nodes import in_the_other_form, named, workers_with_tokens
from kafka_dt.cli.node_options import dry_run_option, node_options, now_ms, tell_if_no_token_was_made
from kafka_dt.cli.options import example, together, yes_option
from kafka_dt.cli.pipeline.session import session_options, started
from kafka_dt.config import ConfigError, from_properties, given_properties
from kafka_dt.config.secret_keys import CURRENT
from kafka_dt.log import set_up_logging
from kafka_dt.pipeline.bulk.cluster_access import ClusterAccess
from kafka_dt.pipeline.bulk.job import CHANGES_A_SECOND, BulkJob, JobKind, PartitionResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

    from kafka_dt.bulk import Report
    from kafka_dt.cli.output import Output
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

_parallelism = click.option(
    "--parallelism",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many partitions to work on at the same time. [default: as many as the executors have cores]",
)
_rate = click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    default=CHANGES_A_SECOND,
    show_default=True,
    metavar="N",
    help="The most tokens that all executors together change in a second. Beside brokers that have to read the "
    "changes, the command keeps to a lower rate that they can follow.",
)


def _job_options(*, writes: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options of every command, and of those that write."""
    own = (dry_run_option, _rate, _parallelism) if writes else (_parallelism,)
    return together(node_options, *own, session_options)


@example("kafka-dt pipeline seal --config server.properties --dry-run")
@click.command()
@_job_options(writes=True)
def seal(*, dry_run: bool, **given: Any) -> None:
    """Seal every token in ZooKeeper with the current key.

    Tokens that an older key sealed are sealed again. Brokers cannot read sealed tokens.
    """
    _Work(BulkRun("Sealing", dry_run=dry_run), JobKind.SEAL, **given).do()


@example("kafka-dt pipeline unseal --config server.properties --dry-run")
@click.command()
@_job_options(writes=True)
def unseal(*, dry_run: bool, **given: Any) -> None:
    """Write every token in ZooKeeper plain, as brokers do.

    The command announces each change, so that brokers read the token.
    """
    _Work(BulkRun("Unsealing", dry_run=dry_run), JobKind.UNSEAL, **given).do()


@example("kafka-dt pipeline rotate --config server.properties --rate 2000")
@click.command()
@_job_options(writes=True)
def rotate(*, dry_run: bool, **given: Any) -> None:
    """Seal with the current key the tokens that older keys sealed.

    Run the command after `kafka-dt keys rotate`, which gives all nodes a new key. Plain tokens stay plain. When the
    tokens that the older key made have ended, `kafka-dt keys retire` takes that key away.
    """
    _Work(BulkRun("Sealing again", dry_run=dry_run), JobKind.ROTATE, **given).do()


@example("kafka-dt pipeline verify --config server.properties")
@click.command()
@_job_options(writes=False)
def verify(**given: Any) -> None:
    """Check every token in ZooKeeper: MAC, JSON, name, key and times."""
    _Work(BulkRun("Verifying", words=VERIFIED), JobKind.VERIFY, **given).do()


@example("kafka-dt pipeline expire --config server.properties --owner User:alice --dry-run")
@click.command()
@_job_options(writes=True)
@filter_options
@all_option
@yes_option
def expire(*, selected: TokenFilter, dry_run: bool, everything: bool, confirmed: bool, **given: Any) -> None:
    """End tokens, by filters or all of them.

    Several owners, or renewers, mean any of them; different filters must all hold. The command asks before, and a
    script must say --yes. Without a filter the command ends every token: it asks, and a script must say --all (--yes is
    not enough). The owner of an unreadable token is unknown: with a filter the command leaves and counts the token,
    without one the token counts as failed.
    """
    confirm_selection(selected, everything=everything, dry_run=dry_run, confirmed=confirmed)
    _Work(ExpiryRun(dry_run=dry_run), JobKind.EXPIRE, selected=selected, **given).do()


@dataclass(frozen=True, kw_only=True)
class _Work:
    """One command's work, with the options that it was given."""

    run: BulkRun = field(kw_only=False)
    kind: JobKind = field(kw_only=False)
    config: Path | None
    overrides: tuple[str, ...]
    output: Output
    parallelism: int | None
    master: str | None
    conf: Mapping[str, str]
    rate: float | None = None
    selected: TokenFilter = field(default_factory=TokenFilter)
    """Which tokens end."""

    def do(self) -> None:
        """Do it, print the summary and end the process."""
        set_up_logging("pipeline", level="ERROR")
        properties = given_properties(self.config, self.overrides).properties
        access = _access(self.config, properties)
        lock = _keys_stay(properties) if self.kind.seals and not self.run.dry_run else nullcontext()
        with lock, started(f"pipeline {self.kind.value}", self.master, self.conf) as spark:
            self.run.do(self._with(spark, access), self.output)

    async def _with(self, spark: SparkSession, access: ClusterAccess) -> None:
        # Imported here: pyspark is an extra, and starting takes long enough.
        from kafka_dt.pipeline.bulk.jobs import BulkJobs  # noqa: PLC0415

        async with access.connected() as client:
            await tell_if_no_token_was_made(client, access.zookeeper)
            at_once, key_ids = await self._executors(spark, access)
            job = BulkJob(self.kind, access, self.selected, self.run.dry_run, at_once, self.rate, key_ids)
            if not self.run.dry_run:
                await self._look_around(client, key_ids[0])
            jobs = BulkJobs(spark, job, now_ms=now_ms)
            with Console(stderr=True).status("Listing the tokens"):
                total = await jobs.prepare(client)

            async def work(stop: asyncio.Event, _report: Report) -> None:
                await jobs.run(client, heard=self._heard, stop=stop)

            await self.run.through(total, work)

    async def _executors(self, spark: SparkSession, access: ClusterAccess) -> tuple[int, tuple[str, ...]]:
        """Return how many tasks they run at a time, and the ids of their secret keys; a busy cluster takes its time."""
        from kafka_dt.pipeline.bulk.executors import cancel_jobs, executors_ring, slots  # noqa: PLC0415 - as above

        with Console(stderr=True).status("Waiting for executors"):
            try:
                at_once = self.parallelism
                if at_once is None:
                    at_once = await asyncio.to_thread(slots, spark)
                return at_once, await asyncio.to_thread(executors_ring, spark, access, at_once)
            except asyncio.CancelledError:
                cancel_jobs(spark.sparkContext)  # or the process would wait for their threads
                raise

    async def _look_around(self, client: ZooKeeperClient, current: str) -> None:
        """See that nodes can read what is sealed, and tell of nodes that write the other form."""
        if self.kind.seals:
            lagging = [state for state in await workers_with_tokens(client) if current not in state.keys]
            if lagging:
                raise KeysError(
                    f"the current key of the executors, {current}, is not accepted by {named(lagging)}, which could "
                    "not read what is sealed with it: give nodes and executors the same keys, or finish the rotation "
                    "first (kafka-dt keys rotate)"
                )
        if self.kind in {JobKind.SEAL, JobKind.UNSEAL}:
            for line in await in_the_other_form(client, sealed=self.kind is JobKind.SEAL):
                self.run.tell(line)

    def _heard(self, result: PartitionResult) -> None:
        self.run.merge(result.summary)
        if isinstance(self.run, ExpiryRun):
            self.run.by_owner.update(result.by_owner)
            self.run.not_readable += result.not_readable


def _access(config: Path | None, properties: Mapping[str, str]) -> ClusterAccess:
    if config is None and not properties:
        raise click.UsageError("Missing option '--config', the server.properties of a node.")
    access = ClusterAccess.of_properties(properties)
    if not access.has_key:
        raise ConfigError(CURRENT, "is needed, as file:/path or env:NAME, which executors look up")
    return access


def _keys_stay(properties: Mapping[str, str]) -> AbstractContextManager[None]:
    """Keep the commands of this machine that change keys from it, if the keys are in files here."""
    with suppress(ConfigError):
        return keys_stay(from_properties(properties).settings)
    return nullcontext()
