"""A client tries a token after a request has ended it, from a place where its owner is not at home.

A principal that ends a token does not want it used. Most clients that try it again are jobs that were not told: they
are on a machine of the owner. So a login with the token's id is a sign when it comes later than clocks differ and
clients need to hear of the end (`clock_skew`), and in one of these cases:

- *a zone that is strange to the owner*: the token did not begin there, and the owner used nothing else there; or the
  file of networks calls it foreign. Such a try is a sign also within `clock_skew`, if it was refused and the owner
  was never there: clocks do not explain it.
- *a place strange to the owner, where this token was used before*: the same, but the token was used there before its
  end, and nothing else of the owner: a thief goes on.
- *a machine where the owner never was*: the zone is the owner's and a /24, and the machine is new there, where
  `machines_return` of the owner's machines came again on another day. In a larger zone, such as that of a cluster,
  machines come and go, a line's provider gives it other addresses, and in IPv6 each start may bring a new one. The
  machines of the owner's last day have had no other day to come.
- *it succeeded*: no node that sees ZooKeeper allows that. Only this case has the severity high, because in the others
  the token does not work any more.

Jobs try a token again that has ended by its age. So a refused login with one is a sign only if the owner is known, and
in two cases. The client has an old copy.

- *long after its end, where no principal logs in*: `aged` later, in a zone in which no principal ever logs in.
- *after its end, elsewhere, with another library*: in a large network (/16, of IPv6 /48) in which the owner never was,
  with a library that it never used, as the whole table says.

A token that was to end at a later time, and that was renewed before then, is not revoked. An owner without a login
before the end is not known, so its tokens are left out as well.

A scheduler that made a token for an owner ends it when the job is over. It does not revoke it, and what is left of the
job may try it: one such token on a day in a zone that is strange to the owner, within `tried_after_job` of its end, is
quiet unless the file calls the zone foreign. A thief has several.

Not seen: a thief in a zone of the owner, if the zone is large, its machines change, or the owner was on the machine;
one that used another token of the owner in the same place; one that notices the end of the token and stops trying; and
one whose last try is within the clock skew, if the owner was there; and one that tries a single token of a job, from a
place of its own, within two days after the job's scheduler has ended it. Nor is a token that was ended where no event
is written: at a broker.
"""

# Only tokens that were tried after their end are looked up in the events.

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
    distinct_over,
    first_and_last,
    of_first,
    of_type,
    ok,
    software,
    some,
    went_well,
    with_most,
)
from kafka_dt.pipeline.report.networks import ZoneKind
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.sign import Sign, advise, follow_address, follow_owner, threshold

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

OLD: Final = "long after its end, where no principal logs in"
OLD_ELSEWHERE: Final = "after its end, elsewhere, with another library"
STRANGE: Final = "a zone that is strange to the owner"


@dataclass(frozen=True, slots=True)
class RevocationThresholds:
    """How late an attempt is a sign."""

    clock_skew: timedelta = threshold(timedelta(minutes=5), "Clock skew, and time to hear of a revocation")
    """How far apart the clocks of two nodes may be, and how long a client may take to hear of a revocation. Kerberos
    allows as much."""
    aged: timedelta = threshold(
        timedelta(days=1), "Time after a token ended by its age in which a job may try it again"
    )
    """A job of the day before is over."""
    tried_after_job: timedelta = threshold(
        timedelta(days=2), "Time after a scheduler has ended a job's token in which one is tried elsewhere"
    )
    """A notebook that was closed over night tries it on the next day."""
    machines_return: float = threshold(0.75, "Share of an owner's machines in a zone that come again on another day")
    """Of fixed machines nearly all do."""


def used_after_revocation(seen: Observed, thresholds: RevocationThresholds) -> DataFrame:
    """Find tokens that were tried after their revocation; one finding a token."""
    skew = F.lit(thresholds.clock_skew)
    by_age = F.col("revoked_at").isNull()
    end = F.coalesce("revoked_at", F.col("ended_at") + skew)
    tried = seen.lives.where(F.col("last_attempt") > end).select(
        "token_id", "owner", end.alias("revoked_at"), by_age.alias("by_age")
    )
    is_late = (F.col("time") > F.col("revoked_at") + skew) & ~F.col("by_age")
    is_after = (F.col("time") > F.col("revoked_at")) & ~F.col("succeeded")
    late = _attempts(seen.events, tried).where(is_late | is_after)
    attempts = seen.work("late_attempts", seen.zones.of(_by_place(late)))
    used = seen.clients.select("zone", F.lit(True).alias("used")).distinct()
    judged = _with_past(attempts, seen.usage).join(used, "zone", "left").withColumn("case", _case(thresholds))
    judged = _without_rests_of_jobs(judged, seen, thresholds)
    in_time = ~F.col("by_age") & (F.col("last_seen") <= F.col("revoked_at") + skew)
    return _findings(judged.where(F.col("case").isNotNull() & (~in_time | (F.col("case") == STRANGE))), thresholds)


