"""A principal logs in without a token where it never was, and the company does not explain it: its password is stolen.

The rule looks at principals that have logged in with a password, keytab or certificate for `login_known_for`, and at
the first day (`login_first_day`) of each in a new place. The cases:

- *alone in a network, with another client* and *another program in another place*: as for tokens, in *Used by a
  stranger*.
- *away from its networks*: the principal was in one large network (/16, of IPv6 /48) alone, for `login_stays`, and
  comes to another one in which no other principal was, while its work goes on. A program, which works at every hour of
  the day, may have been in `login_networks` before; a person travels. A client that is like the usual one is no excuse:
  who has the password may know the program, too.
- *in the only place of another*: the principal was for `login_stays` in zones in which no other one ever is, such as
  those of a branch or a plant, and comes to a zone of one other principal, while its work goes on.
- *new, with all rights, and alone*: an ACL allows the principal all on all topics, or on the cluster, and its first
  login comes within `login_granted` from a large network in which no other principal ever is. A thief with an
  administrator's password makes such users. The other cases need a principal that is known, this one does not.
- *after a long silence, elsewhere*: the principal was silent for `login_silent`, and comes to a zone where it never was
  to make its first token. Who comes back from a long holiday works as before.

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

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.expressions import (
    DAY_H,
    as_text,
    distinct,
    first_and_last,
    hours_at_work,
    of_first,
    ok,
    some,
    with_most,
)
from kafka_dt.pipeline.report.peers import first_arrivals
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.sign import Sign, advise, follow_address, follow_principal, threshold
from kafka_dt.pipeline.report.strangers import ALONE, strange_clients

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

AWAY: Final = "away from its networks"
BACK_DOOR: Final = "new, with all rights, and alone"
BRANCH: Final = "in the only place of another"
AWAKE: Final = "after a long silence, elsewhere"
_ALL_RIGHTS: Final = r"^ALLOW (?:All|Alter|ClusterAction) of \w+ (?:Topic:'\*'|Cluster:'[^']*') to (.*) from \S+$"
"""The text of an ACL that gives a principal all topics, or the cluster."""


@dataclass(frozen=True, slots=True)
class StrangeLoginThresholds:
    """When it is clear where a principal logs in."""

    login_known_for: timedelta = threshold(timedelta(days=3), "How long a principal logs in that has a usual place")
    """Programs log in every day, and a weekend is two days long."""
    login_first_day: timedelta = threshold(timedelta(days=1), "Time in a new place that is told")
    """What goes on for longer is known by then."""
    login_stays: timedelta = threshold(timedelta(days=7), "How long a principal stays that has one network")
    """People who work elsewhere do so within a week."""
    login_networks: int = threshold(3, "Networks of a program that does not travel, at most")
    """Two regions, and a network for tests."""
    login_granted: timedelta = threshold(timedelta(days=1), "Time from all rights to the first login of a new user")
    """Who makes a user for a program starts it then."""
    login_silent: timedelta = threshold(timedelta(days=21), "Silence after which an account has been forgotten")
    """Longer than most holidays."""
    login_moves: int = threshold(3, "Principals that came to a place on the same day move together")
    """A cluster that moves or fails over takes several along."""


def strange_logins(seen: Observed, thresholds: StrangeLoginThresholds) -> DataFrame:
    """Find principals that log in from strange places; one finding a principal."""
    known_for, together = thresholds.login_known_for, thresholds.login_moves
    strange = strange_clients(seen, since="own_since", known_for=known_for, move_together=together)
    of_client = ["who", "wide", "zone", "software", "client"]
    away = _away(seen, thresholds)
    cases = strange.where(~F.col("by_token")).drop("by_token")
    for more in (away, _in_branches(seen, thresholds), _back_doors(seen, thresholds), _awake(seen, thresholds)):
        cases = cases.unionByName(more.join(cases, of_client, "left_anti"))
    found = seen.work("strange", cases)
    logins = seen.usage.where(F.col("token_id").isNull()).join(found, of_client)
    rows = logins.where(F.col("first_seen") < F.col("since") + F.lit(thresholds.login_first_day))
    day = rows.withColumn("day", F.to_date("first_seen"))
    return _findings(day.join(seen.deployments, ["who", "wide", "day"], "left_anti"), _usual(seen, found))


def _away(seen: Observed, thresholds: StrangeLoginThresholds) -> DataFrame:
    """Give the clients of principals that leave their networks while they go on there."""
    few = F.col("owner_before").between(1, thresholds.login_networks)
    stays = few & (F.col("since") >= F.col("own_since") + F.lit(thresholds.login_stays))
    alone = (F.col("others_before") == 0) & (F.col("others_moved") < thresholds.login_moves - 1)
    goes_on = F.col("elsewhere_until") > F.col("since") + F.lit(thresholds.login_first_day)
    came = first_arrivals(seen.network_arrivals, stays & alone & goes_on)
    logins = seen.deeds.where(ok(EventType.LOGIN)).withColumnRenamed("principal", "who")
    own = logins.join(came.select("who"), "who", "left_semi")
    at_work = own.groupBy("who").agg(F.size(hours_at_work()).alias("hours"))
    came = came.join(at_work, "who").where((F.col("owner_before") == 1) | (F.col("hours") == DAY_H))
    counts = F.format_string(
        "%d other principals came to %s; the principal was in %d other networks since %s, and most in %s",
        F.col("others_before") + F.col("others_along"),
        "wide",
        "owner_before",
        as_text(F.col("owner_since")),
        "origin",
    )
    return _clients(seen, came.select("who", "wide", "since", counts.alias("counts")), "wide", AWAY)


def _in_branches(seen: Observed, thresholds: StrangeLoginThresholds) -> DataFrame:
    """Give the clients of principals that have places of their own and come to the one of another principal."""
    others = F.count("*").over(Window.partitionBy("zone")) - 1
    shared = F.count(F.when(F.col("others") > 0, 1)).over(Window.partitionBy("who"))
    arrivals = seen.arrivals.withColumn("others", others).withColumn("shared", shared)
    late = (F.col("owner_before") > 0) & (F.col("since") >= F.col("own_since") + F.lit(thresholds.login_stays))
    of_another = (F.col("others") == 1) & (F.col("others_before") == 1) & (F.col("shared") == 1)
    goes_on = F.col("elsewhere_until") > F.col("since") + F.lit(thresholds.login_first_day)
    came = arrivals.where(late & of_another & goes_on)
    counts = F.format_string(
        "one other principal is in %s; no other one is in the %d other zones of the principal", "zone", "owner_before"
    )
    return _clients(seen, came.select("who", "zone", "since", counts.alias("counts")), "zone", BRANCH)


def _back_doors(seen: Observed, thresholds: StrangeLoginThresholds) -> DataFrame:
    """Give the clients of principals that got all rights and came first to a network that no other principal uses."""
    acl = F.col("acl")
    granted = (
        seen.deeds.where(ok(EventType.ACL_CREATED) & acl.rlike(_ALL_RIGHTS))
        .groupBy(F.regexp_extract(acl, _ALL_RIGHTS, 1).alias("who"))
        .agg(F.min("first_seen").alias("granted_at"), of_first("principal", "first_seen").alias("operator"))
    )
    alone = (F.col("owner_before") == 0) & (F.col("ever") == 1)
    soon = F.col("since").between(F.col("granted_at"), F.col("granted_at") + F.lit(thresholds.login_granted))
    ever = F.count("*").over(Window.partitionBy("wide"))
    came = seen.network_arrivals.withColumn("ever", ever).join(F.broadcast(granted), "who").where(alone & soon)
    counts = F.format_string(
        "no other principal was in %s; %s gave it all rights at %s", "wide", "operator", as_text(F.col("granted_at"))
    )
    return _clients(seen, came.select("who", "wide", "since", counts.alias("counts")), "wide", BACK_DOOR)


def _awake(seen: Observed, thresholds: StrangeLoginThresholds) -> DataFrame:
    """Give the clients of principals that were silent for long, come to another zone and make their first token."""
    silent = (F.col("owner_before") > 0) & (F.col("elsewhere_until") + F.lit(thresholds.login_silent) < F.col("since"))
    own = seen.deeds.where(ok(EventType.TOKEN_CREATED)).groupBy(F.col("principal").alias("who"))
    made = own.agg(F.min("first_seen").alias("made_at"))
    soon = F.col("made_at").between(F.col("since"), F.col("since") + F.lit(thresholds.login_first_day))
    came = seen.arrivals.where(silent).join(made, "who").where(soon)
    counts = F.format_string(
        "silent from %s to %s; never in %s and never made a token before",
        as_text(F.col("elsewhere_until")),
        as_text(F.col("since")),
        "zone",
    )
    return _clients(seen, came.select("who", "zone", "since", counts.alias("counts")), "zone", AWAKE)


def _clients(seen: Observed, places: DataFrame, place: str, case: str) -> DataFrame:
    clients = seen.clients.where(~F.col("by_token")).select("who", "wide", "zone", "software", "client")
    return clients.join(places.withColumn("case", F.lit(case)), ["who", place])


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
