"""The last use of an owner's tokens is over the Internet, and the owner does not come back.

Who leaves a company keeps the tokens until they end, and the audit has no event for a person who leaves. So this is a
sign, if all of it holds:

- The owner is a person (`workdays.people`). It was in private networks only, for `last_known` and with `last_logins`
  logins until then, with tokens or without.
- It comes to one network of the Internet (/16, of IPv6 /48) for `last_stay` at most, and is nowhere else from then on.
- It logs in there with tokens only: who has left has no password any more.
- It is silent for `last_silent` then, until the end of the table.

The severity is medium: it may be the last day before the holidays.

Not seen: one who goes on in the company's networks, or ever worked over the Internet; one who uses a token from several
networks, or for longer; and one whose account another person uses afterwards.
"""

# The work is on one row for each principal and large network.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import as_text, distinct, first_and_last, is_public, some, with_most
from kafka_dt.pipeline.report.signs.finding import SHOWN, Severity, SubjectType, finding_rows
from kafka_dt.pipeline.report.signs.sign import Sign, advise, end_all_of_owner, follow_address, threshold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed


@dataclass(frozen=True, slots=True)
class LastTokenThresholds:
    """When an owner has left."""

    last_known: timedelta = threshold(timedelta(days=5), "Time in which an owner shows that it works inside")
    """A working week."""
    last_logins: int = threshold(10, "... and its logins until it goes outside")
    """A person makes a few on each day."""
    last_stay: timedelta = threshold(timedelta(days=7), "Time over the Internet, at most")
    """A token lives for so long by default; who works at home from now on stays there."""
    last_silent: timedelta = threshold(timedelta(days=5), "Time of silence after which an owner has left")
    """A weekend and a holiday are shorter."""


def last_tokens(seen: Observed, thresholds: LastTokenThresholds) -> DataFrame:
    """Find such tokens; one finding an owner."""
    last, before = F.max("since").over(Window.partitionBy("who")), ~F.col("is_last")
    networks = seen.network_arrivals.join(seen.people, "who", "left_semi").withColumns(
        {"is_last": F.col("since") == last, "outside": is_public(F.col("wide"))}
    )
    owners = networks.groupBy("who", "owner_since").agg(
        F.max(F.when(F.col("is_last"), F.col("wide"))).alias("wide"),
        F.max(F.when(F.col("is_last"), F.col("since"))).alias("came"),
        F.max(F.when(F.col("is_last"), F.col("until"))).alias("gone_at"),
        F.sum(F.when(before, F.col("logins"))).alias("logins_before"),
        F.max(F.when(before, F.col("until"))).alias("inside_until"),
        F.bool_and(F.col("outside") == F.col("is_last")).alias("only_last_outside"),
    )
    end = seen.clients.agg(F.max("last_seen").alias("end"))
    gone = owners.crossJoin(F.broadcast(end)).where(
        F.col("only_last_outside")
        & (F.col("logins_before") >= thresholds.last_logins)
        & (F.col("owner_since") + F.lit(thresholds.last_known) <= F.col("came"))
        & (F.col("inside_until") < F.col("came"))
        & (F.col("gone_at") <= F.col("came") + F.lit(thresholds.last_stay))
        & (F.col("gone_at") + F.lit(thresholds.last_silent) <= F.col("end"))
    )
    with_password = seen.clients.where(~F.col("by_token")).select("who", "wide").distinct()
    gone = gone.join(with_password, ["who", "wide"], "left_anti")
    uses = seen.usage.where(F.col("token_id").isNotNull()).withColumnRenamed("logins", "uses")
    return _findings(uses.join(gone, ["who", "wide"]))


def _findings(uses: DataFrame) -> DataFrame:
    rows = uses.groupBy("who").agg(
        *first_and_last(),
        F.sum("uses").alias("events"),
        with_most("token_id", "uses").alias("token_id"),
        with_most("address", "uses", "token_id").alias("address"),
        F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
        F.slice(distinct("software"), 1, SHOWN).alias("clients"),
        *(F.max(name).alias(name) for name in ("wide", "inside_until", "gone_at", "owner_since")),
    )
    return finding_rows(
        rows.withColumn("owner", F.col("who")),
        subject="who",
        severity=F.lit(Severity.MEDIUM.value),
        evidence=[
            ("network of the Internet", F.col("wide")),
            ("last seen inside", as_text(F.col("inside_until"))),
            ("silent since", as_text(F.col("gone_at"))),
            ("from addresses", some(F.col("addresses"))),
            ("clients", some(F.col("clients"))),
            ("the owner is known since", as_text(F.col("owner_since"))),
        ],
    )


LAST_TOKEN: Final = Sign(
    kind="last_token",
    title="Used over the Internet before its owner fell silent",
    meaning="An owner that worked in private networks uses a token over the Internet once more and does not come back.",
    finds="a token that a person uses from home after the last day",
    misses="who goes on in the company's networks and who worked over the Internet before",
    subject_type=SubjectType.PRINCIPAL,
    thresholds=LastTokenThresholds(),
    rule=last_tokens,
    about_use=True,
    steps=(
        advise("Ask whether the owner has left. If so, delete its credentials, and end its tokens:"),
        end_all_of_owner,
        follow_address,
    ),
)
