"""The cases of `strange_login.py` that are about principals without a token alone.

    for clients in login_cases(seen, thresholds):
        ...                             # `who`, `wide`, `zone`, `software`, `client`, `case`, `since`, `counts`

What the cases mean is told there. Each gives the clients of the principals in the places that are strange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.deeds import changed_user
from kafka_dt.pipeline.report.expressions import (
    DAY_H,
    UNKNOWN,
    as_text,
    hours_at_work,
    is_given,
    is_public,
    of_first,
    ok,
    ordering,
)
from kafka_dt.pipeline.report.peers import first_arrivals
from kafka_dt.pipeline.report.strangers import CLIENT
from kafka_dt.pipeline.report.workdays import is_inside, out_of_office, with_in_office

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed
    from kafka_dt.pipeline.report.signs.strange_login import StrangeLoginThresholds

AWAY: Final = "away from its networks"
BACK_DOOR: Final = "new, with rights on all topics, and alone"
AMONG_PEOPLE: Final = "a program among people"
BRANCH: Final = "in the only place of another"
BY_NIGHT: Final = "made at night by another administrator than usual"
AWAKE: Final = "after a long silence, elsewhere"
ONCE: Final = "new, and soon gone"
_ALL_RIGHTS: Final = (
    r"(?s)^ALLOW (?:(?:[A-CE-Z][A-Za-z]*|Delete) of (?:LITERAL Topic:'\*'|PREFIXED Topic:'')"
    r"|(?:All|Alter|ClusterAction) of [A-Za-z]+ Cluster:'[^']*') to (.*) from [^ ]+$"
)
"""The text of an ACL that gives a principal all topics, or the cluster. An auditor may describe topics, and a producer
may write with idempotence."""


def login_cases(seen: Observed, thresholds: StrangeLoginThresholds) -> Iterator[DataFrame]:
    """Give the clients of each case; a client may be of several, and the first one counts."""
    for case in (_away, _among_people, _in_branches, _back_doors, _made_by_night, _awake, _once):
        yield case(seen, thresholds)


def hours_before(seen: Observed, came: DataFrame) -> DataFrame:
    """Count in how many hours of the day some principals (`who`) logged in without a token before `since` (`hours`)."""
    principals = came.groupBy("who").agg(F.min("since").alias("since"))
    return _logins_before(seen, principals, "who").select("who", "hours")


def _logins_before(seen: Observed, came: DataFrame, *of: str) -> DataFrame:
    """Count the logins of principals without a token before `since` (`logins_before`), and the hours of the day.

    `came` has one row for each value of the columns `of`, and `who` is one of these.
    """
    logins = seen.deeds.where(ok(EventType.LOGIN)).withColumnRenamed("principal", "who")
    before = logins.join(came.select(*of, "since"), "who").where(F.col("last_seen") < F.col("since"))
    counts = (F.size(hours_at_work()).alias("hours"), F.sum("deeds").alias("logins_before"))
    return before.groupBy(*of).agg(*counts)


def _away(seen: Observed, thresholds: StrangeLoginThresholds) -> DataFrame:
    """Give the clients of programs that leave their networks while they go on there."""
    few = F.col("owner_before").between(1, thresholds.login_networks)
    stays = few & (F.col("since") >= F.col("own_since") + F.lit(thresholds.login_stays))
    alone = (F.col("others_before") == 0) & (F.col("others_moved") < thresholds.login_moves - 1)
    arrivals = seen.network_arrivals
    others = arrivals.select("who", F.col("wide").alias("other"), F.col("until").alias("other_until"))
    stayed = arrivals.select("who", "wide", "until").join(others, "who").where(F.col("other") != F.col("wide"))
    last = stayed.groupBy("who", "wide", "until").agg(F.max("other_until").alias("other_until"))
    moved = last.where(F.col("other_until") + F.lit(thresholds.login_moved_after) <= F.col("until")).select(
        "who", "wide"
    )
    came = first_arrivals(arrivals, stays & alone & _goes_on(thresholds)).join(moved, ["who", "wide"], "left_anti")
    came = came.join(hours_before(seen, came), "who").where((F.col("owner_before") == 1) | (F.col("hours") == DAY_H))
    came = came.join(seen.workdays, "who", "left_anti")
    counts = F.format_string(
        "%d other principals came to %s; the principal was in %d other networks since %s, and most in %s",
        F.col("others_before") + F.col("others_along"),
        "wide",
        "owner_before",
        as_text(F.col("owner_since")),
        "origin",
    )
    return _clients(seen, came.select("who", "wide", "since", counts.alias("counts")), "wide", AWAY)


def _among_people(seen: Observed, thresholds: StrangeLoginThresholds) -> DataFrame:
    """Give the clients of programs that come to a large network of people, such as an office or its VPN."""
    logins = seen.clients.where(~F.col("by_token")).groupBy("who", "wide")
    own = logins.agg(F.min("first_seen").alias("since"), F.max("last_seen").alias("until"))
    rows = own.join(seen.workdays.select("who", F.lit(True).alias("person")), "who", "left").fillna(False, ["person"])
    networks = rows.groupBy("wide").agg(
        F.count("*").alias("principals"), F.count(F.when(F.col("person"), 1)).alias("people")
    )
    earlier = Window.partitionBy("who").orderBy("since", "wide").rowsBetween(Window.unboundedPreceding, -1)
    share = F.col("people") / F.col("principals")
    came = (
        rows.where(~F.col("person"))
        .join(networks, "wide")
        .withColumns({"most_before": F.max(share).over(earlier), "elsewhere_until": F.max("until").over(earlier)})
        .withColumn("began", F.min("since").over(Window.partitionBy("who")))
        .where((F.col("people") >= thresholds.login_people) & (share >= thresholds.login_of_people))
        .where((F.col("most_before") < 1 - thresholds.login_of_people) & _goes_on(thresholds))
        .where(F.col("since") >= F.col("began") + F.lit(thresholds.login_known_for))
        .select("who", "wide", "since", "people", "principals")
    )
    moved = seen.network_arrivals.where(F.col("others_moved") >= thresholds.login_moves - 1).select("who", "wide")
    came = seen.work("among_people", came.join(moved, ["who", "wide"], "left_anti"))
    is_program = (F.col("hours") == DAY_H) | (F.col("logins_before") >= thresholds.login_often)
    came = came.join(_logins_before(seen, came, "who", "wide"), ["who", "wide"]).where(is_program)
    counts = F.format_string("%d of %d principals that log in in %s work by day", "people", "principals", "wide")
    return _clients(seen, came.select("who", "wide", "since", counts.alias("counts")), "wide", AMONG_PEOPLE)


def _in_branches(seen: Observed, thresholds: StrangeLoginThresholds) -> DataFrame:
    """Give the clients of principals that have places of their own and come to the one of another principal."""
    others = F.count("*").over(Window.partitionBy("zone")) - 1
    shared = F.count(F.when(F.col("others") > 0, 1)).over(Window.partitionBy("who"))
    arrivals = seen.arrivals.withColumn("others", others).withColumn("shared", shared)
    late = (F.col("owner_before") > 0) & (F.col("since") >= F.col("own_since") + F.lit(thresholds.login_stays))
    of_another = (F.col("others") == 1) & (F.col("others_before") == 1) & (F.col("shared") == 1)
    came = arrivals.where(late & of_another & _goes_on(thresholds))
    counts = F.format_string(
        "one other principal is in %s; no other one is in the %d other zones of the principal", "zone", "owner_before"
    )
    return _clients(seen, came.select("who", "zone", "since", counts.alias("counts")), "zone", BRANCH)


def _back_doors(seen: Observed, thresholds: StrangeLoginThresholds) -> DataFrame:
    """Give the clients of new principals that got rights on all topics, in networks of no other principal."""
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
        "no other principal was in %s; %s gave it rights on all topics at %s",
        "wide",
        "operator",
        as_text(F.col("granted_at")),
    )
    return _clients(seen, came.select("who", "wide", "since", counts.alias("counts")), "wide", BACK_DOOR)


def _made_by_night(seen: Observed, thresholds: StrangeLoginThresholds) -> DataFrame:
    """Give the clients of new users that come over the Internet, and that another administrator than usual has made."""
    changes = seen.deeds.where(ok(EventType.SCRAM_USER_CHANGED))
    maker = F.coalesce("principal", F.lit(UNKNOWN))
    made = changes.groupBy(changed_user().alias("who")).agg(
        F.min("first_seen").alias("made_at"), F.min_by(maker, ordering("first_seen", maker)).alias("maker")
    )
    arrivals = seen.network_arrivals.where(F.col("owner_before") == 0).select("who", "wide", "since")
    new = made.join(arrivals, "who", "left").where(F.col("since").isNull() | (F.col("made_at") < F.col("since")))
    new = new.withColumn("by_maker", F.count("*").over(Window.partitionBy("maker")))
    every = new.agg(F.count("*").alias("made"))
    is_rare = F.col("by_maker") <= F.col("made") * thresholds.login_rare_maker
    came = new.crossJoin(F.broadcast(every)).where(is_rare & is_public(F.col("wide")))
    came = out_of_office(came, "made_at", seen.workdays)
    counts = F.format_string(
        "%s made %d of the %d new users, this one at %s", "maker", "by_maker", "made", as_text(F.col("made_at"))
    )
    return _clients(seen, came.select("who", "wide", "since", counts.alias("counts")), "wide", BY_NIGHT)


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


def _once(seen: Observed, thresholds: StrangeLoginThresholds) -> DataFrame:
    """Give the clients of principals that come late, for a short time, with what libraries call themselves.

    Others were in the network before, or no other one ever is. Visitors are left out.
    """
    there = Window.partitionBy("wide")
    arrivals = seen.network_arrivals.withColumns(
        {"wide_since": F.min("since").over(there), "ever": F.count("*").over(there)}
    )
    span = seen.clients.agg(F.min("first_seen").alias("begin"), F.max("last_seen").alias("end"))
    principals = seen.clients.groupBy("who").agg(
        F.max("last_seen").alias("gone_at"),
        F.bool_and(is_given(F.col("client"))).alias("given"),
        F.sum("logins").alias("times"),
    )
    new_after = F.lit(thresholds.login_new_after)
    in_use = (F.col("wide_since") + new_after <= F.col("since")) | (F.col("ever") == 1)
    came = (
        arrivals.where((F.col("owner_before") == 0) & in_use)
        .join(principals.where(F.col("given") & (F.col("times") >= thresholds.login_once)), "who")
        .crossJoin(F.broadcast(span))
        .where(
            (F.col("begin") + new_after <= F.col("since"))
            & (F.col("gone_at") < F.col("since") + F.lit(thresholds.login_brief))
            & (F.col("gone_at") + F.lit(thresholds.login_gone) < F.col("end"))
        )
    )
    came = came.join(_visitors(came, seen), "who", "left_anti")
    counts = F.format_string(
        "no login before %s, and none after %s", as_text(F.col("since")), as_text(F.col("gone_at"))
    )
    return _clients(seen, came.select("who", "wide", "since", counts.alias("counts")), "wide", ONCE)


def _visitors(came: DataFrame, seen: Observed) -> DataFrame:
    """Give the principals (`who`) of `came` that log in only in the hours of the company, and only in its networks."""
    candidates = came.select("who").distinct()
    in_company = is_inside() & (F.col("wide") != UNKNOWN)
    places = seen.usage.join(candidates, "who", "left_semi").groupBy("who")
    inside = places.agg(F.bool_and(in_company).alias("inside")).where("inside")
    logins = seen.deeds.where(ok(EventType.LOGIN)).withColumnRenamed("principal", "who").join(inside, "who")
    instants = logins.select("who", F.explode(F.array("first_seen", "last_seen")).alias("at"))
    by_day = with_in_office(instants, "at", seen.workdays).groupBy("who").agg(F.bool_and("in_office").alias("by_day"))
    return by_day.where("by_day").select("who")


def _goes_on(thresholds: StrangeLoginThresholds) -> Column:
    """Whether the principal goes on where it was before."""
    return F.col("elsewhere_until") > F.col("since") + F.lit(thresholds.login_first_day)


def _clients(seen: Observed, places: DataFrame, place: str, case: str) -> DataFrame:
    clients = seen.clients.where(~F.col("by_token")).select(*CLIENT)
    return clients.join(places.withColumn("case", F.lit(case)), ["who", place])
