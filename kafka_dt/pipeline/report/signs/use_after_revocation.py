"""A client goes on trying a token after a request has ended it.

A principal that ends a token does not want it used. A login with the token's id is a sign when it comes later than
clocks differ and clients need to hear of the end (`clock_skew`): either of a thief, or of a job that was not told. The
severity is high when the login comes from a network in which the token was never used, or when it succeeds; no node
that sees ZooKeeper allows that.

Tokens that end by age are left out, because their jobs try again for a while. A token that was to end at a later time,
and that was renewed before then, is not revoked.

Not seen: a thief that notices the end of the token and stops trying, and one whose last try is within the clock skew.
Nor is a token that was ended where no event is written: by `kafka-dt token revoke`, or at a broker. This sign
cannot tell a thief from a forgotten job that runs where the token was used.
"""

# Only tokens with a late attempt are looked up in the events, and there are few of them.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.expressions import (
    UNKNOWN,
    as_text,
    distinct,
    first_and_last,
    of_type,
    software,
    some,
    subnet,
    went_well,
)
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.sign import Sign, advise, follow_address, follow_owner, threshold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed


@dataclass(frozen=True, slots=True)
class RevocationThresholds:
    """How late an attempt is a sign."""

    clock_skew: timedelta = threshold(timedelta(minutes=5), "Clock skew, and time to hear of a revocation")
    """How far apart the clocks of two nodes may be, and how long a client may take to hear of a revocation. Kerberos
    allows as much."""


def used_after_revocation(seen: Observed, thresholds: RevocationThresholds) -> DataFrame:
    """Find tokens that were tried after their revocation; one finding a token."""
    skew = F.lit(thresholds.clock_skew)
    tried = seen.lives.where(F.col("last_attempt") > F.col("revoked_at") + skew).select(
        "token_id", "owner", "revoked_at"
    )
    attempts = _attempts(seen.events, tried, seen.usage).where(F.col("time") > F.col("revoked_at") + skew)
    return _findings(attempts)


def _attempts(events: DataFrame, tried: DataFrame, usage: DataFrame) -> DataFrame:
    """Give the logins with the ids of some tokens, and whether each came from a network of before the revocation."""
    used_before = usage.join(tried, "token_id").where(F.col("first_seen") <= F.col("revoked_at"))
    before = used_before.select("token_id", "subnet", F.lit(True).alias("known")).distinct()
    logins = events.where(of_type(EventType.LOGIN) & F.col("token_id").isNotNull()).select(
        "token_id",
        "time",
        F.coalesce("client_address", F.lit(UNKNOWN)).alias("address"),
        subnet(F.col("client_address")).alias("subnet"),
        F.concat_ws(" ", software(F.col("client_software")), "client_software_version").alias("client"),
        went_well().alias("succeeded"),
    )
    return logins.join(tried, "token_id").join(before, ["token_id", "subnet"], "left")


def _findings(attempts: DataFrame) -> DataFrame:
    busiest = Window.partitionBy("token_id").orderBy(F.desc("tries"), "address", "client")
    by_address = (
        attempts.groupBy("token_id", "owner", "revoked_at", "address", "subnet", "client")
        .agg(
            *first_and_last("time", "time"),
            F.count("*").alias("tries"),
            F.count(F.when(F.col("succeeded"), 1)).alias("successes"),
            F.max(F.coalesce("known", F.lit(False))).alias("known"),
        )
        .withColumn("rank", F.row_number().over(busiest))
    )
    shown = F.col("rank") <= SHOWN
    rows = by_address.groupBy("token_id", "owner", "revoked_at").agg(
        F.max(F.when(F.col("rank") == 1, F.col("address"))).alias("address"),
        *first_and_last(),
        F.sum("tries").alias("events"),
        F.sum("successes").alias("successes"),
        F.min("known").alias("all_known"),
        some(distinct(F.when(shown, F.col("address")))).alias("addresses"),
        some(distinct(F.when(shown, F.col("client")))).alias("clients"),
    )
    foreign = F.when(~F.col("all_known"), F.lit("yes")).otherwise(F.lit("no: the token was used there before"))
    return finding_rows(
        rows,
        subject="token_id",
        severity=high_if((F.col("successes") > 0) | ~F.col("all_known")),
        evidence=[
            ("revoked", as_text(F.col("revoked_at"))),
            ("attempts since", F.col("events")),
            ("of these successful", F.col("successes")),
            ("from addresses", F.col("addresses")),
            ("in a network new to the token", foreign),
            ("by clients", F.col("clients")),
        ],
    )


USE_AFTER_REVOCATION: Final = Sign(
    kind="use_after_revocation",
    title="Tried after revocation",
    meaning="A request ended the token, and a client goes on trying it.",
    subject_type=SubjectType.TOKEN,
    thresholds=RevocationThresholds(),
    rule=used_after_revocation,
    steps=(
        advise("Find out whether it is a job that was not told: give it a new token, or stop it."),
        follow_address,
        follow_owner,
    ),
)
