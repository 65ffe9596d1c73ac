"""Who logged in with what from where: one row for each token, address and client that belong together.

    usage = logins_by_place(events)

| column | |
|---|---|
| `token_id` | null for a login without a token |
| `who` | the owner of the token, or the principal that logged in |
| `address`, `subnet` | of the client |
| `software`, `software_version`, `client` | its library, the version of it, the shape of its client id |
| `first_seen`, `last_seen`, `logins` | successful ones |

A client that logs in every hour for a month is one row, not 720. Refused logins are not in it: there may be as many
as somebody likes to try.

Source: KIP-511 (what clients say of themselves)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report import places
from kafka_dt.pipeline.report.conditions import ok

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLACE: Final = ("token_id", "who", "address", "software", "software_version", "client")


def logins_by_place(events: DataFrame) -> DataFrame:
    """Count the successful logins of each token, address and client."""
    return (
        events.where(ok(EventType.LOGIN))
        .select(
            "time",
            "token_id",
            F.coalesce("owner", "principal").alias("who"),
            F.coalesce("client_address", F.lit(places.UNKNOWN)).alias("address"),
            places.software(F.col("client_software")).alias("software"),
            places.software(F.col("client_software_version")).alias("software_version"),
            places.client_shape(F.col("client_id")).alias("client"),
        )
        .groupBy(*_PLACE)
        .agg(
            F.min("time").alias("first_seen"),
            F.max("time").alias("last_seen"),
            F.count("*").alias("logins"),
        )
        .withColumn("subnet", places.subnet(F.col("address")))
    )
