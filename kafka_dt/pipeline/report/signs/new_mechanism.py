"""A principal logs in without a token by a mechanism that it never used.

A program keeps its mechanism: a keytab, a certificate, or a password. A principal that is known for
`mechanism_history` and logs in by another mechanism has another credential. A thief with an operator's password can
make such a credential.

A migration is quiet: `migrated` other principals or more began to use the mechanism within `migration` before, or
`migration_size` before and after. The first two of a small migration look like thieves, and so do those of a large one
until the others follow.

A company may have two mechanisms for the same principals: tickets in its offices, and passwords where there are none. A
mechanism is quiet if `used_both` others use it beside the same usual one in the month around (`habits.AROUND`), for
longer than a day; they began with it from as many large networks (/16) and on as many days. A host may have one
mechanism, such as the login node of a supercomputer. The mechanism is quiet, too, if the principal begins with it on a
host on which `used_both` others have used it in the half month before, on as many days.

A change for good is quiet. The principal used its old mechanism in the `mechanism_history` before the change. It uses
the new one for `mechanism_history`, with libraries that it had before, and the old one on `still` days at most that are
more than a day after the change. And it is on five machines or more: it has moved, from a cluster with Kerberos, say,
to one without. Or the share `at_home` of its new logins, at least, comes from machines on which it used the old
mechanism just before: it has got another credential.

People who work by day and begin with it by day, with libraries that they had before, are quiet: they log in by a
password where they have no ticket of Kerberos.

A principal on its own machines is quiet (`machines.on_strange_machines`). In the 15 days before its first login with
the mechanism it logged in on the machine on two days, the first time at least three days ago, with the same library,
with a token or without. All its logins with the mechanism in the first `mechanism_history` are on such machines: a
service uses its password to get another token, say. If the principal had five machines or more in the zone on one day,
as pods are, any machine of the zone counts.

The severity is medium.

Not seen: a thief that logs in by the usual mechanism, or by one that many have beside it or on that host; one with a
person's library by day; one that takes the place of a job, on many machines or on those of the job; one that is on a
machine or among the pods of its victim, with its library; a new mechanism in the first days of a principal; and the
first login without a token of an owner that used tokens only.
"""

# The work is on one row for each principal and mechanism.

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
    first_and_last,
    host,
    of_first,
    ok,
    some,
    wide_network,
)
from kafka_dt.pipeline.report.habits import AROUND
from kafka_dt.pipeline.report.peers import MACHINES
from kafka_dt.pipeline.report.signs.finding import SHOWN, Severity, SubjectType, finding_rows
from kafka_dt.pipeline.report.signs.machines import on_strange_machines
from kafka_dt.pipeline.report.signs.sign import Sign, advise, follow_address, follow_principal, threshold
from kafka_dt.pipeline.report.workdays import is_in_day

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed


_STAYS: Final = timedelta(days=1)
"""Who has two mechanisms comes back with the second one."""


@dataclass(frozen=True, slots=True)
class MechanismThresholds:
    """When a mechanism is not the principal's."""

    mechanism_history: timedelta = threshold(timedelta(days=3), "Time in which a principal shows its mechanisms")
    """Programs log in every day, and a weekend is two days long."""
    migrated: int = threshold(2, "Other principals that began to use the mechanism")
    """A team migrates its programs together."""
    migration: timedelta = threshold(timedelta(days=7), "... in the time before")
    """A migration takes a week."""
    migration_size: int = threshold(4, "... or in the time before and after")
    """A whole team explains its first programs, too."""
    at_home: float = threshold(0.9, "Share of the logins on machines of a principal that changes its mechanism there")
    """A deployment goes to another machine now and then."""
    still: int = threshold(1, "Days on which the old mechanism is used after a change, at most")
    """An engineer takes the keytab once more."""
    used_both: int = threshold(3, "Others that use the mechanism beside the same one, in the month around")
    """The victims of one thief come from one network, or on one day."""


