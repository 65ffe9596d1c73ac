"""The options that name a source of audit events: files of nodes, or the topic.

@click.command()
@source_options
def command(*, source: Source) -> None:
    source.check(conf)
    with started("ingest", master, conf, kafka=source.is_topic) as spark:
        lines = source.lines()
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_dt.cli.options import EXISTING_FILE, bootstrap_server_option, together
from kafka_dt.pipeline.errors import NO_DIRECTORY, NoSource
from kafka_dt.pipeline.local_paths import is_missing

if TYPE_CHECKING:
    from kafka_dt.pipeline.ingest import LineSource

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class DurationType(click.ParamType[int]):
    """A duration such as 90s, 15m or 7d; milliseconds in the code."""

    name = "duration"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it."""
        match = re.fullmatch(r"(\d{1,9})(ms|s|m|h|d)", str(value))
        if match is None:
            self.fail(f"{value!r} is not of the form 90s, 15m, 12h or 7d.", param, ctx)
        return int(match[1]) * _UNITS_MS[match[2]]


DURATION: Final = DurationType()


@dataclass(frozen=True, slots=True)
class Source:
    """What a user chose."""

    directory: str | None
    topic: str | None
    bootstrap_server: str | None
    command_config: Path | None
    skip_lost: bool
    cluster_id: str | None

    @property
    def is_topic(self) -> bool:
        """Whether it is a topic."""
        return self.topic is not None

    def check(self, conf: Mapping[str, str]) -> None:
        """See that a directory of this machine is there, without Spark.

        Args:
            conf: settings of Spark.

        Raises:
            NoSource: there is no such directory.
        """
        if self.directory is not None and is_missing(self.directory, conf):
            raise NoSource(self.directory, NO_DIRECTORY)

    def lines(self, *, batch: int | None = None, begin_ms: int | None = None) -> LineSource:
        """Make the source.

        Args:
            batch: how many events are one batch: of a topic at most, of files about.
            begin_ms: when a topic's records that are read first were produced; None = the first ones.
        """
        from kafka_dt.pipeline.ingest import FileSource, TopicSource  # noqa: PLC0415 - pyspark is an extra
        from kafka_dt.pipeline.ingest.sources import BATCH_BYTES, BATCH_RECORDS, DEFAULT_CLUSTER  # noqa: PLC0415

        records = BATCH_RECORDS if batch is None else batch
        if self.topic is not None:
            return TopicSource(
                self.topic,
                self.bootstrap_server,
                self.command_config,
                skips_lost=self.skip_lost,
                batch_records=records,
                begin_ms=begin_ms,
            )
        assert self.directory is not None  # noqa: S101 - one of the two was given
        batch_bytes = BATCH_BYTES * records // BATCH_RECORDS
        return FileSource(self.directory, self.cluster_id or DEFAULT_CLUSTER, batch_bytes)


def source_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options: the argument `source`."""

    @wraps(command)
    def with_source(
        *,
        directory: str | None,
        topic: str | None,
        bootstrap_server: str | None,
        command_config: Path | None,
        skip_lost: bool,
        cluster_id: str | None,
        **arguments: Any,
    ) -> None:
        if (directory is None) is (topic is None):
            raise click.UsageError("Give one of '--from' and '--from-topic'.")
        if topic is not None and cluster_id is not None:
            raise click.UsageError("'--cluster-id' is for '--from': a topic has the id of its Kafka cluster.")
        source = Source(directory, topic, bootstrap_server, command_config, skip_lost, cluster_id)
        command(source=source, **arguments)

    return _options(with_source)


_options: Final = together(
    click.option("--from", "directory", metavar="DIR", help="A directory with the closed files (*.jsonl) of nodes."),
    click.option("--from-topic", "topic", metavar="TOPIC", help="The topic that nodes write to."),
    bootstrap_server_option("Brokers of the topic."),
    click.option(
        "--command-config",
        type=EXISTING_FILE,
        metavar="FILE",
        help="Kafka client properties for the login to these brokers, such as those of a delegation token. The command "
        "reads the file again when it changes.",
    ),
    click.option("--skip-lost", is_flag=True, help="Pass over records that the topic deleted before they were read."),
    click.option(
        "--cluster-id",
        metavar="ID",
        help="Name the cluster whose nodes wrote the files of --from; a topic has the id of its Kafka cluster. "
        "[default: default]",
    ),
)
