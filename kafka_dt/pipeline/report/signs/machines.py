"""The machines on which principals make or renew tokens, and those that are new."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

if TYPE_CHECKING:
    from datetime import timedelta

    from pyspark.sql import DataFrame


def machines_of(deeds: DataFrame, known: timedelta) -> DataFrame:
    """Tell of each machine of a principal when it came there, and whether that was late.

    Args:
        deeds: some of those that `deeds.deeds_by_day` makes, with addresses that are known.
        known: how long after its first deed a principal has shown its machines.

    Returns:
        `principal`, `address`, since when and until when it did such things there (`came`, `until`), how often
        (`times`), when it began to do them anywhere (`began`), and whether it came there later than `known` (`late`).
    """
    machines = deeds.groupBy("principal", "address").agg(
        F.min("first_seen").alias("came"), F.max("last_seen").alias("until"), F.sum("deeds").alias("times")
    )
    began = machines.groupBy("principal").agg(F.min("came").alias("began"))
    return machines.join(began, "principal").withColumn("late", F.col("came") >= F.col("began") + F.lit(known))