def new_mechanisms(seen: Observed, thresholds: MechanismThresholds) -> DataFrame:
    """Find principals that use another mechanism than before; one finding for each principal and mechanism."""
    logins = seen.deeds.where(ok(EventType.LOGIN) & F.col("principal").isNotNull() & F.col("mechanism").isNotNull())
    used = logins.groupBy("principal", "mechanism").agg(
        *first_and_last(),
        F.sum("deeds").alias("events"),
        F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
        F.slice(distinct("software"), 1, SHOWN).alias("clients"),
        of_first("address", "first_seen").alias("address"),
    )
    earlier = Window.partitionBy("principal").orderBy("first_seen").rowsBetween(Window.unboundedPreceding, -1)
    habits = {"known_since": F.min("first_seen").over(earlier), "usual": F.collect_set("mechanism").over(earlier)}
    used = seen.work("used", used.withColumns(habits))
    new = used.where(F.col("known_since") + F.lit(thresholds.mechanism_history) < F.col("first_seen"))
    seconds = int(thresholds.migration.total_seconds())
    in_order = Window.partitionBy("mechanism").orderBy(F.unix_seconds("first_seen"))
    others = {
        "others_before": F.count("*").over(in_order.rangeBetween(-seconds, -1)),
        "others": F.count("*").over(in_order.rangeBetween(-seconds, seconds)) - 1,
    }
    alone = new.withColumns(others).where(
        (F.col("others_before") < thresholds.migrated) & (F.col("others") < thresholds.migration_size)
    )
    rare = _without_habit(seen.work("alone", alone), used, thresholds)
    rare = _without_hosts(rare, logins, thresholds)
    rare = _without_moves(rare, logins, thresholds)
    rare = seen.work("strange_mechanisms", _on_strange_machines(rare, logins, seen, thresholds.mechanism_history))
    return _findings(_without_people_at_work(rare, logins, seen))


def _without_habit(new: DataFrame, used: DataFrame, thresholds: MechanismThresholds) -> DataFrame:
    """Leave out mechanisms that others use beside the same one, from other networks and since other days."""
    one = used.select(
        "mechanism",
        F.col("principal").alias("other"),
        F.col("first_seen").alias("other_since"),
        F.col("last_seen").alias("other_until"),
        wide_network(F.col("address")).alias("other_network"),
    )
    beside = used.select(
        F.col("principal").alias("other"),
        F.col("mechanism").alias("beside"),
        F.col("first_seen").alias("beside_since"),
        F.col("last_seen").alias("beside_until"),
    )
    goes_on = F.col("other_since") + F.lit(_STAYS) <= F.col("other_until")
    begun = F.greatest("other_since", "beside_since") <= F.col("first_seen") + F.lit(AROUND)
    near = begun & (F.least("other_until", "beside_until") + F.lit(AROUND) >= F.col("first_seen"))
    alike = (F.col("other") != F.col("principal")) & F.array_contains("usual", F.col("beside"))
    both = new.join(one, "mechanism").join(beside, "other").where(alike & near & goes_on)
    many = F.least(*(F.count_distinct(each) for each in ("other", "other_network", F.to_date("other_since"))))
    habit = both.groupBy("principal", "mechanism").agg((many >= thresholds.used_both).alias("both")).where("both")
    return new.join(habit, ["principal", "mechanism"], "left_anti")


def _without_hosts(new: DataFrame, logins: DataFrame, thresholds: MechanismThresholds) -> DataFrame:
    """Leave out principals that begin with a mechanism on a host on which others have used it."""
    others = logins.where(F.col("address") != UNKNOWN).select(
        "mechanism", "address", F.col("principal").alias("other"), F.col("first_seen").alias("other_since")
    )
    lately = (F.col("other_since") < F.col("first_seen")) & (F.col("other_since") + F.lit(AROUND) > F.col("first_seen"))
    before = (F.col("other") != F.col("principal")) & lately
    there = new.select("principal", "mechanism", "address", "first_seen").join(others, ["mechanism", "address"])
    of_host = there.where(before).groupBy("principal", "mechanism")
    many = F.least(F.count_distinct("other"), F.count_distinct(F.to_date("other_since"))) >= thresholds.used_both
    hosts = of_host.agg(many.alias("many")).where("many")
    return new.join(hosts, ["principal", "mechanism"], "left_anti")


