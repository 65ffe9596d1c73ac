"""Makes a table of Delta tables from one of kafka-dt 0.1.

    converted = convert(spark, Table("/data/audit-0.1"), Table("/data/audit"), cluster_id="east")
    converted.events

The old table is only read. The next ingest into the new one continues where the last one into the old one has ended:
the checkpoints are copied. A batch that the old journal had and Spark's checkpoint did not is noted in the copy as
done; a batch that was under way is left out, and is run again. The new table is made beside its place, as
`*.partial`, and gets its name when all of it is there. A conversion that fails leaves nothing; one that is
interrupted may leave that.

Limits: no ingest may write to the old table meanwhile. Some object stores copy all files to rename a directory.

Source: `table/old.py`; Spark's `CommitLog` and `HDFSMetadataLog` (the form of a checkpoint's commits).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from kafka_dt.pipeline.errors import NotConverted
from kafka_dt.pipeline.ingest import cause_of
from kafka_dt.pipeline.ingest.sources import topic_checkpoint
from kafka_dt.pipeline.table.old import JOURNAL, OldFiles
from kafka_dt.pipeline.table.schema import CLUSTER_ID, EVENT_SCHEMA, QUARANTINE_SCHEMA
from kafka_dt.pipeline.table.table import CHECKPOINTS, EVENTS, QUARANTINE, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka_dt.pipeline.table.storage import Storage

_SERIES: Final = "conversion"
_PARTIAL: Final = ".partial"
_TOPIC: Final = "topic-"
_COMMITTED: Final = 'v1\n{"nextBatchWatermarkMs":0}'
"""What Spark notes of a batch of a query without watermarks that is done."""


@dataclass(frozen=True, slots=True)
class Converted:
    """What the new table has."""

    events: int
    quarantined: int
    sources: int
    """How many checkpoints were copied."""


def convert(spark: SparkSession, old: Table, new: Table, cluster_id: str) -> Converted:
    """Make a new table of an old one.

    Args:
        spark: does the work.
        old: a table of kafka-dt 0.1.
        new: where there is none yet.
        cluster_id: names the cluster of all events; if a topic was ingested, the id of its Kafka cluster.

    Raises:
        NotConverted: the one is no old table, or the other is there already, or Spark could not do it.
        TableBroken: an entry of the old journal cannot be read.
    """
    source, target = old.storage(spark), new.storage(spark)
    if not source.exists(JOURNAL):
        raise NotConverted(old.path, "it is no table of kafka-dt 0.1")
    if target.exists():
        raise NotConverted(old.path, f"{new.path} is there already; name a new directory")
    partial = Table(f"{target.root}{_PARTIAL}")
    made = partial.storage(spark)
    if made.exists():
        place = made.root.removeprefix("file:")
        raise NotConverted(old.path, f"{place} is there: if no other conversion runs, delete it")
    try:
        sources = _fill(spark, source, partial, cluster_id)
        _rename(made, target, old)
    except BaseException as error:
        with suppress(Py4JError, OSError):  # the JVM may be gone
            made.delete("")
        if isinstance(error, PySparkException | Py4JError):
            raise NotConverted(old.path, cause_of(error)) from error
        raise
    target.sync("")
    return Converted(new.events(spark).count(), new.quarantine(spark).count(), sources)


def _fill(spark: SparkSession, source: Storage, new: Table, cluster_id: str) -> int:
    """Make the new table, and return how many checkpoints were copied."""
    target = new.storage(spark)
    target.make_root()
    files = OldFiles(source)
    sources = _copy_checkpoints(source, target, files.done(), cluster_id)
    quarantine, events = new.quarantine_files(spark), new.event_files(spark)
    cluster = F.lit(cluster_id)
    quarantine.append(files.rows(spark, QUARANTINE, QUARANTINE_SCHEMA).withColumn(CLUSTER_ID, cluster), _SERIES, 0)
    events.append(files.rows(spark, EVENTS, EVENT_SCHEMA).withColumn(CLUSTER_ID, cluster), _SERIES, 0)
    for each in (quarantine, events):
        each.optimize()
    return sources


def _rename(made: Storage, target: Storage, old: Table) -> None:
    if not made.rename_to(target):
        raise NotConverted(old.path, f"{target.root} cannot be made; look at the rights in the directory above it")


def _copy_checkpoints(source: Storage, target: Storage, done: dict[str, int], cluster_id: str) -> int:
    names = [each.removeprefix(f"{CHECKPOINTS}/") for each in source.names(CHECKPOINTS)]
    for name in names:
        new_name = topic_checkpoint(name, cluster_id) if name.startswith(_TOPIC) else name
        copy = f"{CHECKPOINTS}/{new_name}"
        source.copy_to(f"{CHECKPOINTS}/{name}", target, copy)
        last = done.get(f"{name}-{target.read_document(f'{copy}/metadata')['id']}")
        if last is not None and not target.exists(f"{copy}/commits/{last}"):
            target.write_text(f"{copy}/commits/{last}", _COMMITTED)
    return len(names)
