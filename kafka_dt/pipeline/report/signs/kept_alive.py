"""Tokens that are renewed again and again, of owners whose tokens are not renewed.

    renewers = with_kept_alive(renewers, seen, thresholds)     # `kept`

Such an owner gets a new token for each run, and lets it end. A thief keeps the one that it has, and uses it beside the
newer ones.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import first_and_last

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.foreign_renewal import RenewalThresholds
    from kafka_dt.pipeline.report.signs.sign import Observed

_START_OF_RUN: Final = timedelta(hours=3)
"""After so long the machines of a run have the token."""
WITHOUT_USE: Final = "kept without use"


def with_kept_alive(renewers: DataFrame, seen: Observed, thresholds: RenewalThresholds) -> DataFrame:
    """Add to each renewer of a token whether, and how, it keeps the token alive; and the token's requester.

    Args:
        renewers: one row for each token and principal that renewed it, with `owner`, `zone`, `renewals`, `first_seen`,
            `last_seen`, and how often and since when it renewed after the last use (`idle_renewals`, `idle_since`).
        seen: what the report has computed.
        thresholds: of the sign.

    Returns:
        The rows with `requester`, and `kept`: the name of the case, or null.
    """
    rows = _with_others_kept(renewers, thresholds).join(_earlier_tokens(seen.lives), "token_id")
    rows = rows.join(_late_uses(renewers, seen), "token_id", "left")
    people = seen.workdays.select(F.col("who").alias("owner"), F.lit(True).alias("person"))
    rows = rows.join(F.broadcast(people), "owner", "left")
    case = (
        F.when(_kept_alive(thresholds), F.lit("kept alive"))
        .when(_kept_by_owner(thresholds), F.lit("kept alive by its owner"))
        .when(_kept_without_use(thresholds), F.lit(WITHOUT_USE))
        .when(_kept_beside_newer(thresholds), F.lit("kept and used beside newer ones"))
    )
    return rows.withColumn("kept", case)


def _kept_alive(thresholds: RenewalThresholds) -> Column:
    """Whether another principal renews, again and again, a token of an owner whose other tokens are not renewed."""
    others = (F.col("principal") != F.col("owner")) & (F.col("principal") != F.col("requester"))
    a_service = F.col("kept_for") > thresholds.kept_owners
    return (F.col("renewals") >= thresholds.kept_renewals) & others & _never_renewed(thresholds) & ~a_service


def _kept_by_owner(thresholds: RenewalThresholds) -> Column:
    """Whether the owner renews a token again and again, of which hardly any was renewed before."""
    often = (F.col("renewals") >= thresholds.kept_renewals) & (
        F.col("first_seen") + F.expr("INTERVAL 1 DAY") <= F.col("last_seen")
    )
    many = F.col("earlier") >= thresholds.kept_by_owner
    return often & (F.col("principal") == F.col("owner")) & many & _never_renewed(thresholds)


def _kept_without_use(thresholds: RenewalThresholds) -> Column:
    """Whether a token is renewed again and again after its last use, of an owner whose tokens are not renewed."""
    others = F.col("principal") != F.col("owner")
    often = (F.col("idle_renewals") >= thresholds.kept_renewals) & (
        F.col("idle_since") + F.expr("INTERVAL 1 DAY") <= F.col("last_seen")
    )
    a_service = F.col("kept_idle_for") > thresholds.kept_owners
    return often & others & _never_renewed(thresholds) & ~a_service


def _kept_beside_newer(thresholds: RenewalThresholds) -> Column:
    """Whether its owner or requester keeps a token alive that is used after the owner got a newer one.

    A scheduler renews the token of a long run, which goes on where it is.
    """
    by_owner = F.col("principal") == F.col("owner")
    by_requester = (F.col("principal") == F.col("requester")) & (F.col("newer_at") < F.col("late_machine_use"))
    own = (by_owner | by_requester) & F.col("person").isNull()
    often = (F.col("renewals") >= thresholds.kept_beside_newer) & (
        F.col("first_seen") + F.lit(thresholds.kept_beside_for) <= F.col("last_seen")
    )
    used = F.col("newer_at") < F.least("last_seen", "last_login")
    return own & often & used & _never_renewed(thresholds)


def _never_renewed(thresholds: RenewalThresholds) -> Column:
    """Whether hardly any of the tokens that the owner had before was renewed."""
    return (
        (F.col("earlier") >= thresholds.kept_tokens)
        & (F.col("earlier_since") + F.lit(thresholds.kept_history) < F.col("first_seen"))
        & (F.col("earlier_renewed") <= F.col("earlier") * F.lit(thresholds.kept_share))
    )


def _late_uses(renewers: DataFrame, seen: Observed) -> DataFrame:
    """Tell when renewed tokens were last used on a machine that did not have them early (`late_machine_use`)."""
    renewed = seen.usage.join(renewers.select("token_id").distinct(), "token_id", "left_semi")
    machines = renewed.groupBy("token_id", "address").agg(*first_and_last())
    uses = machines.join(seen.lives.select("token_id", "first_login"), "token_id")
    late = uses.where(F.col("first_seen") > F.col("first_login") + F.lit(_START_OF_RUN))
    return late.groupBy("token_id").agg(F.max("last_seen").alias("late_machine_use"))


def _earlier_tokens(lives: DataFrame) -> DataFrame:
    """Tell of each token its last use, when its owner got a newer one, how many it had before, and their renewals."""
    in_order = Window.partitionBy("owner").orderBy("created_at")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    # Of tokens that are made together none is newer; of one that is older than the table it is not known.
    instants = Window.partitionBy("owner").orderBy(F.unix_micros("created_at"))
    later = instants.rangeBetween(1, Window.unboundedFollowing)
    made_at = F.when(F.col("created_known"), F.col("created_at"))
    return lives.select(
        "token_id",
        "requester",
        "last_login",
        F.min(made_at).over(later).alias("newer_at"),
        F.count("*").over(before).alias("earlier"),
        F.min("created_at").over(before).alias("earlier_since"),
        F.count(F.when(F.col("renewals") > 0, 1)).over(before).alias("earlier_renewed"),
    )


def _with_others_kept(renewers: DataFrame, thresholds: RenewalThresholds) -> DataFrame:
    """Add for how many owners a principal renews a token as often, from the same zone."""
    often, idle = (
        F.when(F.col(name) >= thresholds.kept_renewals, F.col("owner")) for name in ("renewals", "idle_renewals")
    )
    kept = renewers.groupBy("principal", "zone").agg(
        F.count_distinct(often).alias("kept_for"), F.count_distinct(idle).alias("kept_idle_for")
    )
    return renewers.join(kept, ["principal", "zone"])
