"""A program that makes or renews tokens for others does so on a new machine, and the token is used on that machine.

Schedulers, launchers and renewers work on a few machines, and the jobs that use their tokens run on others. A thief
with the keytab or the password of one makes a token on a machine of its own, or renews one that it has taken, and uses
it there. So this is a sign:

- A principal has made or renewed tokens of others `served` times, on `serving_machines` machines at most, which it had
  within `serving_known`.
- It makes or renews a token of another on a further machine, within `new_machine` of the first time there.
- Clients log in on the same machine with such tokens, `uses_there` times or more. The token was not used there for
  longer than `new_machine` before.
- Of the tokens that the principal made or renewed on its first machines, `used_where_made` are used there, at most.

The severity is high: the credential of such a principal opens the data of many.

An address that a file of networks calls a NAT stands for many machines, and is left out. So is a machine to which the
principal moved: it goes on there for longer than `new_machine`, and meanwhile on no other one. It is never again on an
earlier one.

Not seen: a thief who uses the token on another machine, one on a machine where the principal works, and principals
whose machines change all the time, as those of pods do.
"""

# The work is on what principals did, not on events; only the tokens of principals that serve others are looked up.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.expressions import UNKNOWN, as_text, distinct, first_and_last, ok, some, with_most
from kafka_dt.pipeline.report.networks import ZoneKind
from kafka_dt.pipeline.report.signs.finding import SHOWN, Severity, SubjectType, finding_rows
from kafka_dt.pipeline.report.signs.machines import machines_of
from kafka_dt.pipeline.report.signs.sign import Sign, advise, end_token, follow_address, follow_principal, threshold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

_USE: Final = ("software", "client", "logins", "first_seen", "last_seen")


@dataclass(frozen=True, slots=True)
class RequesterElsewhereThresholds:
    """When a machine is not one of a principal that serves others."""

    served: int = threshold(20, "Times that a principal has made or renewed tokens of others")
    """A person makes a few for a colleague."""
    serving_machines: int = threshold(12, "Machines on which a principal does so, at most")
    """Pods have more."""
    serving_known: timedelta = threshold(timedelta(days=5), "Time after which a further machine is new")
    """A week of work shows them all."""
    new_machine: timedelta = threshold(timedelta(days=1), "Time for which it is new")
    """A machine that stays is one of the principal's."""
    uses_there: int = threshold(2, "Logins with such tokens on that machine")
    """A pod may get the address of another one."""
    used_where_made: float = threshold(
        0.1, "Share of the principal's tokens that are used where they are made, at most"
    )
    """A hub and its notebooks may have one address."""


def requesters_elsewhere(seen: Observed, thresholds: RequesterElsewhereThresholds) -> DataFrame:
    """Find such tokens; one finding a token."""
    is_served = ok(EventType.TOKEN_CREATED, EventType.TOKEN_RENEWED) & (F.col("owner") != F.col("principal"))
    served = seen.deeds.where(is_served & (F.col("address") != UNKNOWN))
    machines = machines_of(served, thresholds.serving_known)
    usual = machines.groupBy("principal").agg(
        F.count(F.when(~F.col("late"), 1)).alias("machines"),
        F.sum(F.when(~F.col("late"), F.col("times"))).alias("times_before"),
        F.bool_or("late").alias("moves"),
        F.slice(distinct(F.when(~F.col("late"), F.col("address"))), 1, SHOWN).alias("usual"),
    )
    few = (F.col("times_before") >= thresholds.served) & (F.col("machines") <= thresholds.serving_machines)
    usual = usual.where(few & F.col("moves")).select("principal", "usual")
    machines = _without_new_homes(machines, thresholds).drop("times", "until")
    machines = seen.work("machines", machines.join(usual, "principal"))
    made = served.join(machines, ["principal", "address"]).groupBy(*machines.columns, "token_id")
    tokens = seen.work("served", made.agg(F.min("first_seen").alias("made")))
    uses = seen.usage.select("token_id", "address", "who", "zone", "zone_kind", *_USE)
    rows = seen.work("uses", tokens.join(uses, ["token_id", "address"], "left"))
    share = F.count_distinct(F.when(F.col("who").isNotNull(), F.col("token_id"))) / F.count_distinct("token_id")
    habits = (
        rows.where(~F.col("late"))
        .groupBy("principal")
        .agg(share.alias("share"), F.count_distinct("token_id").alias("tokens"))
    )
    new = F.lit(thresholds.new_machine)
    is_new = (F.col("made") <= F.col("came") + new) & (F.col("first_seen") >= F.col("made") - new)
    odd = rows.where(F.col("late") & is_new & (F.col("zone_kind") != ZoneKind.NAT.value))
    odd = odd.join(habits.where(F.col("share") <= thresholds.used_where_made), "principal")
    there = F.sum("logins").over(Window.partitionBy("principal", "address"))
    return _findings(odd.withColumn("there", there).where(F.col("there") >= thresholds.uses_there))


