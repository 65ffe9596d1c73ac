"""What honest uses of a token at an unusual time have in common.

    uses = with_usual_clients(uses, seen)
    hours = outages(uses, "hour", ("who", "address"))
    uses = without_looks(uses, by_token, days)

A job that is late, and a person in the evening, use the newest token: the job has not begun to use one that the same
requester made later. And they come with the library, the kind of client id and from the zone with which the owner's
tokens were used before. After an outage several owners come at odd hours at once. An engineer who looks into a job by
day is at a machine of its run.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import UNKNOWN, of_first
from kafka_dt.pipeline.report.networks import ZoneKind
from kafka_dt.pipeline.report.workdays import with_in_office

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

ONE_START: Final = timedelta(minutes=1)
"""The time in which a client that starts makes all its connections: it logs in once for each broker that it needs."""
USUAL_CLIENT: Final = timedelta(days=1)
"""How long a job has its own zone, library and kind of client id: on the first day they may be a thief's."""
_OUTAGE_OWNERS: Final = 3
"""Two jobs may be started again by one engineer."""


def is_short() -> Column:
    """Whether a use is over within a day; of longer ones it is not known at which hours they were."""
    return F.col("last_seen") < F.col("first_seen") + F.expr("INTERVAL 23 HOURS")


def outages(rows: DataFrame, hour: str, of: Sequence[str]) -> DataFrame:
    """Give the hours in which, or next to which, each column of `of` has as many values as an outage has owners.

    Args:
        rows: uses at unusual times.
        hour: the column with the hour of a use, as a number since 1970.
        of: the columns whose values are counted.

    Returns:
        One column, with the name of `hour`.
    """
    near = F.explode(F.array(*(F.col(hour) + each for each in (-1, 0, 1)))).alias(hour)
    fewest = F.array_min(F.array(*(F.count_distinct(name) for name in of)))
    hours = rows.select(*of, near).groupBy(hour).agg(fewest.alias("fewest"))
    return hours.where(F.col("fewest") >= _OUTAGE_OWNERS).select(hour)


def with_usual_clients(uses: DataFrame, seen: Observed) -> DataFrame:
    """Say when tokens were made, and whether uses are of the newest one, by a client that is usual.

    Args:
        uses: rows of `usage`.
        seen: what the report has computed.

    Returns:
        The rows with `made` (NULL if the token was there before), since when the client is known (`client_since`) and
        `as_ever`.
    """
    client = ("who", "zone", "software", "client")
    since = seen.clients.where("by_token").groupBy(*client).agg(F.min("first_seen").alias("client_since"))
    later = Window.partitionBy("owner", "requester").orderBy("created_at", "token_id")
    replaced = F.min("first_login").over(later.rowsBetween(1, Window.unboundedFollowing))
    own = seen.lives.join(uses.select(F.col("who").alias("owner")).distinct(), "owner", "left_semi")
    made = F.when(F.col("created_known"), F.col("created_at"))
    tokens = own.select("token_id", made.alias("made"), replaced.alias("replaced_at"))
    is_newest = F.coalesce(F.col("replaced_at") > F.col("first_seen"), F.lit(True))
    is_usual = F.col("client_since") + F.lit(USUAL_CLIENT) <= F.col("first_seen")
    rows = uses.join(tokens, "token_id").join(since, list(client))
    return rows.withColumn("as_ever", is_newest & is_usual)


def without_looks(uses: DataFrame, by_token: DataFrame, days: DataFrame) -> DataFrame:
    """Leave out single logins by day on a machine on which the token was used by another client before.

    By day is in the hours of the company, and before is an hour or more. An address that is unknown, or that a file of
    networks calls a NAT, is no machine.

    Args:
        uses: rows of `by_token`, at unusual times.
        by_token: where tokens were used, as `lives.logins_by_place` makes it.
        days: which principals work by day, as `workdays.workdays` makes it.
    """
    there = ["token_id", "address"]
    machines = by_token.groupBy(*there).agg(
        F.min("first_seen").alias("machine_since"),
        of_first("software", "first_seen", "client").alias("of_run"),
        of_first("client", "first_seen").alias("client_of_run"),
    )
    single = F.sum("logins").over(Window.partitionBy(*there)) == 1
    is_of_run = F.col("machine_since") + F.expr("INTERVAL 1 HOUR") <= F.col("first_seen")
    is_other = (F.col("software") != F.col("of_run")) | ~F.col("client").eqNullSafe(F.col("client_of_run"))
    rows = with_in_office(uses.withColumn("single_there", single).join(machines, there), "first_seen", days)
    is_machine = (F.col("address") != UNKNOWN) & (F.col("zone_kind") != ZoneKind.NAT.value)
    is_look = F.col("single_there") & is_of_run & is_other & is_machine & F.coalesce("in_office", F.lit(False))
    return rows.where(~is_look).select(uses.columns)
