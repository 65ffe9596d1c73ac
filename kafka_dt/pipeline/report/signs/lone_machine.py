"""One machine in another network uses the tokens of a program now and then, for days, beside the program itself.

Who has copied a token, or can read where a program keeps it, reads a little each day. Library, client id and owner are
the program's own. So the rule looks at large networks (/16, of IPv6 /48) to which an owner comes when it is known for
`lone_history`, and in which tokens of the owner are used

- that the owner uses where it was before as well,
- from one address alone, which no other principal used before,
- on `lone_days` days or more, `lone_logins` times a day at most, on average,
- while the owner goes on where it was before.

A program that gets a second place gets a token there, begins with several machines, or logs in as often as in the first
place. These are quiet as well:

- `lone_together` other owners came to the network on the same day: a fail-over, or a new network.
- The token was made on that machine: a job is started there, and its parts run elsewhere.
- The owner came to more than one network so: it moves about.
- The owner works by day: it is a person, with a notebook.

The severity is medium: the team may have a new standby.

Not seen: a machine in a network in which the owner was before, or that others use; one that is there in the first days
of an owner, on fewer days, more often on a day, or with another IPv6 address each time; a thief who has been to a
second network; and the tokens of people.
"""

# The work is on one row for each owner and large network, and on the uses in those that are told.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.expressions import UNKNOWN, distinct, first_and_last, ok, some, with_most
from kafka_dt.pipeline.report.lives import days_of
from kafka_dt.pipeline.report.networks import ZoneKind
from kafka_dt.pipeline.report.signs.finding import SHOWN, Severity, SubjectType, finding_rows
from kafka_dt.pipeline.report.signs.sign import Sign, advise, end_all_of_owner, end_token, follow_address, threshold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed


_DAY: Final = timedelta(days=1)
"""A program that runs once a day is not there later than a thief of the same day."""


@dataclass(frozen=True, slots=True)
class LoneMachineThresholds:
    """When a machine is not the program's."""

    lone_history: timedelta = threshold(timedelta(days=3), "Time in which a program shows its networks")
    """Jobs run every day, and a weekend is two days long."""
    lone_days: int = threshold(4, "Days on which one machine in another network uses its tokens")
    """A program that is tried elsewhere is tried for a day or two, and again after a weekend."""
    lone_logins: float = threshold(3.0, "Logins a day of that machine, at most")
    """A second place of the program works as the first one does."""
    lone_together: int = threshold(2, "Other owners that come to the network on the same day, which explain it")
    """A thief may come with an account of their own."""


def lone_machines(seen: Observed, thresholds: LoneMachineThresholds) -> DataFrame:
    """Find such machines; one finding for each owner and machine."""
    visits = seen.work("visits", _visits(seen, thresholds))
    there = _copied(seen.usage.join(visits, ["who", "wide"]), seen.usage)
    one = there.groupBy("who", "wide").agg(F.max("address").alias("address"), F.min("address").alias("least"))
    alone = one.where((F.col("address") == F.col("least")) & (F.col("address") != UNKNOWN)).select("who", "address")
    came = there.join(alone, ["who", "address"])
    arrivals = came.select("who", "address", "since").distinct()
    guests = seen.usage.select(F.col("who").alias("guest"), "address", F.col("first_seen").alias("guest_since"))
    is_host = (F.col("guest") != F.col("who")) & (F.col("guest_since") < F.col("since"))
    hosts = guests.join(arrivals, "address").where(is_host).select("who", "address")
    made_there = seen.deeds.where(ok(EventType.TOKEN_CREATED)).select("token_id", "address")
    copied = came.join(made_there, ["token_id", "address"], "left_anti")
    uses = seen.work("uses", copied.join(hosts, ["who", "address"], "left_anti"))
    days = uses.select("who", "address", F.explode(days_of()).alias("day")).groupBy("who", "address")
    counted = uses.groupBy("who", "address").agg(F.sum("logins").alias("in_all"))
    few = F.col("in_all") <= F.col("days") * F.lit(thresholds.lone_logins)
    told = counted.join(days.agg(F.count_distinct("day").alias("days")), ["who", "address"]).where(
        few & (F.col("days") >= thresholds.lone_days)
    )
    return _findings(uses.join(told.select("who", "address", "days"), ["who", "address"]))


def _copied(there: DataFrame, usage: DataFrame) -> DataFrame:
    """Keep the uses of tokens that the owner uses in another large network, too."""
    networks = usage.join(there.select("token_id").distinct(), "token_id", "left_semi").groupBy("token_id")
    in_two = networks.agg(F.count_distinct("wide").alias("networks")).where(F.col("networks") > 1)
    return there.join(in_two.select("token_id"), "token_id", "left_semi")


def _visits(seen: Observed, thresholds: LoneMachineThresholds) -> DataFrame:
    """Give the one large network to which an owner came later, while its work goes on elsewhere: `who`, `wide`."""
    late = F.col("since") >= F.col("owner_since") + F.lit(thresholds.lone_history)
    later = seen.network_arrivals.where(late)
    visits = later.withColumn("networks", F.count("*").over(Window.partitionBy("who"))).where(
        (F.col("networks") == 1)
        & (F.col("elsewhere_until") + F.lit(_DAY) >= F.col("until"))
        & (F.col("others_moved") < thresholds.lone_together)
    )
    return visits.join(seen.workdays, "who", "left_anti").select("who", "wide", "since", "origin")


def _findings(uses: DataFrame) -> DataFrame:
    rows = uses.where(F.col("zone_kind") != ZoneKind.NAT.value)
    machines = rows.groupBy(F.col("who").alias("owner"), "address", "zone").agg(
        *first_and_last(),
        F.sum("logins").alias("events"),
        with_most("token_id", "logins").alias("token_id"),
        F.count_distinct("token_id").alias("tokens"),
        F.max("days").alias("days"),
        F.max("origin").alias("origin"),
        F.slice(distinct("software"), 1, SHOWN).alias("clients"),
    )
    return finding_rows(
        machines,
        subject="token_id",
        severity=F.lit(Severity.MEDIUM.value),
        evidence=[
            ("days with logins from one machine", F.col("days")),
            ("logins", F.col("events")),
            ("from address", F.col("address")),
            ("in zone", F.col("zone")),
            ("the owner's usual network", F.col("origin")),
            ("tokens", F.col("tokens")),
            ("with libraries", some(F.col("clients"))),
        ],
    )


LONE_MACHINE: Final = Sign(
    kind="lone_machine",
    title="Used now and then by a machine elsewhere",
    meaning="One machine in another network uses the program's tokens a little on many days beside the program.",
    finds="a machine in a network of its own that uses the tokens of a program a little each day",
    misses="a machine in a network of the program, one that others use as well, and tokens of people",
    subject_type=SubjectType.TOKEN,
    thresholds=LoneMachineThresholds(),
    rule=lone_machines,
    about_use=True,
    steps=(
        advise("Ask the owner's team whether the machine is theirs, such as a standby. If not:"),
        end_token,
        end_all_of_owner,
        follow_address,
    ),
)
