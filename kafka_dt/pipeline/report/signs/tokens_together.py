"""Tokens of several owners come to one machine together, with one program.

Who takes many tokens tries them, one after the other, on one machine. So this is a sign: tokens of `came_together`
owners log in at an address for the first time within `together_within`, with the same library and the same kind of
client id. At most `were_there` owners used tokens there before, and `at_machine` others do so in all. By then
tokens of each of these owners were in use for `together_history`.

Workers of a cluster, runners of tests and hubs have many owners, but each owner's program has a client id of its own,
or they begin there. An address that a file of networks calls a NAT stands for many machines, and is left out. An owner
that logs in at the address without a token, too, for the first time within an hour of its token, is not one of those
that came together: its program has moved. So the programs of a site whose line is down come over another line. An owner
is not counted either if its tokens come to `spread_over` machines or more on its first day in the zone, and are used in
the zone a day later, too: its job has moved to another cluster.

The program may be the owner's own for each of the tokens: a thief has copied the files of a backup. Then the tokens
come within `visit_within`, are over by then and never come again, the zone is new to each of their owners, and the
owners go on elsewhere. A machine that programs have moved to keeps them. Owners that work by day are left out: people
who meet may share an address.

The severity is medium where each token has its owner's program: a spare machine may do some work of three jobs.
Otherwise it is high: of 45 such machines in 32 months of sixteen companies one was honest, in a room in which a course
was held.

Not seen: tokens that a thief tries hours apart, with another client id for each where an owner was before, or from
another address for each, on a machine that many owners use, on three machines on one day and again a day later, or in
the first days of the table.
"""

# The work is on one row for each owner at each address.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import UNKNOWN, distinct, distinct_over, first_and_last, host, some
from kafka_dt.pipeline.report.networks import ZoneKind
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.sign import Sign, advise, follow_address, threshold

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

_OWN_LOGIN_WITHIN: Final = timedelta(hours=1)
"""A program that has moved logs in to get a token, and uses it at once."""


@dataclass(frozen=True, slots=True)
class TokensTogetherThresholds:
    """When owners that come to a machine come together."""

    came_together: int = threshold(3, "Owners whose tokens come to a machine together")
    """Two come by accident: in 32 months 270 times."""
    together_within: timedelta = threshold(timedelta(hours=1), "... within")
    """In three hours six times as many honest machines have them."""
    visit_within: timedelta = threshold(
        timedelta(hours=6), "... or with the program of each owner, and all is over within"
    )
    """In six months no honest machine had three owners so."""
    were_there: int = threshold(2, "Owners that used tokens there before, at most")
    """The thief's own work, and a pod that had the address."""
    at_machine: int = threshold(12, "Owners that use tokens there besides these, at most")
    """A gateway, a hub, and a worker of a cluster have more."""
    spread_over: int = threshold(3, "Machines to which tokens of an owner come on its first day in a zone")
    """A thief has one machine, or two."""
    together_history: timedelta = threshold(timedelta(days=3), "Time in which their tokens were used elsewhere")
    """A new hub, or a new cluster, begins with new owners; so does the table."""


def tokens_together(seen: Observed, thresholds: TokensTogetherThresholds) -> DataFrame:
    """Find such machines; one finding an address."""
    came = seen.work("came", _arrivals(seen, thresholds.spread_over))
    together = _together(came, thresholds).withColumn("one_program", F.lit(True))
    visits = _visits(came, seen, thresholds).withColumn("one_program", F.lit(False))
    visits = visits.join(together.select("address"), "address", "left_anti")
    found = (
        together.unionByName(visits.select(together.columns))
        .groupBy("address")
        .agg(
            *first_and_last(),
            F.sum("logins").alias("events"),
            F.max("together").alias("together"),
            F.max("one_program").alias("one_program"),
            F.min("before").alias("before"),
            *(distinct(name).alias(f"{name}s") for name in ("who", "token_id")),
            distinct(F.concat_ws(" as ", "software", "client")).alias("clients"),
            F.max("zone").alias("zone"),
        )
    )
    none = F.lit(None).cast("string")
    return finding_rows(
        found.where(F.col("before") <= thresholds.were_there).withColumns({"token_id": none, "owner": none}),
        subject="address",
        severity=high_if(F.col("one_program")),
        evidence=[
            ("owners that came together", F.col("together")),
            ("owners", some(F.col("whos"), SHOWN)),
            ("tokens", some(F.col("token_ids"), SHOWN)),
            ("clients", some(F.col("clients"))),
            ("in zone", F.col("zone")),
            ("owners there before", F.col("before")),
        ],
    )


def _arrivals(seen: Observed, spread_over: int) -> DataFrame:
    """Give the first use of tokens of each owner at each address, and since when the owner uses any (`known_since`)."""
    own = seen.usage.where(F.col("token_id").isNull())
    own = own.groupBy("address", "who").agg(F.min("first_seen").alias("own_came"))
    around = F.col("own_came").between(
        F.col("first_seen") - F.lit(_OWN_LOGIN_WITHIN), F.col("first_seen") + F.lit(_OWN_LOGIN_WITHIN)
    )
    is_machine = (F.col("address") != UNKNOWN) & (F.col("zone_kind") != ZoneKind.NAT.value)
    first = F.struct("first_seen", "last_seen", "software", "client", "zone", "token_id", "logins")
    uses = seen.usage.where(F.col("token_id").isNotNull())
    came = uses.where(is_machine).groupBy("address", "who").agg(F.min(first).alias("first"))
    known = uses.groupBy("who").agg(F.min("first_seen").alias("known_since"))
    first_uses = _with_spread(came.select("address", "who", "first.*"), uses, spread_over)
    first_uses = first_uses.join(own, ["address", "who"], "left")
    has_moved = (F.coalesce(around, F.lit(False)) | F.col("spread")).alias("has_moved")
    return first_uses.select("*", has_moved).drop("own_came", "spread").join(known, "who")


