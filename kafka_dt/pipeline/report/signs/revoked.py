"""A token that somebody goes on trying after it was ended by a request.

Whoever ends a token does not want it used. A login with its id later than clocks differ and clients need to hear of it
(`Thresholds.clock_skew`) is a sign: of a thief, or of a job that nobody told. It is graver where it comes from a
network in which the token was never used, and gravest when it succeeds, which no node that sees ZooKeeper allows.

Tokens that end by age are not looked at: their jobs try again for a while, and that says nothing. A token that was
ended at a later time and renewed before is not revoked.

Not seen: a thief who notices that the token is of no use and does not try again, and one whose last try comes within
the clock skew. Nor is a token that was ended where no event is written: by `kafka-dt token expire-all`, or at a broker.

Only tokens with a late attempt are looked up in the events, and there are few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.findings import IncidentKind, Severity, SubjectType
from kafka_dt.pipeline.report import places
from kafka_dt.pipeline.report.conditions import as_text, of_type, some, went_well
from kafka_dt.pipeline.report.signs.rows import SHOWN, finding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.thresholds import Thresholds


def used_after_revocation(events: DataFrame, usage: DataFrame, lives: DataFrame, thresholds: Thresholds) -> DataFrame:
    """Find tokens that were tried after their revocation; one finding a token.

    Args:
        events: of the table, up to the instant of the report.
        usage: as `usage.logins_by_place` makes it.
        lives: as `lives.token_lives` makes them.
        thresholds: where the lines are.
    """
    skew = F.lit(thresholds.clock_skew)
    tried = lives.where(F.col("last_attempt") > F.col("revoked_at") + skew).select("token_id", "owner", "revoked_at")
    attempts = _attempts(events, tried, usage).where(F.col("time") > F.col("revoked_at") + skew)
    return _findings(attempts)


def _attempts(events: DataFrame, tried: DataFrame, usage: DataFrame) -> DataFrame:
    """Give the logins with the ids of some tokens, and whether each came from a network of before the revocation."""
    used_before = usage.join(tried, "token_id").where(F.col("first_seen") <= F.col("revoked_at"))
    before = used_before.select("token_id", "subnet", F.lit(True).alias("known")).distinct()
    logins = events.where(of_type(EventType.LOGIN) & F.col("token_id").isNotNull()).select(
        "token_id",
        "time",
        F.coalesce("client_address", F.lit(places.UNKNOWN)).alias("address"),
        places.subnet(F.col("client_address")).alias("subnet"),
        F.concat_ws(" ", places.software(F.col("client_software")), "client_software_version").alias("client"),
        went_well().alias("succeeded"),
    )
    return logins.join(tried, "token_id").join(before, ["token_id", "subnet"], "left")


def _findings(attempts: DataFrame) -> DataFrame:
    busiest = Window.partitionBy("token_id").orderBy(F.desc("tries"), "address", "client")
    by_address = (
        attempts.groupBy("token_id", "owner", "revoked_at", "address", "subnet", "client")
        .agg(
            F.min("time").alias("first_seen"),
            F.max("time").alias("last_seen"),
            F.count("*").alias("tries"),
            F.count(F.when(F.col("succeeded"), 1)).alias("successes"),
            F.max(F.coalesce("known", F.lit(False))).alias("known"),
        )
        .withColumn("rank", F.row_number().over(busiest))
    )
    shown = F.col("rank") <= SHOWN
    rows = by_address.groupBy("token_id", "owner", "revoked_at").agg(
        F.max(F.when(F.col("rank") == 1, F.col("address"))).alias("address"),
        F.min("first_seen").alias("first_seen"),
        F.max("last_seen").alias("last_seen"),
        F.sum("tries").alias("events"),
        F.sum("successes").alias("successes"),
        F.min("known").alias("all_known"),
        some(F.array_sort(F.collect_set(F.when(shown, F.col("address"))))).alias("addresses"),
        some(F.array_sort(F.collect_set(F.when(shown, F.col("client"))))).alias("clients"),
    )
    foreign = F.when(~F.col("all_known"), F.lit("yes")).otherwise(F.lit("no: the token was used there before"))
    severity = F.when((F.col("successes") > 0) | ~F.col("all_known"), F.lit(Severity.HIGH.value)).otherwise(
        F.lit(Severity.MEDIUM.value)
    )
    return finding(
        rows,
        kind=IncidentKind.USE_AFTER_REVOCATION,
        severity=severity,
        subject_type=SubjectType.TOKEN,
        subject=F.col("token_id"),
        evidence=[
            ("revoked", as_text(F.col("revoked_at"))),
            ("attempts since", F.col("events")),
            ("of these successful", F.col("successes")),
            ("from addresses", F.col("addresses")),
            ("in a network new to the token", foreign),
            ("by clients", F.col("clients")),
        ],
    )
