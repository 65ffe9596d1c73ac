"""A principal describes tokens of others, and never described those of others before.

The answer to a describe request has the HMAC of each token, so it is worth more than a stolen token. Monitors describe
all the time, and so do operators and those who renew tokens. The rule looks at principals that have worked here for
`describe_history` without that: the first answers, in a day, that have `describe_others` tokens more than the
principal owns or asked for are a finding. Tokens that ended in the day before count as its own, too, because a node
describes them until it removes them. A few more may be its own, made at a broker that writes no audit events.

People look at their tokens, and at those of their teams. So an answer is quiet if `describers` others began to get as
many tokens or more within `habits.AROUND` before and after that, on as many days. Few get all that there are. A single
request (fewer than `describe_requests`) is quiet, too: who is on call looks once.

A principal is quiet if another one first allowed it to describe tokens of others, by an ACL, in the hours of the
company (`workdays.office_hours`) and at most `describe_allowed_within` before: such an audit is planned. A principal
that administers itself is not quiet.

Principals that administer are quiet: those that changed ACLs or users, ended or renewed tokens of others, or create
tokens for others, `administrates_for` before or for longer. They may describe for a good reason, and they could do
worse. Who gives itself the right to describe and then describes is no administrator.

The password of one who describes may be in other hands, too. A describer that was known for `describe_history` is a
finding if it comes with a library that it never used for anything, gets more tokens than in any answer before, and does
so in a zone where it never was or at an hour at which it never worked, with an hour around each. A new version of its
tool has the same library, and a new tool is tried at the desk by day.

The severity is high if a principal began to administer in the day before, and may have given itself the right; else
medium, because most who begin to describe are on call, or new in a team.

Not seen: a thief with the password of an operator, a monitor or a scheduler, or of an administrator by day; one that
asks once in its first day; and a principal that describes from its first days on.
"""

# The work is on requests to describe tokens; of new describers their own tokens are counted.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.deeds import ADMINISTRATION, TOKEN_CHANGES, describe_grants, known_since
from kafka_dt.pipeline.report.expressions import (
    as_text,
    distinct,
    first_and_last,
    hours_at_work,
    of_type,
    ok,
    some,
    union,
    went_well,
    with_most,
)
from kafka_dt.pipeline.report.habits import AROUND
from kafka_dt.pipeline.report.lives import known_end
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.sign import Sign, advise, follow_address, follow_principal, threshold
from kafka_dt.pipeline.report.workdays import with_in_office

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

PURGED: Final = timedelta(days=1)
"""Within which time a token that has ended is removed, and described no longer; by default it takes an hour
(`delegation.token.expiry.check.interval.ms`)."""


@dataclass(frozen=True, slots=True)
class DescriberThresholds:
    """When it is clear that a principal does not describe."""

    describe_history: timedelta = threshold(timedelta(days=3), "Time that shows whether a principal describes tokens")
    """Programs that describe do it at their start, or every day."""
    describe_others: int = threshold(3, "Tokens of others in an answer, at least")
    """An ACL gives all tokens, or all of an owner; few owners have one or two."""
    describe_requests: int = threshold(2, "... and requests in the first day, at least")
    """Who collects tokens comes back, or asks owner by owner."""
    describers: int = threshold(3, "Others that begin to describe as many tokens in the month around, on as many days")
    """People look at their tokens, and at those of their team. A thief gets all that there are."""
    describe_allowed_within: timedelta = threshold(
        timedelta(days=7), "Time from an ACL by another principal to the answers"
    )
    """An audit begins in the week for which it is allowed."""
    administrates_for: timedelta = threshold(timedelta(days=1), "Time before in which an administrator is one")
    """A thief describes at once what it has made itself allowed to."""


