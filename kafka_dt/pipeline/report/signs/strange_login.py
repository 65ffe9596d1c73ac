"""A principal logs in without a token where it never was, and the company does not explain it: its password is stolen.

The rule looks at principals that have logged in with a password, keytab or certificate for `login_known_for`, and at
the first day (`login_first_day`) of each in a new place. The cases:

- *alone in a network, with another client* and *another program in another place*: as for tokens, in *Used by a
  stranger*.
- *away from its only network*: the principal was in one large network (/16, of IPv6 /48) alone, for `login_stays`, and
  comes to another one in which no other principal was, while its work goes on. A client that is like the usual one is
  no excuse: who has the password may know the program, too.

A place is not strange if `login_moves` principals came to it on the same day from the same place, with the libraries
that they had before; nor on the day on which the principal began there on many machines with its own library.

The severity is high where the principal is alone in a network with another client.

Not seen: a thief in a network of the principal, one in a network where others log in with the usual client, and
principals that travel.
"""

# The work is on one row for each principal, zone and client.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import as_text, distinct, first_and_last, some, with_most
from kafka_dt.pipeline.report.peers import first_arrivals
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.sign import Sign, advise, follow_address, follow_principal, threshold
from kafka_dt.pipeline.report.strangers import ALONE, strange_clients

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

AWAY: Final = "away from its only network"


@dataclass(frozen=True, slots=True)
class StrangeLoginThresholds:
    """When it is clear where a principal logs in."""

    login_known_for: timedelta = threshold(timedelta(days=3), "How long a principal logs in that has a usual place")
    """Programs log in every day, and a weekend is two days long."""
    login_first_day: timedelta = threshold(timedelta(days=1), "Time in a new place that is told")
    """What goes on for longer is known by then."""
    login_stays: timedelta = threshold(timedelta(days=7), "How long a principal stays that has one network")
    """People who work elsewhere do so within a week."""
    login_moves: int = threshold(3, "Principals that came to a place on the same day move together")
    """A cluster that moves or fails over takes several along."""


def strange_logins(seen: Observed, thresholds: StrangeLoginThresholds) -> DataFrame:
    """Find principals that log in from strange places; one finding a principal."""
    known_for, together = thresholds.login_known_for, thresholds.login_moves
    strange = strange_clients(seen, since="own_since", known_for=known_for, move_together=together)
    of_client = ["who", "wide", "zone", "software", "client"]
    away = _away(seen, thresholds)
    cases = strange.where(~F.col("by_token")).drop("by_token")
    found = seen.work("strange", cases.unionByName(away.join(cases, of_client, "left_anti")))
    logins = seen.usage.where(F.col("token_id").isNull()).join(found, of_client)
    rows = logins.where(F.col("first_seen") < F.col("since") + F.lit(thresholds.login_first_day))
    day = rows.withColumn("day", F.to_date("first_seen"))
    return _findings(day.join(seen.deployments, ["who", "wide", "day"], "left_anti"), _usual(seen, found))


def _away(seen: Observed, thresholds: StrangeLoginThresholds) -> DataFrame:
    """Give the clients of principals that leave their only network while they go on there."""
    stays = (F.col("owner_before") == 1) & (F.col("since") >= F.col("own_since") + F.lit(thresholds.login_stays))
    alone = (F.col("others_before") == 0) & (F.col("others_moved") < thresholds.login_moves - 1)
    goes_on = F.col("elsewhere_until") > F.col("since") + F.lit(thresholds.login_first_day)
    came = first_arrivals(seen.network_arrivals, stays & alone & goes_on)
    counts = F.format_string(
        "%d other principals came to %s; the principal was in %s alone since %s",
        F.col("others_before") + F.col("others_along"),
        "wide",
        "origin",
        as_text(F.col("owner_since")),
    )
    places = came.select("who", "wide", "since", counts.alias("counts"), F.lit(AWAY).alias("case"))
    clients = seen.clients.where(~F.col("by_token")).select("who", "wide", "zone", "software", "client")
    return clients.join(places, ["who", "wide"])


def _usual(seen: Observed, found: DataFrame) -> DataFrame:
    """Tell where the principals logged in before, and until when they do."""
    began = found.groupBy("who").agg(F.min("since").alias("began"))
    before = seen.clients.join(began, "who").where(F.col("first_seen") < F.col("began"))
    return before.groupBy("who").agg(
        F.slice(distinct("zone"), 1, SHOWN).alias("usual_zones"),
        F.slice(distinct("software"), 1, SHOWN).alias("usual_clients"),
        F.max("last_seen").alias("usual_until"),
    )


def _findings(logins: DataFrame, usual: DataFrame) -> DataFrame:
    rows = (
        logins.groupBy(F.col("who"))
        .agg(
            *first_and_last(),
            F.sum("logins").alias("events"),
            F.array_sort(F.collect_set("case")).alias("cases"),
            with_most("address", "logins").alias("address"),
            F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
            F.slice(distinct("zone"), 1, SHOWN).alias("zones"),
            F.slice(distinct("software"), 1, SHOWN).alias("clients"),
            F.min("counts").alias("counts"),
        )
        .join(usual, "who", "left")
        .withColumns({"token_id": F.lit(None).cast("string"), "owner": F.col("who")})
    )
    return finding_rows(
        rows,
        subject="who",
        severity=high_if(F.array_contains("cases", ALONE)),
        evidence=[
            ("what is unusual", F.array_join("cases", ", ")),
            ("from addresses", some(F.col("addresses"))),
            ("in zones", some(F.col("zones"))),
            ("counted", F.col("counts")),
            ("clients", some(F.col("clients"))),
            ("usual zones", some(F.col("usual_zones"))),
            ("usual clients", some(F.col("usual_clients"))),
            ("usual logins last seen", as_text(F.col("usual_until"))),
        ],
    )


STRANGE_LOGIN: Final = Sign(
    kind="strange_login",
    title="Logged in by a stranger",
    meaning="A principal logs in without a token in a place, or with a program, that it never had.",
    finds="a password, keytab or certificate in a place that is new to its principal and that others do not explain",
    misses="a thief in a network of the principal, and principals that travel",
    subject_type=SubjectType.PRINCIPAL,
    thresholds=StrangeLoginThresholds(),
    rule=strange_logins,
    steps=(
        advise("Ask the principal's team whether these logins are theirs. If not, change the password or the keytab:"),
        follow_principal,
        follow_address,
    ),
)