def _with_spread(came: DataFrame, uses: DataFrame, machines: int) -> DataFrame:
    """Add whether an owner came to a zone with so many machines on its first day there, and stays (`spread`)."""
    day = F.expr("INTERVAL 1 DAY")
    stays = uses.groupBy("who", "zone").agg((F.max("last_seen") - day).alias("stays_until"))
    in_zone = Window.partitionBy("who", "zone")
    on_first_day = F.when(F.col("first_seen") < F.min("first_seen").over(in_zone) + day, host(F.col("address")))
    rows = came.withColumn("first_host", on_first_day).join(stays, ["who", "zone"])
    is_spread = F.col("first_host").isNotNull() & (distinct_over("first_host", "who", "zone") >= machines)
    spread = is_spread & (F.col("stays_until") >= F.col("first_seen"))
    return rows.withColumn("spread", spread).drop("first_host", "stays_until")


def _together(came: DataFrame, thresholds: TokensTogetherThresholds) -> DataFrame:
    """Keep those that came together; adds of how many owners they are (`together`), and how many came `before`."""
    seconds = int(thresholds.together_within.total_seconds())
    by_program = Window.partitionBy("address", "software", "client").orderBy(F.unix_seconds("first_seen"))
    known = F.col("known_since") + F.lit(thresholds.together_history) <= F.col("first_seen")
    of_known = came.withColumns(_owners_there()).where(known & ~F.col("has_moved"))
    until_then = F.count("*").over(by_program.rangeBetween(-seconds, 0))
    together = F.max("until_then").over(by_program.rangeBetween(0, seconds))
    rows = of_known.withColumn("until_then", until_then).withColumn("together", together)
    few = F.col("in_all") - F.col("together") <= thresholds.at_machine
    return rows.where((F.col("together") >= thresholds.came_together) & few).drop("until_then")


def _owners_there() -> dict[str, Column]:
    """How many owners used tokens at the address of a row `before`, and `in_all`."""
    there = Window.partitionBy("address")
    earlier = there.orderBy("first_seen", "who").rowsBetween(Window.unboundedPreceding, -1)
    return {"before": F.count("*").over(earlier), "in_all": F.count("*").over(there)}


def _visits(came: DataFrame, seen: Observed, thresholds: TokensTogetherThresholds) -> DataFrame:
    """Keep those that came together for hours to a zone that is new to them, as `_together` does."""
    within = F.lit(thresholds.visit_within)
    uses = seen.usage.where(F.col("token_id").isNotNull())
    there = uses.groupBy("address", "who").agg(F.max("last_seen").alias("left_at"))
    goes_on = uses.groupBy("who").agg(F.max("last_seen").alias("goes_on"))
    table = uses.agg(F.max("last_seen").alias("ends"))
    zones = seen.arrivals.select("who", "zone", F.col("since").alias("zone_since"))
    known = F.col("known_since") + F.lit(thresholds.together_history) <= F.col("first_seen")
    is_visit = (
        known
        & ~F.col("has_moved")
        & (F.col("zone_since") >= F.col("first_seen"))
        & (F.col("left_at") <= F.col("first_seen") + within)
        & (F.col("goes_on") > F.col("left_at"))
        & (F.col("ends") > F.col("left_at") + within)
    )
    programs = came.withColumns(_owners_there()).join(seen.workdays, "who", "left_anti")
    rows = programs.join(zones, ["who", "zone"]).join(goes_on, "who").crossJoin(F.broadcast(table))
    visits = rows.join(there, ["address", "who"]).where(is_visit)
    of_machine = Window.partitionBy("address")
    is_over = F.max("left_at").over(of_machine) <= F.min("first_seen").over(of_machine) + within
    few = F.col("in_all") - F.col("together") <= thresholds.at_machine
    counted = visits.withColumn("together", F.count("*").over(of_machine)).withColumn("is_over", is_over)
    return counted.where(F.col("is_over") & (F.col("together") >= thresholds.came_together) & few)


TOKENS_TOGETHER: Final = Sign(
    kind="tokens_together",
    title="Tokens of several owners at one machine",
    meaning="A client logs in with tokens of several owners that were never at this address, one after the other.",
    finds="a machine to which tokens of several owners come within an hour, with one program",
    misses="tokens that are tried hours apart or under different client ids, and machines of many owners",
    subject_type=SubjectType.ADDRESS,
    thresholds=TokensTogetherThresholds(),
    rule=tokens_together,
    steps=(
        advise("Ask whose machine this is. If it is a thief's, block the address at the listeners."),
        advise("End the tokens that the evidence names (kafka-dt token revoke)."),
        follow_address,
    ),
)
