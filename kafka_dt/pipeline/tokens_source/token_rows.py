"""The table of tokens: its columns, and rows as Arrow takes them.

Kafka's instants are milliseconds that fit 64 bits; Spark and Python know the years 1 to 9999. What lies outside is
shown as the first or the last day of those: a token that lives "for ever" has such a max time. What cannot be UTF-8 in
a name (half a surrogate pair, which JSON can write) is shown as "?".

Source: Spark SQL, "Data Types"; kafka_dt.bulk.inventory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kafka_dt.bulk.inventory import Row
    from kafka_dt.tokens import Principal, Token

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
