"""A job's own credential makes tokens on a new machine, and they are used on that machine.

A job gets its tokens on a few machines, such as an edge host, and uses them on others: those of a cluster. An insider
with the keytab or the password of the job makes tokens on another host, and reads with them there. So this is a sign:

- A principal makes its own tokens on `own_machines` machines at most in the first `own_known` in which it makes any,
  and `own_tokens` or more on these machines in the whole table.
- It goes on with its usual machines: it makes tokens there while the new one is in use, or it pauses there no longer
  than its longest pause before. Otherwise the job has moved, or its host or its line is down.
- On a further machine it makes tokens of its own, and uses them there, in one of these ways.

The ways are:

- *again and again*: it makes `new_tokens` tokens or more there, on as many days. A share of `own_used_there`, at most,
  of the tokens that it makes on its usual machines is used where they are made.
- *at night among people*: one token is enough. A program makes it outside the hours of the company
  (`workdays.out_of_office`), within an hour of its first login in the zone, where `people_there` people log in at any
  time, and fewer programs (`workdays.people`). A share of `mostly_used_there`, at most, of the tokens that it makes on
  its usual machines is used where they are made. Engineers who run a job by hand at night do so on its host.

The severity is medium: an engineer may run the job by hand on another host for some days, or from a desk.

An address that a file of networks calls a NAT stands for many machines, and is left out.

Not seen: one token that is made by day or among programs, tokens that are used elsewhere, a machine on which the job
gets its tokens, and jobs that use tokens where they make them, as people do, or whose machines change all the time, as
pods do.
"""

# The work is on what principals did, not on events; only the tokens of principals with a new machine are looked up.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.expressions import UNKNOWN, as_text, distinct, first_and_last, of_first, ok, some
from kafka_dt.pipeline.report.networks import ZoneKind
from kafka_dt.pipeline.report.signs.finding import SHOWN, Severity, SubjectType, finding_rows
from kafka_dt.pipeline.report.signs.machines import machines_of
from kafka_dt.pipeline.report.signs.sign import (
    Sign,
    advise,
    end_all_of_owner,
    follow_address,
    follow_principal,
    threshold,
)
from kafka_dt.pipeline.report.workdays import out_of_office

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed


_ARRIVAL: Final = timedelta(hours=1)
"""To make a token a client logs in first."""


@dataclass(frozen=True, slots=True)
class JobElsewhereThresholds:
    """When a machine is not one of a job's."""

    own_tokens: int = threshold(5, "Tokens that a job makes on its usual machines, at least")
    """A working week of a daily job."""
    own_machines: int = threshold(3, "Machines on which a job makes tokens, at most")
    """Pods have more."""
    own_known: timedelta = threshold(timedelta(days=5), "Time after which a further machine is new to a job")
    """A week of work shows them all."""
    new_tokens: int = threshold(2, "Tokens that are made and used on the new machine, and days")
    """Who tries something by hand does so once."""
    people_there: int = threshold(3, "... or people in the zone, more than programs, for one token at night")
    """An office or a VPN has more."""
    own_used_there: float = threshold(0.1, "Share of a job's tokens that are used where they are made, at most")
    """A job on one host makes and uses them there, wherever that is."""
    mostly_used_there: float = threshold(0.5, "... or the same share of a job that makes one at night")
    """People use theirs where they make them; a driver of a cluster may do both on a worker."""


def jobs_elsewhere(seen: Observed, thresholds: JobElsewhereThresholds) -> DataFrame:
    """Find such jobs; one finding for each owner and machine."""
    is_own = ok(EventType.TOKEN_CREATED) & (F.col("owner") == F.col("principal"))
    made = seen.deeds.where(is_own & (F.col("address") != UNKNOWN))
    machines = machines_of(made, thresholds.own_known).withColumnRenamed("principal", "owner")
    first = machines.where(~F.col("late")).groupBy("owner", "began")
    usual = first.agg(
        F.count("*").alias("machines"),
        F.sum("times").alias("times"),
        F.max("until").alias("usual_until"),
        F.slice(distinct("address"), 1, SHOWN).alias("usual"),
    ).where((F.col("times") >= thresholds.own_tokens) & (F.col("machines") <= thresholds.own_machines))
    new = machines.where("late").select("owner", "address", "came", F.col("until").alias("stayed")).join(usual, "owner")
    new = seen.work("new", new.where(F.col("usual_until") > F.col("came")))
    tokens = made.join(new.select("owner").distinct(), "owner", "left_semi").select(
        "owner", "address", "token_id", F.col("first_seen").alias("made")
    )
    places = seen.usage.where(F.col("zone_kind") != ZoneKind.NAT.value).groupBy("token_id", "address", "zone")
    uses = places.agg(
        *first_and_last(), F.sum("logins").alias("logins"), F.slice(distinct("software"), 1, SHOWN).alias("libraries")
    )
    rows = seen.work("rows", tokens.join(uses, ["token_id", "address"], "left"))
    is_there = F.col("first_seen").isNotNull()
    habits = (
        rows.join(new, ["owner", "address"], "left_anti")
        .groupBy("owner")
        .agg(F.avg(is_there.cast("int")).alias("share"))
        .where(F.col("share") <= thresholds.mostly_used_there)
    )
    goes_on = _goes_on(new, tokens.join(new, ["owner", "address"], "left_anti"))
    there = rows.where(is_there).join(goes_on, ["owner", "address"]).join(habits, "owner")
    return _findings(_with_people(there, seen, thresholds.people_there), thresholds)