def _without_moves(new: DataFrame, logins: DataFrame, thresholds: MechanismThresholds) -> DataFrame:
    """Leave out principals that have changed to a mechanism for good, with libraries that they had.

    They are on many machines, or on those on which they used another mechanism until then.
    """
    began = new.select("principal", F.col("mechanism").alias("new"), F.col("first_seen").alias("began"))
    known = logins.join(began, "principal")
    history, later = F.lit(thresholds.mechanism_history), F.col("first_seen") > F.col("began") + F.lit(_STAYS)
    before = F.col("first_seen").between(F.col("began") - history, F.col("began"))
    is_known = before & (F.col("address") != UNKNOWN)
    others = known.where(F.col("mechanism") != F.col("new")).groupBy("principal", "new", "began")
    replaced = others.agg(
        F.bool_or(before).alias("lately"),
        F.count_distinct(F.when(later, F.to_date("first_seen"))).alias("still"),
        F.collect_set(F.when(is_known, F.col("address"))).alias("homes"),
    )
    earlier = known.where(F.col("first_seen") < F.col("began"))
    had = earlier.select("principal", "new", "software", F.lit(True).alias("had")).distinct()
    is_many = F.col("machines") >= MACHINES
    moved = (
        logins.withColumnRenamed("mechanism", "new")
        .join(replaced.where("lately"), ["principal", "new"])
        .join(had, ["principal", "new", "software"], "left")
        .groupBy("principal", "new", "began", "still")
        .agg(
            F.count_distinct(host(F.col("address"))).alias("machines"),
            (F.sum(F.when(F.array_contains("homes", F.col("address")), F.col("deeds"))) / F.sum("deeds")).alias(
                "at_home"
            ),
            F.max("last_seen").alias("until"),
            F.bool_and(F.col("had").isNotNull()).alias("had_all"),
        )
        .where(F.col("had_all") & (is_many | (F.col("at_home") >= thresholds.at_home)))
        .where(F.col("still") <= thresholds.still)
        .where(F.col("until") >= F.col("began") + F.lit(thresholds.mechanism_history))
    )
    return new.join(moved.select("principal", F.col("new").alias("mechanism")), ["principal", "mechanism"], "left_anti")


def _on_strange_machines(new: DataFrame, logins: DataFrame, seen: Observed, history: timedelta) -> DataFrame:
    """Leave out principals that begin with the mechanism on machines that they had, with the libraries of these."""
    began = new.select("principal", "mechanism", F.col("first_seen").alias("since"))
    uses = began.join(logins, ["principal", "mechanism"])
    uses = uses.where(F.col("first_seen") < F.col("since") + F.lit(history))
    strange = on_strange_machines(uses.select("principal", "mechanism", "since", "address", "software"), seen)
    return new.join(strange.select("principal", "mechanism").distinct(), ["principal", "mechanism"], "left_semi")


def _without_people_at_work(new: DataFrame, logins: DataFrame, seen: Observed) -> DataFrame:
    """Leave out people who begin with a mechanism in their day, with libraries that they had before."""
    had = seen.clients.groupBy(F.col("who").alias("principal"), "software").agg(F.min("first_seen").alias("had_since"))
    began = new.select("principal", "mechanism", F.col("first_seen").alias("began"))
    first_day = F.col("first_seen") < F.col("began") + F.expr("INTERVAL 1 DAY")
    libraries = logins.join(began, ["principal", "mechanism"]).where(first_day)
    known = libraries.join(had, ["principal", "software"], "left")
    other = known.where(F.coalesce(F.col("had_since") >= F.col("began"), F.lit(True)))
    by_day = seen.workdays.withColumnRenamed("who", "principal")
    in_day = new.join(by_day, "principal").where(is_in_day(F.col("first_seen")))
    at_work = in_day.join(other, ["principal", "mechanism"], "left_anti")
    return new.join(at_work, ["principal", "mechanism"], "left_anti")


def _findings(new: DataFrame) -> DataFrame:
    rows = new.withColumns({"token_id": F.lit(None).cast("string"), "owner": F.col("principal")})
    return finding_rows(
        rows,
        subject="principal",
        severity=F.lit(Severity.MEDIUM.value),
        evidence=[
            ("new mechanism", F.col("mechanism")),
            ("logins with it", F.col("events")),
            ("until then", some(F.array_sort("usual"))),
            ("known since", as_text(F.col("known_since"))),
            ("from addresses", some(F.col("addresses"))),
            ("clients", some(F.col("clients"))),
        ],
    )


NEW_MECHANISM: Final = Sign(
    kind="new_mechanism",
    title="Logged in by a new mechanism",
    meaning="A principal logs in by a mechanism that it never used, so it has a new credential.",
    finds="a login without a token by another mechanism than the principal's",
    misses="another's password for the same mechanism, or by day with a person's library",
    subject_type=SubjectType.PRINCIPAL,
    thresholds=MechanismThresholds(),
    rule=new_mechanisms,
    steps=(
        advise(
            "Ask the principal's team. If it was not the team, remove its credential of that mechanism (kafka-dt user)."
        ),
        advise("Look for who made it (events scram_user_changed), and change the password of that administrator."),
        follow_principal,
        follow_address,
    ),
)