def _without_rests_of_jobs(tries: DataFrame, seen: Observed, thresholds: RevocationThresholds) -> DataFrame:
    """Leave out what tries one token in a strange zone soon after the owner's scheduler has ended it."""
    ended = seen.deeds.where(ok(EventType.TOKEN_EXPIRED)).groupBy("token_id")
    by = ended.agg(with_most("principal", "last_seen").alias("ended_by"))
    is_over = (F.col("ended_by") == F.col("requester")) & (F.col("owner") != F.col("requester"))
    over = seen.lives.join(by, "token_id").where(is_over).select("token_id", F.lit(True).alias("job_is_over"))
    one_token = distinct_over("token_id", "zone", F.to_date("first_seen")) == 1
    is_soon = F.col("last_seen") <= F.col("revoked_at") + F.lit(thresholds.tried_after_job)
    rows = tries.withColumn("one_token", one_token).join(over, "token_id", "left")
    in_company = F.col("zone_kind") != ZoneKind.FOREIGN.value
    is_rest = (F.col("case") == STRANGE) & in_company & F.col("one_token") & is_soon & F.col("job_is_over").isNotNull()
    return rows.where(~F.coalesce(is_rest, F.lit(False))).drop("one_token", "job_is_over")


def _attempts(events: DataFrame, tried: DataFrame) -> DataFrame:
    """Give the logins with the ids of some tokens."""
    logins = events.where(of_type(EventType.LOGIN) & F.col("token_id").isNotNull()).join(tried, "token_id")
    return logins.select(
        "token_id",
        tried["owner"],
        "revoked_at",
        "by_age",
        "time",
        F.coalesce("client_address", F.lit(UNKNOWN)).alias("address"),
        software(F.col("client_software")).alias("software"),
        F.concat_ws(" ", software(F.col("client_software")), "client_software_version").alias("client"),
        went_well().alias("succeeded"),
    )


def _by_place(attempts: DataFrame) -> DataFrame:
    return attempts.groupBy("token_id", "owner", "revoked_at", "by_age", "address", "software", "client").agg(
        *first_and_last("time", "time"),
        F.count("*").alias("tries"),
        F.count(F.when(F.col("succeeded"), 1)).alias("successes"),
    )


def _with_past(attempts: DataFrame, usage: DataFrame) -> DataFrame:
    """Add what the owner did at each address and in its zone: with this token, with others, and without one."""
    used = usage.withColumnRenamed("who", "owner").join(attempts.select("owner").distinct(), "owner", "left_semi")
    credential = F.coalesce("token_id", F.lit(""))
    of_tokens = used.join(attempts.select("token_id").distinct(), "token_id", "left_semi")
    began = of_tokens.groupBy("token_id").agg(of_first("zone", "first_seen").alias("began_in"))
    since = used.groupBy("owner").agg(F.min("first_seen").alias("owner_since"))
    tried = attempts.select("owner", "address").distinct()
    there = used.join(tried, ["owner", "address"], "left_semi")
    machines = there.select("owner", "address", F.lit(True).alias("used_here")).distinct()
    in_zone = used.groupBy("owner", "zone").agg(
        F.min(credential).alias("one_credential"), F.max(credential).alias("other_credential")
    )
    again = F.to_date(F.max("last_seen")) > F.to_date(F.min("first_seen"))
    of_machines = used.groupBy("owner", "zone", "address").agg(
        again.cast("int").alias("again"),
        F.to_date(F.min("first_seen")).alias("came"),
        F.max("last_seen").alias("until"),
    )
    before_last_day = F.col("came") < F.to_date(F.max("until").over(Window.partitionBy("owner")))
    counted = of_machines.withColumn("counts", before_last_day).where("counts")
    stay = counted.groupBy("owner", "zone").agg(F.avg("again").alias("stay"))
    rows = attempts.join(began, "token_id", "left").join(since, "owner", "left").join(stay, ["owner", "zone"], "left")
    rows = rows.join(machines, ["owner", "address"], "left").join(in_zone, ["owner", "zone"], "left")
    for name in ("wide", "software"):
        had = used.groupBy("owner", name).agg(F.lit(True).alias(f"had_{name}"))
        rows = rows.join(had, ["owner", name], "left")
    return rows


