"""`spark.read.format("delegation_tokens")`: every token in a ZooKeeper as a row.

    register(spark)
    tokens = (
        spark.read.format("delegation_tokens")
        .option("zookeeper.connect", "zk1:2181,zk2:2181/kafka")
        .option("secret.key", "file:/etc/kafka-dt/secret.key")
        .load()
    )

The options are the settings of a node about ZooKeeper and its secret keys (`secret.key` and `secret.keys.previous` for
short). Give secrets as `file:` or `env:`; a secret in plain text is refused before Spark makes a plan that could show
it. Without a secret key, the rows of sealed tokens say only that they are sealed. A row never has an HMAC. A token that
is not readable has a row with the reason. Each query lists and reads anew; a token that is deleted meanwhile has no
row.

Spark and Python know the years 1 to 9999: an instant outside is shown as the first or the last day of those, as of a
token that lives "for ever". What cannot be UTF-8 in a name (half a surrogate pair, which JSON can write) is shown as
"?".

Limits: PySpark 4.0 hands no filters to a Python data source, so a query for one owner reads all tokens. Executors
import this package: see `kafka_dt/pipeline/session.py`.

Source: pyspark.sql.datasource (SPARK-44076); Spark SQL, "Data Types"; kafka_dt.bulk.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kafka_dt.bulk import BulkLimits, inventory
from kafka_dt.config import ConfigError
from kafka_dt.pipeline.bulk.cluster_access import ClusterAccess
from kafka_dt.pipeline.bulk.job import catch_up, listed_names, packs, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from kafka_dt.bulk import Row
    from kafka_dt.tokens import Principal, SecretKey, Token

FORMAT: Final = "delegation_tokens"
TOKENS_PER_PARTITION: Final = "tokens.per.partition"
DEFAULT_TOKENS_PER_PARTITION: Final = 10_000
"""A few seconds' work, and some megabytes of an executor's memory."""
MAX_TOKENS_PER_PARTITION: Final = 1_000_000
LIMITS: Final = BulkLimits(threads=2)
"""A task has one core: a thread for it, and another so that it need not wait for the interpreter."""
TOKENS_SCHEMA: Final = StructType(
    [
        StructField("token_id", StringType(), nullable=False),
        StructField("owner", StringType()),
        StructField("requester", StringType()),
        StructField("renewers", ArrayType(StringType(), containsNull=False)),
        StructField("issue_time", TimestampType()),
        StructField("expiry_time", TimestampType()),
        StructField("max_time", TimestampType()),
        StructField("key_id", StringType()),
        StructField("sealed", BooleanType()),
        StructField("sealed_by", StringType()),
        StructField("znode_version", IntegerType()),
        StructField("reason", StringType()),
    ]
)
ROWS_A_BATCH: Final = 10_000
FIRST_MS: Final = -62_135_424_000_000
"""The third day of year 1: Python looks at the days before, in whatever time zone it shows the instant."""
LAST_MS: Final = 253_402_214_400_000
"""The beginning of the last day of year 9999, which is in that year in every time zone."""


def register(spark: SparkSession) -> None:
    """Make the format known to a session."""
    spark.dataSource.register(TokensDataSource)


def read_tokens(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """Give the tokens of a ZooKeeper as a DataFrame; it is read when something is done with it."""
    register(spark)
    return spark.read.format(FORMAT).options(**options).load()


class TokensDataSource(DataSource):
    """The format, as Spark asks for it.

    Raises:
        ConfigError: naming the option that cannot be used.
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        # Looked at here, and not when it is read: a secret among the options must not come into a plan.
        self._read_options()

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns."""
        return TOKENS_SCHEMA

    def reader(self, schema: StructType) -> TokensReader:
        """Return the reader.

        Raises:
            ConfigError: other columns are asked for.
        """
        if schema.simpleString() != TOKENS_SCHEMA.simpleString():
            raise ConfigError("schema", f"{FORMAT} has columns of its own: read it without one, and select from it")
        return TokensReader(*self._read_options())

    def _read_options(self) -> tuple[ClusterAccess, int]:
        given = dict(self.options)
        text = given.pop(TOKENS_PER_PARTITION, str(DEFAULT_TOKENS_PER_PARTITION))
        if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= MAX_TOKENS_PER_PARTITION):
            raise ConfigError(TOKENS_PER_PARTITION, f"is a number from 1 to {MAX_TOKENS_PER_PARTITION}")
        return ClusterAccess.of_options(given), int(text)


class TokenNames(InputPartition):
    """The packed names of some of the tokens."""

    def __init__(self, packed: bytes) -> None:
        super().__init__(None)
        self.packed = packed

    def __repr__(self) -> str:
        return f"TokenNames({len(self.packed)} bytes)"


class TokensReader(DataSourceReader):
    """Lists on the driver, reads on executors."""

    def __init__(self, access: ClusterAccess, tokens_a_partition: int) -> None:
        self._access = access
        self._tokens_a_partition = tokens_a_partition

    def partitions(self) -> Sequence[InputPartition]:
        """List the names, on the driver.

        Raises:
            ZooKeeperError: they cannot be read.
        """
        names = asyncio.run(self._list())
        return [TokenNames(packed) for packed in packs(names, self._tokens_a_partition)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Read the tokens of a partition, on an executor.

        Raises:
            ConfigError: the executor cannot read a secret.
            ZooKeeperError: they cannot be read.
        """
        if not isinstance(partition, TokenNames):
            return iter(())  # Spark's way to say that there are no partitions
        return record_batches(asyncio.run(self._read(unpack(partition.packed))))

    async def _list(self) -> list[str]:
        async with self._access.connected() as client:
            return await listed_names(client)

    async def _read(self, names: Sequence[str]) -> list[Row]:
        keyring = self._access.keyring()
        keys: Sequence[SecretKey] = () if keyring is None else keyring.keys
        async with self._access.connected() as client:
            await catch_up(client)
            return await inventory(client, names, keys, limits=LIMITS)


def record_batches(rows: Sequence[Row]) -> Iterator[pa.RecordBatch]:
    """Make batches of `TOKENS_SCHEMA`."""
    for begin in range(0, len(rows), ROWS_A_BATCH):
        yield _batch(rows[begin : begin + ROWS_A_BATCH])


def _batch(rows: Sequence[Row]) -> pa.RecordBatch:
    def of_token(value: Callable[[Token], object]) -> list[object]:
        return [None if row.token is None else value(row.token) for row in rows]

    columns = [
        [row.token_id for row in rows],
        of_token(lambda token: _text(token.owner)),
        of_token(lambda token: _text(token.requester)),
        of_token(lambda token: [_text(renewer) for renewer in token.renewers]),
        of_token(lambda token: _microseconds(token.issue_timestamp_ms)),
        of_token(lambda token: _microseconds(token.expiry_timestamp_ms)),
        of_token(lambda token: _microseconds(token.max_timestamp_ms)),
        of_token(lambda token: token.key_id),
        [row.sealed for row in rows],
        [row.sealed_by for row in rows],
        [row.version for row in rows],
        [row.reason for row in rows],
    ]
    schema = to_arrow_schema(TOKENS_SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _text(principal: Principal) -> str:
    return str(principal).encode(errors="replace").decode()


def _microseconds(timestamp_ms: int) -> int:
    return min(max(timestamp_ms, FIRST_MS), LAST_MS) * 1000