def new_describers(seen: Observed, thresholds: DescriberThresholds) -> DataFrame:
    """Find principals that begin to describe tokens of others; one finding a principal."""
    described = answers_of_others(seen.deeds.where(ok(EventType.TOKENS_DESCRIBED)), seen.lives, thresholds)
    since = described.groupBy("principal").agg(F.min("first_seen").alias("since"))
    history = F.lit(thresholds.describe_history)
    new = (
        since.join(known_since(seen.deeds, seen.clients), "principal")
        .where(F.col("known_since") + history < F.col("since"))
        .join(_administrators(seen), "principal", "left")
        .where(
            F.coalesce(F.col("administrates_since") + F.lit(thresholds.administrates_for) > F.col("since"), F.lit(True))
        )
        .withColumn("administers", F.col("administrates_since") <= F.col("since"))
        .drop("administrates_since")
    )
    first_day = F.col("first_seen") <= F.col("since") + F.expr("INTERVAL 1 DAY")
    answers = (
        _with_addresses(described.join(new, "principal").where(first_day))
        .groupBy("principal", "since", "known_since", "administers")
        .agg(*_told(), F.max("own").alias("own"))
    )
    changed = _changed(seen, thresholds).join(answers, "principal", "left_anti")
    rare = _without_habit(seen.work("answers", answers), thresholds)
    several = (F.col("events") >= thresholds.describe_requests) | F.coalesce("administers", F.lit(False))
    return _findings(union(_without_allowed(rare.where(several), seen, thresholds), changed))


def _without_allowed(answers: DataFrame, seen: Observed, thresholds: DescriberThresholds) -> DataFrame:
    """Leave out principals that do not administer, and that another one allowed to describe, in the office's hours."""
    by_others = describe_grants(seen.deeds).where(F.col("operator") != F.col("principal"))
    at_work = with_in_office(by_others, "granted_at", seen.workdays).where("in_office")
    soon = F.col("since").between(F.col("granted_at"), F.col("granted_at") + F.lit(thresholds.describe_allowed_within))
    of_others = answers.where(~F.coalesce("administers", F.lit(False))).select("principal", "since")
    allowed = of_others.join(at_work, "principal").where(soon)
    return answers.join(allowed.select("principal").distinct(), "principal", "left_anti")


def _without_habit(answers: DataFrame, thresholds: DescriberThresholds) -> DataFrame:
    """Leave out answers where `describers` others began to get as many tokens around that time, on as many days."""
    other = answers.select(
        F.col("principal").alias("other"), F.col("since").alias("other_since"), F.col("described").alias("other_got")
    )
    apart = F.abs(F.unix_seconds("other_since") - F.unix_seconds("since"))
    alike = (F.col("other") != F.col("principal")) & (F.col("other_got") >= F.col("described"))
    days = F.count_distinct(F.to_date("other_since")).alias("days")
    near = answers.join(other, alike & (apart <= int(AROUND.total_seconds()))).groupBy("principal").agg(days)
    habit = near.where(F.col("days") >= thresholds.describers)
    return answers.join(habit, "principal", "left_anti")


def answers_of_others(answers: DataFrame, lives: DataFrame, thresholds: DescriberThresholds) -> DataFrame:
    """Keep the answers with `describe_others` tokens more than the principal owned or asked for on that day (`own`).

    Args:
        answers: `principal`, `date`, `first_seen`, `last_seen`, `described`, as `deeds.deeds_by_day` makes them.
        lives: `owner`, `requester`, `created_at` and what `lives.known_end` asks for, of each token.
        thresholds: what makes an answer one with tokens of others.
    """
    days = answers.groupBy("principal", "date").agg(*first_and_last())
    whose = F.explode(F.array_distinct(F.array("owner", "requester")))
    tokens = lives.select(whose.alias("principal"), "created_at", known_end().alias("end"))
    in_answers = (F.col("created_at") <= F.col("last_seen")) & (F.col("end") + F.lit(PURGED) > F.col("first_seen"))
    own = days.join(tokens, "principal").where(in_answers).groupBy("principal", "date").agg(F.count("*").alias("own"))
    with_own = answers.join(own, ["principal", "date"], "left").fillna(0, ["own"])
    return with_own.where(F.col("described") >= F.col("own") + thresholds.describe_others)


