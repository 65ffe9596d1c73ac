"""A principal logs in without a token where it never was, and the company does not explain it: its password is stolen.

The rule looks at principals that have logged in with a password, keytab or certificate for `login_known_for`, and at
the first day (`login_first_day`) of each in a new place. Some of the cases are about principals that are new:

- *alone in a network, with another client* and *another program in another place*: as for tokens, in *Used by a
  stranger*.
- *away from its networks*: a program was in one large network (/16, of IPv6 /48) alone, for `login_stays`, and comes to
  another one in which no other principal was, while its work goes on. One that works at every hour of the day may have
  been in `login_networks` before. The usual client is no excuse: who has the password may know the program, too. Who
  works by day travels. A program that still logs in from the new network `login_moved_after` its last login elsewhere
  has moved there.
- *a program among people*: the principal does not work by day, and comes to a large network in which `login_people`
  principals log in that do, and `login_of_people` of all: an office, or its VPN. The networks in which it was before
  have fewer of them, its work goes on there, and it had logged in at every hour of the day, or `login_often` times.
- *in the only place of another*: the principal was for `login_stays` in zones in which no other one ever is, such as
  those of a branch or a plant, and comes to a zone of one other principal, while its work goes on.
- *new, with rights on all topics, and alone*: an ACL allows the principal all topics, if it is not to describe them, or
  the cluster, and its first login comes within `login_granted` from a large network in which no other principal ever
  is. A thief with an administrator's password makes such users.
- *made at night by another administrator than usual*: a new user comes over the Internet. Its credentials were made
  outside the hours of the company (`workdays.office_hours`), by a principal that made `login_rare_maker` of the new
  users at most.
- *after a long silence, elsewhere*: the principal was silent for `login_silent`, and comes to a zone where it never was
  to make its first token. Who comes back from a long holiday works as before.
- *new, and soon gone*: the principal logs in for the first time when the table is older than `login_new_after`,
  `login_once` times or more, with client ids that libraries give; within `login_brief` it is gone, for `login_gone` at
  least. A forgotten account has woken up, or a thief has made a user. Its network is one that no other principal uses,
  or one that others use for `login_new_after`. A visitor, such as an auditor, is quiet: on each day the first and the
  last login without a token are in the hours of the company, and all logins are from private networks, or from public
  ones that the file names as the company's.

*Alone in a network* is quiet for people who work by day and come by day, with a library that they had before: they are
at home, or on a trip. *Another program in another place* is quiet in a private network for people who come by day, and
for who does not work around the clock if `login_colleagues` people log in there with this library in the month around,
for a day or longer.

A place is not strange if `login_moves` principals came to it on the same day from the same place, with the libraries
that they had before; nor on the day on which the principal began there on many machines with one library that it had
before. Another program is not strange on a host on which several principals log in with the same library
(`hosts.with_shared`), unless the principal logged in at every hour of the day before: people come to a bastion to
administer, programs do not.

The severity is high where the principal is alone in a network with another client; but medium if it works by day, and
comes in its day in the first week in which it is known.

Not seen: a thief in a network of the principal, one that goes on for `login_moved_after` or longer when the principal's
own programs have stopped, one in a network where others log in with the usual client, one on a host that several
principals share, one with a person's usual client, principals that travel, and a thief with the password of a person
who comes by day with a library of that person, or in a private network.
"""

# The work is on one row for each principal, zone and client.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import (
    DAY_H,
    as_text,
    distinct,
    first_and_last,
    is_public,
    some,
    with_most,
)
from kafka_dt.pipeline.report.habits import AROUND
from kafka_dt.pipeline.report.hosts import with_shared
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.login_cases import hours_before, login_cases
from kafka_dt.pipeline.report.signs.sign import Sign, advise, follow_address, follow_principal, threshold
from kafka_dt.pipeline.report.strangers import ALONE, ANEW, CLIENT, strange_clients, with_owners_since
from kafka_dt.pipeline.report.workdays import is_in_day, with_first_week

if TYPE_CHECKING:
    from kafka_dt.pipeline.report.signs.sign import Observed

_STAYS: Final = timedelta(days=1)
"""The passwords that a thief has are used within hours."""
_PEOPLE_H: Final = 7
"""In so many hours of the day people log in, at least, with an hour around each; a job that runs twice does not."""


@dataclass(frozen=True, slots=True)
class StrangeLoginThresholds:
    """When it is clear where a principal logs in."""

    login_known_for: timedelta = threshold(timedelta(days=3), "How long a principal logs in that has a usual place")
    """Programs log in every day, and a weekend is two days long."""
    login_people_known_for: timedelta = threshold(
        timedelta(days=14), "... that works by day, and comes in its day with another program"
    )
    """People have a program that they use once a week."""
    login_first_day: timedelta = threshold(timedelta(days=1), "Time in a new place that is told")
    """What goes on for longer is known by then."""
    login_stays: timedelta = threshold(timedelta(days=7), "How long a principal stays that has one network")
    """People who work elsewhere do so within a week."""
    login_people: int = threshold(5, "People that log in in a network of people")
    """Fewer may be the operators of a cluster."""
    login_of_people: float = threshold(0.6, "Share of people among the principals of a network of people")
    """Networks of programs have fewer people than the rest of this."""
    login_often: int = threshold(50, "Logins of a program before it comes to people")
    """A person that works at any hour has fewer in a month."""
    login_networks: int = threshold(3, "Networks of a program that stays where it is, at most")
    """Two regions, and a network for tests."""
    login_moved_after: timedelta = threshold(
        timedelta(days=3), "Time since its last login elsewhere after which a program has moved"
    )
    """A partner tries its new addresses before its move, and keeps the old ones for a while."""
    login_granted: timedelta = threshold(
        timedelta(days=1), "Time from rights on all topics to the first login of a new user"
    )
    """Who makes a user for a program starts it then."""
    login_rare_maker: float = threshold(0.2, "Share of the new users that an administrator makes who usually does not")
    """A system of identities, or one team, makes nearly all."""
    login_silent: timedelta = threshold(timedelta(days=21), "Silence after which an account has been forgotten")
    """Longer than most holidays."""
    login_new_after: timedelta = threshold(
        timedelta(days=10), "Age of the table from which on a principal's first login is late"
    )
    """Most principals log in within a week."""
    login_once: int = threshold(3, "Logins of a new principal that is soon gone, at least")
    """One or two are a try."""
    login_brief: timedelta = threshold(timedelta(days=2), "Stay of a new principal that is soon gone, at most")
    """What is begun in the evening may end on the next day."""
    login_gone: timedelta = threshold(timedelta(days=3), "Silence after which a new principal does not come back")
    """A new colleague comes back, after a weekend as well."""
    login_colleagues: int = threshold(8, "People that log in there with the library that is new to a principal")
    """A tool of many in an office, or behind its VPN."""
    login_moves: int = threshold(3, "Principals that came to a place on the same day move together")
    """A cluster that moves or fails over takes several along."""