def _without_new_homes(machines: DataFrame, thresholds: RequesterElsewhereThresholds) -> DataFrame:
    """Leave out the late machines to which a principal moved."""
    in_order = Window.partitionBy("principal").orderBy("came", "address")
    others = {
        "left_at": F.max("until").over(in_order.rowsBetween(Window.unboundedPreceding, -1)),
        "next_at": F.lead("came").over(in_order),
    }
    goes_on = F.col("until") > F.col("came") + F.lit(thresholds.new_machine)
    alone = (F.col("left_at") <= F.col("came")) & F.coalesce(F.col("until") <= F.col("next_at"), F.lit(True))
    moved = F.col("late") & goes_on & alone
    return machines.withColumns(others).where(~moved).drop(*others)


def _findings(odd: DataFrame) -> DataFrame:
    rows = odd.groupBy("token_id", F.col("who").alias("owner")).agg(
        *first_and_last(),
        F.sum("logins").alias("events"),
        with_most("address", "logins").alias("address"),
        *(F.slice(distinct(name), 1, SHOWN).alias(f"{name}s") for name in ("principal", "zone")),
        F.slice(distinct(F.concat_ws(" as ", "software", "client")), 1, SHOWN).alias("clients"),
        F.min("came").alias("came"),
        F.min("began").alias("began"),
        F.max("tokens").alias("tokens"),
        F.array_sort(F.array_distinct(F.flatten(F.collect_list("usual")))).alias("usual"),
    )
    return finding_rows(
        rows,
        subject="token_id",
        severity=F.lit(Severity.HIGH.value),
        evidence=[
            ("made or renewed by", some(F.col("principals"))),
            ("on machine", F.col("address")),
            ("in zone", some(F.col("zones"))),
            ("where it did so first at", as_text(F.col("came"))),
            ("logins there", F.col("events")),
            ("clients", some(F.col("clients"))),
            ("its usual machines", some(F.slice("usual", 1, SHOWN))),
            ("tokens of others that it made or renewed on these", F.col("tokens")),
            ("it does so since", as_text(F.col("began"))),
        ],
    )


REQUESTER_ELSEWHERE: Final = Sign(
    kind="requester_elsewhere",
    title="Made or renewed on a new machine and used there",
    meaning="A scheduler or renewer works on a machine where it never was, and the token is used on that machine.",
    finds="a scheduler's or renewer's credential on another machine, where its tokens are used as well",
    misses="tokens that are used elsewhere, and schedulers whose machines change all the time",
    subject_type=SubjectType.TOKEN,
    thresholds=RequesterElsewhereThresholds(),
    rule=requesters_elsewhere,
    about_use=True,
    steps=(
        advise("Ask the team of the scheduler or renewer whether this machine is theirs. If not:"),
        end_token,
        advise("Change the password or the keytab of the scheduler or renewer."),
        follow_principal,
        follow_address,
    ),
)