def _administrators(seen: Observed) -> DataFrame:
    """Tell since when principals change rights, users or tokens of others, or may renew some."""
    of_other = of_type(*TOKEN_CHANGES) & (F.col("principal") != F.col("owner"))
    acting = seen.deeds.where(ok(*ADMINISTRATION) | (of_other & ok(*TOKEN_CHANGES))).select("principal", "first_seen")
    may_renew = seen.lives.select(F.explode("renewers").alias("principal"), F.col("created_at").alias("first_seen"))
    return acting.unionByName(may_renew).groupBy("principal").agg(F.min("first_seen").alias("administrates_since"))


def _changed(seen: Observed, thresholds: DescriberThresholds) -> DataFrame:
    """Give the describers that come with another library for more tokens, elsewhere or at another hour."""
    describers = seen.deeds.where(ok(EventType.TOKENS_DESCRIBED)).select("principal").distinct()
    done = seen.deeds.where(went_well()).join(describers, "principal", "left_semi")
    acts = seen.work("acts", seen.zones.of(done))
    libraries = acts.groupBy("principal", "software").agg(F.min("first_seen").alias("since"))
    earlier = acts.select("principal", "zone", "described", "first_seen", "last_seen")
    before = (
        libraries.join(earlier, "principal")
        .where(F.col("first_seen") < F.col("since"))
        .groupBy("principal", "software", "since")
        .agg(
            F.min("first_seen").alias("known_since"),
            F.max("described").alias("described_before"),
            F.collect_set("zone").alias("zones"),
            hours_at_work().alias("hours"),
        )
        .where(F.col("known_since") + F.lit(thresholds.describe_history) < F.col("since"))
    )
    odd_hour = ~F.array_contains("hours", F.hour("first_seen"))
    elsewhere = ~F.array_contains("zones", F.col("zone"))
    answers = acts.where(ok(EventType.TOKENS_DESCRIBED)).join(before, ["principal", "software"])
    where_and_when = F.when(elsewhere, F.lit("in a new zone")).otherwise(F.lit("at a new hour"))
    return (
        _with_addresses(answers.where((F.col("described") > F.col("described_before")) & (odd_hour | elsewhere)))
        .groupBy("principal", "known_since")
        .agg(
            *_told(),
            F.max("described_before").alias("described_before"),
            F.concat(F.lit("another library, "), F.min(where_and_when)).alias("case"),
        )
    )


def _with_addresses(answers: DataFrame) -> DataFrame:
    """Add how many requests a principal made from the address of an answer."""
    return answers.withColumn("of_address", F.sum("deeds").over(Window.partitionBy("principal", "address")))


def _told() -> Iterator[Column]:
    """Aggregate what every finding tells of a principal's answers."""
    yield from first_and_last()
    yield F.sum("deeds").alias("events")
    yield F.max("described").alias("described")
    yield F.slice(distinct("address"), 1, SHOWN).alias("addresses")
    yield F.slice(distinct("software"), 1, SHOWN).alias("clients")
    yield with_most("address", "of_address").alias("address")


def _findings(answers: DataFrame) -> DataFrame:
    rows = answers.withColumns({"token_id": F.lit(None).cast("string"), "owner": F.col("principal")})
    return finding_rows(
        rows,
        subject="principal",
        severity=high_if(F.coalesce("administers", F.lit(False))),
        evidence=[
            ("what is unusual", F.col("case")),
            ("tokens in an answer", F.col("described")),
            ("the most in an answer before", F.col("described_before")),
            ("its own tokens", F.col("own")),
            ("requests", F.col("events")),
            ("from addresses", some(F.col("addresses"))),
            ("clients", some(F.col("clients"))),
            ("the principal is known since", as_text(F.col("known_since"))),
        ],
    )


NEW_DESCRIBER: Final = Sign(
    kind="new_describer",
    title="Describing tokens of others",
    meaning="A principal that never described tokens gets those of others, with their HMACs.",
    finds="a principal that never described tokens and gets those of others, or does so unlike before",
    misses="one request in the first day, and an operator's or a monitor's password with their tool",
    subject_type=SubjectType.PRINCIPAL,
    thresholds=DescriberThresholds(),
    rule=new_describers,
    steps=(
        advise("Ask the principal's team. If it was not the team, change its password or keytab, and remove the ACL:"),
        follow_principal,
        advise("The client has all tokens of the answer: let their owners get new ones, and end the old ones."),
        follow_address,
    ),
)
