"""What `kafka-dt pipeline seal|unseal|rotate|verify|expire` do when they are told what: look around, start Spark, work.

    Work(BulkRun("Verifying"), given, JobKind.VERIFY).do()

What cannot go well is told before Spark starts, or before the first token is changed. Nodes have to accept the key that
executors seal with; commands of this machine that change keys refuse until it is done.

Source: KIP-395, "Future work"; kafka_dt.pipeline.bulk.jobs.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from kafka_dt.bulk.filters import TokenFilter
from kafka_dt.cli.bulk_run import BulkRun, now_ms
from kafka_dt.cli.errors import one_line
from kafka_dt.cli.keys.files import KeyFiles, KeysError
from kafka_dt.cli.keys.nodes import any_node, named, workers_with_tokens
from kafka_dt.cli.node_options import Output, tell_if_no_token_was_made
from kafka_dt.cli.pipeline.session import started
from kafka_dt.cli.token.expire_all import write_expiry
from kafka_dt.config import ConfigError, from_properties, given_properties
from kafka_dt.config.secret_keys import CURRENT
from kafka_dt.log import set_up_logging
from kafka_dt.pipeline.bulk.cluster_access import ClusterAccess
from kafka_dt.pipeline.bulk.job import BulkJob, JobKind, PartitionResult
from kafka_dt.zookeeper.errors import ZooKeeperError
from kafka_dt.zookeeper.stores.nodes import live_brokers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka_dt.bulk.engine import Report
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient


@dataclass(frozen=True, slots=True)
class Given:
    """What every command is told."""

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
        dry_run: whether it is only found out what would be done.
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
                cancel_jobs(spark.sparkContext)  # or their threads would be waited for
                raise

    async def _look_around(self, client: ZooKeeperClient, current: str) -> None:
        """See that nodes can read what is sealed, and tell of those who write the other form."""
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
