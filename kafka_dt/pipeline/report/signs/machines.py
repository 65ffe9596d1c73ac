"""The machines and places of principals, and those that are new to them.

machines = machines_of(deeds, timedelta(days=5))        # `late`: new ones
strange = on_strange_machines(uses, seen)
rows = with_at_home(rows, seen, "time", known)          # `at_home`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import UNKNOWN, host
from kafka_dt.pipeline.report.habits import AROUND
from kafka_dt.pipeline.report.lives import days_of
from kafka_dt.pipeline.report.networks import ZoneKind
from kafka_dt.pipeline.report.peers import MACHINES

if TYPE_CHECKING:
    from datetime import timedelta

    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

_USE: Final = ["principal", "since", "address", "software"]
_KNOWN_D: Final = 3
"""How many days ago the principal first logged in there. A thief with a token gets the password within a day or two."""
_DAYS: Final = 2
"""On how many days it was there, at least."""


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


def on_strange_machines(uses: DataFrame, seen: Observed) -> DataFrame:
    """Keep uses on machines that a principal did not have, or with another library than it had there.

    It had a machine if it logged in there, with a token or without, on two of the 15 days before, the first time at
    least three days ago. If it had five machines or more in the zone on one day, as pods are, any machine of the zone
    counts. An address that a file of networks calls a NAT is no machine, and a foreign network has none of its own.

    Args:
        uses: has `principal`, `address`, `software`, and `since`, an instant: only logins of earlier days count.
        seen: what the report has computed.

    Returns:
        The rows of `uses` that are not on such a machine.
    """
    since, known_since = F.to_date("since"), F.date_sub(F.to_date("since"), _KNOWN_D)
    is_machine = (F.col("address") != UNKNOWN) & ~F.col("zone_kind").isin(ZoneKind.NAT.value, ZoneKind.FOREIGN.value)
    places = seen.zones.of(uses.select(_USE).distinct()).where(is_machine).select(*_USE, "zone")
    had = seen.usage.where(is_machine).select(
        *(F.col("who").alias("principal"), "zone", "software"),
        F.col("address").alias("machine"),
        F.explode(days_of()).alias("day"),
    )
    days = (
        places.join(had, ["principal", "zone", "software"])
        .where(F.col("day").between(F.date_sub(since, AROUND.days), F.date_sub(since, 1)))
        .groupBy(*_USE, "day")
        .agg(
            F.max((F.col("machine") == F.col("address")).cast("int")).alias("same"),
            F.count_distinct(host(F.col("machine"))).alias("hosts"),
        )
        .withColumn("known_since", known_since)
    )
    there = F.when(F.col("same") == 1, F.col("day"))
    own = days.groupBy(*_USE, "known_since").agg(
        F.min(there).alias("came"),
        F.count(there).alias("days"),
        F.min("day").alias("zone_came"),
        F.max("hosts").alias("hosts"),
    )
    same = (F.col("came") <= F.col("known_since")) & (F.col("days") >= _DAYS)
    pods = (F.col("zone_came") <= F.col("known_since")) & (F.col("hosts") >= MACHINES)
    return uses.join(own.where(F.coalesce(same, F.lit(False)) | pods).select(_USE), _USE, "left_anti")


def with_at_home(rows: DataFrame, seen: Observed, at: str, known: timedelta) -> DataFrame:
    """Add the zone of each row, and whether its principal is at home there (`at_home`).

    It is if it logged in there with its library, the first time at least so long ago.

    Args:
        rows: has `principal`, `address` and `software`.
        seen: what the report has computed.
        at: the column of the instant of a row.
        known: after how long a principal is at home.
    """
    homes = seen.clients.groupBy(F.col("who").alias("principal"), "zone", "software").agg(
        F.min("first_seen").alias("home_since")
    )
    placed = seen.zones.of(rows).join(homes, ["principal", "zone", "software"], "left")
    at_home = F.coalesce(F.col("home_since") + F.lit(known) <= F.col(at), F.lit(False))
    return placed.withColumn("at_home", at_home).drop("home_since")