def strange_logins(seen: Observed, thresholds: StrangeLoginThresholds) -> DataFrame:
    """Find principals that log in from strange places; one finding a principal."""
    known_for, together = thresholds.login_known_for, thresholds.login_moves
    strange = strange_clients(
        seen,
        since="own_since",
        known_for=known_for,
        people_known_for=thresholds.login_people_known_for,
        move_together=together,
    )
    own = seen.work("own", strange.where(~F.col("by_token")).drop("by_token"))
    own = _without_people(own, seen, thresholds)
    cases = (each.withColumn("order", F.lit(order)) for order, each in enumerate((own, *login_cases(seen, thresholds))))
    found = seen.work("strange", reduce(DataFrame.unionByName, cases))
    logins = seen.usage.where(F.col("token_id").isNull()).join(found, [*CLIENT])
    rows = logins.where(F.col("first_seen") < F.col("since") + F.lit(thresholds.login_first_day))
    of_use = Window.partitionBy(*CLIENT, "address").orderBy("order")
    ranked = _not_on_shared_hosts(rows, seen).withColumn("rank", F.rank().over(of_use)).where(F.col("rank") == 1)
    day = with_first_week(ranked, seen.clients, seen.workdays).withColumn("day", F.to_date("first_seen"))
    return _findings(day.join(seen.deployments, ["who", "wide", "day"], "left_anti"), _usual(seen, found))


def _without_people(strange: DataFrame, seen: Observed, thresholds: StrangeLoginThresholds) -> DataFrame:
    """Leave out people: by day with a library that they had, or in a private network by day or with a tool of many."""
    rows = strange.join(seen.workdays, "who", "left").join(hours_before(seen, strange), "who", "left")
    rows = rows.join(_tools(seen, strange), ["who", "zone", "software"], "left")
    rows = with_owners_since(rows, seen.clients, "software")
    by_day = F.coalesce(is_in_day(F.col("since")), F.lit(False))
    is_tool = (F.col("colleagues") >= thresholds.login_colleagues) & F.col("hours").between(_PEOPLE_H, DAY_H - 1)
    in_office = (F.col("case") == ANEW) & ~is_public(F.col("wide")) & (by_day | F.coalesce(is_tool, F.lit(False)))
    on_a_trip = (F.col("case") == ALONE) & by_day & (F.col("owner_software_since") < F.col("since"))
    return rows.where(~(in_office | on_a_trip)).select(strange.columns)


def _tools(seen: Observed, strange: DataFrame) -> DataFrame:
    """Count the people that log in without a token in the same zone, with the same library, in the month around."""
    stays = F.col("first_seen") + F.lit(_STAYS) <= F.col("last_seen")
    people = seen.clients.where(~F.col("by_token") & stays).join(seen.workdays, "who", "left_semi")
    others = people.select(F.col("who").alias("other"), "zone", "software", "first_seen", "last_seen")
    around = F.lit(AROUND)
    near = (F.col("first_seen") <= F.col("since") + around) & (F.col("last_seen") >= F.col("since") - around)
    there = strange.select("who", "zone", "software", "since").join(others, ["zone", "software"])
    counted = there.where(near & (F.col("other") != F.col("who"))).groupBy("who", "zone", "software")
    return counted.agg(F.count_distinct("other").alias("colleagues"))


def _not_on_shared_hosts(logins: DataFrame, seen: Observed) -> DataFrame:
    """Leave out another program on a shared host, unless the principal works around the clock."""
    programs = hours_before(seen, logins).where(F.col("hours") == DAY_H)
    rows = with_shared(logins, seen.habits, "address", "software").join(programs, "who", "left")
    is_usual = (F.col("case") == ANEW) & F.col("on_shared") & F.col("hours").isNull()
    return rows.where(~is_usual).drop("on_shared", "hours")


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
            F.bool_and("first_week").alias("first_week"),
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
        severity=high_if(F.array_contains("cases", ALONE) & ~F.col("first_week")),
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
    misses="a thief in a network of the principal, or by day with a person's library, and principals that travel",
    subject_type=SubjectType.PRINCIPAL,
    thresholds=StrangeLoginThresholds(),
    rule=strange_logins,
    steps=(
        advise("Ask the principal's team whether these logins are theirs. If not, change the password or the keytab:"),
        follow_principal,
        follow_address,
    ),
)
