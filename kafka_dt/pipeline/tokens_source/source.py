"""`spark.read.format("delegation_tokens")`: every token in a ZooKeeper as a row.

    register(spark)
    tokens = (
        spark.read.format("delegation_tokens")
        .option("zookeeper.connect", "zk1:2181,zk2:2181/kafka")
        .option("secret.key", "file:/etc/kafka-dt/secret.key")
        .load()
    )

The options are the settings of a node about ZooKeeper, and those of its secret keys (`secret.key` and
`secret.keys.previous` for short). Secrets are given as `file:` or `env:`; one that is given itself is refused before
there is a plan that could show it. Without a secret key plain tokens are read, and of sealed ones it is told that they
are sealed. A row never has an HMAC. What is not readable is a row as well, with the reason.

The driver lists the names, each partition is some of them (`tokens.per.partition`) and read in one session of its own
with many reads under way. Each query lists and reads anew; a token that goes meanwhile is left out. The columns are
in `token_rows.py`.

Limits: PySpark 4.0 hands no filters to a Python data source, so a query for one owner reads all tokens. (Of sealed ones
nothing could be told without opening them anyhow.) Executors import this package: see `session.py`.

Source: pyspark.sql.datasource (SPARK-44076).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kafka_dt.bulk.engine import BulkLimits
from kafka_dt.bulk.inventory import inventory
from kafka_dt.config import ConfigError
from kafka_dt.pipeline.bulk.cluster_access import ClusterAccess
from kafka_dt.pipeline.tokens_source.token_names import catch_up, listed_names, packs, unpack
from kafka_dt.pipeline.tokens_source.token_rows import TOKENS_SCHEMA, record_batches

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from kafka_dt.bulk.inventory import Row
    from kafka_dt.tokens import SecretKey

FORMAT: Final = "delegation_tokens"
TOKENS_PER_PARTITION: Final = "tokens.per.partition"
DEFAULT_TOKENS_PER_PARTITION: Final = 10_000
"""A few seconds' work, and some megabytes of an executor's memory."""
MAX_TOKENS_PER_PARTITION: Final = 1_000_000
LIMITS: Final = BulkLimits(threads=2)
"""A task has one core: a thread for it, and another so that it need not wait for the interpreter."""


def register(spark: SparkSession) -> None:
    """Make the format known to a session."""
    spark.dataSource.register(TokensDataSource)


def read_tokens(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """Give the tokens of a ZooKeeper as a DataFrame; it is read when something is done with it.

    Args:
        spark: the session.
        options: as the module says.
    """
    register(spark)
    return spark.read.format(FORMAT).options(**options).load()


class TokensDataSource(DataSource):
    """The format, as Spark asks for it.

    Args:
        options: as the module says.

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
        """Give what reads.

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
    """Some of the tokens.

    Args:
        packed: their names.
    """

    def __init__(self, packed: bytes) -> None:
        super().__init__(None)
        self.packed = packed

    def __repr__(self) -> str:
        return f"TokenNames({len(self.packed)} bytes)"


class TokensReader(DataSourceReader):
    """Lists on the driver, reads on executors.

    Args:
        access: to ZooKeeper and the secret keys.
        tokens_a_partition: how many are read together.
    """

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
            ConfigError: a secret cannot be had there.
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