def _case(thresholds: RevocationThresholds) -> Column:
    """Say why an attempt is no honest one; null if its place explains it."""
    is_company = F.col("zone_kind") != ZoneKind.FOREIGN.value
    at_home = is_company & (_others_used() | F.coalesce(F.col("began_in") == F.col("zone"), F.lit(False)))
    used_here = F.coalesce("used_here", F.lit(False))
    is_known = F.col("owner_since") <= F.col("revoked_at")
    is_small = (F.col("zone") == F.col("subnet")) & F.col("zone").endswith("/24")
    fixed = is_small & (F.col("stay") >= thresholds.machines_return)
    is_old = F.col("last_seen") > F.col("revoked_at") + F.lit(thresholds.aged - thresholds.clock_skew)
    named = F.col("software") != UNKNOWN
    elsewhere = F.col("had_wide").isNull() & F.col("had_software").isNull() & named
    aged = F.when(is_old & F.col("used").isNull(), F.lit(OLD)).when(elsewhere, F.lit(OLD_ELSEWHERE))
    return (
        F.when(F.col("by_age"), F.when(is_known, aged))
        .when(F.col("successes") > 0, F.lit("it succeeded"))
        .when(is_known & ~at_home & used_here, F.lit("a place strange to the owner, where this token was used before"))
        .when(is_known & ~at_home, F.lit(STRANGE))
        .when(is_known & fixed & ~used_here, F.lit("a machine where the owner never was"))
    )


def _others_used() -> Column:
    """Whether the owner used another credential than this token in the zone."""
    used = (F.col("one_credential") != F.col("token_id")) | (F.col("other_credential") != F.col("token_id"))
    return F.coalesce(used, F.lit(False))


def _findings(attempts: DataFrame, thresholds: RevocationThresholds) -> DataFrame:
    busiest = Window.partitionBy("token_id").orderBy(F.desc("tries"), "address", "client")
    shown = F.col("rank") <= SHOWN
    rows = (
        attempts.withColumn("rank", F.row_number().over(busiest))
        .groupBy("token_id", "owner", "revoked_at", "by_age")
        .agg(
            F.max(F.when(F.col("rank") == 1, F.col("address"))).alias("address"),
            *first_and_last(),
            F.sum("tries").alias("events"),
            F.sum("successes").alias("successes"),
            distinct("case").alias("cases"),
            some(distinct(F.when(shown, F.col("address")))).alias("addresses"),
            some(distinct(F.when(shown, F.col("zone")))).alias("zones"),
            some(distinct(F.when(shown, F.col("client")))).alias("clients"),
        )
    )
    return finding_rows(
        rows,
        subject="token_id",
        severity=high_if(F.col("successes") > 0),
        evidence=[
            ("what is unusual", F.array_join("cases", ", ")),
            ("revoked", F.when(~F.col("by_age"), as_text(F.col("revoked_at")))),
            ("ended by its age", F.when(F.col("by_age"), as_text(F.col("revoked_at") - F.lit(thresholds.clock_skew)))),
            ("attempts since", F.col("events")),
            ("of these successful", F.col("successes")),
            ("from addresses", F.col("addresses")),
            ("in zones", F.col("zones")),
            ("by clients", F.col("clients")),
        ],
    )


USE_AFTER_REVOCATION: Final = Sign(
    kind="use_after_revocation",
    title="Tried after revocation",
    meaning="The token has ended, by a request or by its age, and a client tries it where the owner is not at home.",
    finds="a client that tries a token that has ended where the owner is not at home",
    misses="a client that stops in time, or is in a large zone of the owner",
    subject_type=SubjectType.TOKEN,
    thresholds=RevocationThresholds(),
    rule=used_after_revocation,
    steps=(
        advise("Find out whether it is a job that was not told: give it a new token, or stop it."),
        follow_address,
        follow_owner,
    ),
)