def _with_people(there: DataFrame, seen: Observed, fewest: int) -> DataFrame:
    """Add the token that a program made at night in a zone of people where it never was, and how many log in there.

    There is one such token for each owner and address: `made_at_night`, with `people`.
    """
    is_person = seen.people.withColumn("person", F.lit(1))
    zones = seen.clients.select("who", "zone").distinct().join(is_person, "who", "left").groupBy("zone")
    counted = zones.agg(F.count("person").alias("people"), F.count("who").alias("principals"))
    of_people = counted.where((F.col("people") >= fewest) & (F.col("people") * 2 > F.col("principals")))
    came = seen.clients.groupBy(F.col("who").alias("owner"), "zone").agg(F.min("first_seen").alias("zone_since"))
    programs = there.join(seen.people.withColumnRenamed("who", "owner"), "owner", "left_anti")
    at_night = out_of_office(programs, "made", seen.workdays).join(of_people, "zone").join(came, ["owner", "zone"])
    is_new = F.col("made") < F.col("zone_since") + F.lit(_ARRIVAL)
    found = (
        at_night.where(is_new)
        .groupBy("owner", "address")
        .agg(F.max("people").alias("people"), of_first("token_id", "made").alias("made_at_night"))
    )
    return there.join(found, ["owner", "address"], "left")


def _goes_on(new: DataFrame, usual: DataFrame) -> DataFrame:
    """Keep the new machines during whose use the job goes on with its usual ones.

    Args:
        new: has `owner`, `address`, and from `came` to `stayed` the time in which tokens are made there.
        usual: the tokens that are made on no new machine: `owner` and `made`.
    """
    made = F.unix_seconds("made")
    pause = made - F.lag(made).over(Window.partitionBy("owner").orderBy("made"))
    is_later = F.col("made") > F.col("came")
    around = (
        new.join(usual.select("owner", "made", pause.alias("pause")), "owner")
        .groupBy("owner", "address")
        .agg(
            F.bool_or(F.col("made").between(F.col("came"), F.col("stayed"))).alias("meanwhile"),
            F.max(F.when(~is_later, F.col("pause"))).alias("longest"),
            F.min_by("pause", F.when(is_later, F.col("made"))).alias("paused"),
        )
    )
    goes_on = around.where(F.col("meanwhile") | (F.col("paused") <= F.col("longest")))
    return new.join(goes_on, ["owner", "address"], "left_semi")


def _findings(there: DataFrame, thresholds: JobElsewhereThresholds) -> DataFrame:
    days = F.count_distinct(F.to_date("made"))
    rows = there.groupBy("owner", "address").agg(
        *first_and_last(),
        F.sum("logins").alias("events"),
        of_first("token_id", "made").alias("token_id"),
        F.count_distinct("token_id").alias("tokens"),
        days.alias("days"),
        F.slice(distinct("zone"), 1, SHOWN).alias("zones"),
        F.array_sort(F.array_distinct(F.flatten(F.collect_list("libraries")))).alias("libraries"),
        *(
            F.first(name).alias(name)
            for name in ("came", "began", "times", "usual", "share", "people", "made_at_night")
        ),
    )
    again = (F.col("share") <= thresholds.own_used_there) & (F.least("tokens", "days") >= thresholds.new_tokens)
    return finding_rows(
        rows.where(again | F.col("people").isNotNull()).withColumn(
            "token_id", F.when(again, F.col("token_id")).otherwise(F.col("made_at_night"))
        ),
        subject="token_id",
        severity=F.lit(Severity.MEDIUM.value),
        evidence=[
            ("made and used on machine", F.col("address")),
            ("in zone", some(F.col("zones"))),
            ("where it made tokens first at", as_text(F.col("came"))),
            ("tokens made and used there", F.col("tokens")),
            ("on days", F.col("days")),
            ("made outside the hours of the company, in a zone where so many people log in", F.col("people")),
            ("with libraries", some(F.col("libraries"))),
            ("its usual machines", some(F.col("usual"))),
            ("tokens that it made on these", F.col("times")),
            ("it does so since", as_text(F.col("began"))),
        ],
    )


JOB_ELSEWHERE: Final = Sign(
    kind="job_elsewhere",
    title="Made by its job on a new machine and used there",
    meaning="A job makes tokens on a machine where it never was, and uses them on that machine.",
    finds="a job's credential on another machine, where its tokens are used, on several days or at night among people",
    misses="one token by day, tokens that are used elsewhere, and jobs whose machines change all the time",
    subject_type=SubjectType.TOKEN,
    thresholds=JobElsewhereThresholds(),
    rule=jobs_elsewhere,
    about_use=True,
    steps=(
        advise("Ask the head of the owner's team whether the job is run by hand on that machine. If not:"),
        advise("Change the password or the keytab of the job first, so that it makes no further token."),
        end_all_of_owner,
        follow_principal,
        follow_address,
    ),
)
