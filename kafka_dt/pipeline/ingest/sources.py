"""Where the ingest reads lines: the files that nodes write, or the topic that they write to.

    source = FileSource("/var/log/kafka-dt/audit", "east")
    source = TopicSource("kafka-dt-audit", "broker:9092", Path("client.properties"))
    source.lines(spark)         # a stream with the columns of `lines.py`
    source.cluster_id(spark)    # names the cluster whose events they are

A topic is read with Kafka's own client properties, such as those that `kafka-dt token create --output properties`
prints: a delegation token is a login like others. They become options of the source, which Spark shows in no plan, log
or event log; the file is read again when it changes, so that a token can be replaced while the ingest runs. Until the
new file can be used, what the old one had holds: a shell's `>` empties a file before the program writes to it.

Kafka tells the id of a topic's cluster. It names the checkpoint together with the topic, so that topics of the same
name in several clusters are several sources.

Limits: files are known by their paths, so lines that are added to a file after it was read are missed.

Source: Spark, "Structured Streaming + Kafka Integration Guide"; Structured Streaming, "Input sources".
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import javaproperties
from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.files import Stamp, stamp
from kafka_dt.pipeline.errors import NO_DIRECTORY, NoSource
from kafka_dt.pipeline.ingest.lines import LINE
from kafka_dt.pipeline.session import KAFKA_PACKAGE
from kafka_dt.pipeline.table.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

_LOG = logging.getLogger(__name__)

BATCH_BYTES: Final = 512 * 1024 * 1024
BATCH_RECORDS: Final = 1_000_000
DEFAULT_CLUSTER: Final = "default"
"""Names the cluster of files whose cluster has no other name."""
GROUP_PREFIX: Final = "kafka-dt-ingest"
"""What the names of the consumer groups begin with: Spark makes them, for each run."""

_REDACTED_OPTIONS: Final = "(?i)url|jaas|password|secret|token|key"
_NOT_OURS: Final = frozenset(
    {
        "auto.offset.reset",
        "bootstrap.servers",
        "enable.auto.commit",
        "group.id",
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "value.deserializer",
        "value.serializer",
    }
)
"""Client properties that Spark sets itself."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """The closed files `*.jsonl` in a directory and those below it, unless a name begins with `_` or `.`."""

    path: str
    """Of the directory, or its URI."""
    cluster: str = DEFAULT_CLUSTER
    """Names the cluster whose nodes write the files."""
    batch_bytes: int = BATCH_BYTES
    """About how much of them is one batch."""

    def checkpoint(self, spark: SparkSession) -> str:
        """Name their checkpoint in the table, after where they are."""
        return f"files-{_short_hash(self._storage(spark).root)}"

    def cluster_id(self, spark: SparkSession) -> str:  # noqa: ARG002 - a topic needs it
        """Name the cluster."""
        return self.cluster

    def lines(self, spark: SparkSession) -> DataFrame:
        """Give the stream of their lines.

        Raises:
            NoSource: there is no such directory.
        """
        storage = self._storage(spark)
        if not storage.exists():
            raise NoSource(self.path, NO_DIRECTORY)
        files = (
            spark.readStream.format("text")
            .option("lineSep", "\n")
            .option("pathGlobFilter", "*.jsonl")
            .option("recursiveFileLookup", "true")
            .option("maxBytesPerTrigger", self.batch_bytes)
            # The table decides which events are late; by default Spark ignores files that are a week older than others.
            .option("maxFileAge", "36500d")
            .load(storage.root)
        )
        return files.select(
            F.col("value").alias(LINE),
            F.col("_metadata.file_path").alias("source"),
            F.lit(None).cast("int").alias("source_partition"),
            F.lit(None).cast("bigint").alias("source_offset"),
        )

    def has_changed(self) -> bool:
        """Say False: new files are part of the stream."""
        return False

    def _storage(self, spark: SparkSession) -> Storage:
        try:
            return Storage(spark, self.path)
        except Py4JJavaError as error:
            raise NoSource(self.path, str(error.java_exception.getMessage())) from error


@dataclass(slots=True)
class TopicSource:
    """A topic."""

    topic: str
    bootstrap_servers: str | None
    """`host:port,...`; None = as the properties say."""
    command_config: Path | None = None
    """A file of Kafka's client properties; None = no login."""
    skips_lost: bool = field(default=False, kw_only=True)
    """Whether to pass over records that were deleted before they were read; otherwise they are an error."""
    batch_records: int = field(default=BATCH_RECORDS, kw_only=True)
    """How many of them are one batch, at most."""
    begin_ms: int | None = field(default=None, kw_only=True)
    """Where the first run begins: at the first record that was produced then or later; None = at the first one."""
    _properties: dict[str, str] | None = field(default=None, init=False, repr=False)
    """What is used of the file; None = it was not read yet."""
    _seen: Stamp = field(default=None, init=False, repr=False)
    """The file that was read last."""
    _looked_at: Stamp = field(default=None, init=False, repr=False)
    """The file that was there last."""
    _cluster_id: str | None = field(default=None, init=False, repr=False)

    def checkpoint(self, spark: SparkSession) -> str:
        """Name its checkpoint, after its name and its cluster.

        Raises:
            NoSource: see `cluster_id`.
        """
        return topic_checkpoint(f"topic-{_short_hash(self.topic)}", self.cluster_id(spark))

    def cluster_id(self, spark: SparkSession) -> str:
        """Ask the cluster for its id.

        Raises:
            NoSource: it does not answer, or the properties cannot be read, or they name no server.
        """
        if self._cluster_id is None:
            try:
                self._cluster_id = _ask_cluster_id(spark, self._client_properties())
            except Py4JJavaError as error:
                raise NoSource(self._name, innermost(error)) from error
            except TypeError as error:  # Kafka's class is a package, as all names are that the JVM does not know
                raise NoSource(self._name, f"Spark has no Kafka source: add {KAFKA_PACKAGE}") from error
        return self._cluster_id

    def lines(self, spark: SparkSession) -> DataFrame:
        """Give the stream of its records' values.

        Raises:
            NoSource: the properties cannot be read, or name no server.
        """
        options = {f"kafka.{key}": value for key, value in self._client_properties().items()}
        spark.conf.set("spark.sql.redaction.options.regex", _REDACTED_OPTIONS)
        begin = {"startingOffsets": "earliest"}
        if self.begin_ms is not None:
            # A partition that has nothing as new as that begins with what comes next.
            begin = {"startingTimestamp": str(self.begin_ms), "startingOffsetsByTimestampStrategy": "latest"}
        records = (
            spark.readStream.format("kafka")
            .options(**options, **begin)
            .option("subscribe", self.topic)
            .option("maxOffsetsPerTrigger", self.batch_records)
            .option("groupIdPrefix", GROUP_PREFIX)
            .option("failOnDataLoss", str(not self.skips_lost).lower())
            .load()
        )
        return records.select(
            F.col("value").alias(LINE),
            F.col("topic").alias("source"),
            F.col("partition").alias("source_partition"),
            F.col("offset").alias("source_offset"),
        )

    def has_changed(self) -> bool:
        """Say whether the file of properties is another one, which can be used: `lines` then uses it.

        A file that cannot be used is a warning, and one that is still being written is left for the next time.
        """
        path = self.command_config
        if path is None:
            return False
        before, self._looked_at = self._looked_at, stamp(path)
        if self._looked_at != before or self._looked_at in {self._seen, None}:
            return False
        try:
            self._properties = self._usable(path)
        except NoSource as error:
            _LOG.warning("%s; the properties stay as they were", error)
            return False
        return True

    @property
    def _name(self) -> str:
        return f"topic {self.topic}"

    def _client_properties(self) -> dict[str, str]:
        if self._properties is None:
            self._properties = {} if self.command_config is None else self._read(self.command_config)
        kept = {key: value for key, value in self._properties.items() if key not in _NOT_OURS}
        return {**kept, "bootstrap.servers": self._servers(self._properties)}

    def _servers(self, properties: Mapping[str, str]) -> str:
        servers = self.bootstrap_servers or properties.get("bootstrap.servers")
        if not servers:
            raise NoSource(self._name, "no bootstrap server is named")
        return servers

    def _usable(self, path: Path) -> dict[str, str]:
        properties = self._read(path)
        if not properties:
            raise NoSource(self._name, f"{path} has no property")
        self._servers(properties)
        return properties

    def _read(self, path: Path) -> dict[str, str]:
        self._seen = stamp(path)
        try:
            properties: dict[str, str] = javaproperties.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            # Neither the line nor the codec's bytes: they may be a password.
            reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text in Java's properties form"
            raise NoSource(self._name, f"{path} cannot be read: {reason}") from None
        return properties


LineSource = FileSource | TopicSource
"""Where lines come from."""


def topic_checkpoint(name: str, cluster_id: str) -> str:
    """Name the checkpoint of a topic of a cluster, after what names that of the topic."""
    return f"{name}-{_short_hash(cluster_id)}"


def _ask_cluster_id(spark: SparkSession, properties: dict[str, str]) -> str:
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - Kafka's client is where its source is
    settings = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(properties)
    # Adds a token by which Spark itself has logged in, as its source does.
    updater = jvm.org.apache.spark.kafka010.KafkaConfigUpdater("admin", settings).setAuthenticationConfigIfNeeded()
    admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(updater.build())
    try:
        return str(admin.describeCluster().clusterId().get())
    finally:
        admin.close()


def innermost(error: Py4JJavaError) -> str:
    """Give the first line of what the JVM's first error said."""
    cause = error.java_exception
    while (inner := cause.getCause()) is not None:
        cause = inner
    return str(cause.getMessage()).partition("\n")[0]


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
