"""A command ends the tokens of several owners, which were in use, outside the hours of the company.

`kafka-dt token revoke --config` works on ZooKeeper, and its events name no principal. An operator uses it by day, to
tidy up or after a warning. An insider with access to a node ends the tokens of jobs at night, so that all of them stop.

So this is a sign: commands end tokens of `command_owners` owners within `command_within`, outside the hours in which
the people of the company work (`workdays.office_hours`), and these tokens were used less than `command_in_use` before.

It is quiet for some hours before and after a change of the secret keys (`rotation`), as `ended_for_many` is: an
operator who rotates the key ends the tokens that the old one made.

Commands that do so in more than `command_nights` nights of the month around (`habits.AROUND`) are a habit. The severity
is medium: it may be the answer to a theft.

Not seen: tokens that are ended one by one, or by day, also at a weekend; commands around a change of the keys, or with
settings that have no audit; and those of a company that has no such hours.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.expressions import distinct, distinct_within, first_and_last, ok, some, with_most
from kafka_dt.pipeline.report.habits import AROUND
from kafka_dt.pipeline.report.signs.ended_for_many import ENDED_FOR_MANY, without_rotations
from kafka_dt.pipeline.report.signs.finding import SHOWN, Severity, SubjectType, finding_rows
from kafka_dt.pipeline.report.signs.sign import Sign, advise, follow_owner, threshold
from kafka_dt.pipeline.report.workdays import out_of_office

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed


_HALF_DAY: Final = timedelta(hours=12)
"""A night has the date of its morning."""


@dataclass(frozen=True, slots=True)
class EndedByCommandThresholds:
    """When commands end too much."""

    command_owners: int = threshold(3, "Owners whose tokens commands end")
    """A leak is of one owner's token, and the operator on call ends it at once."""
    command_within: timedelta = threshold(timedelta(hours=1), "... within")
    """A command takes seconds; several are typed one after the other."""
    command_nights: int = threshold(3, "Nights with such commands in the month around, at most")
    """More are a habit, such as that of a program which tidies up."""
    command_in_use: timedelta = threshold(timedelta(days=1), "Time since the last login with a token that is in use")
    """A job logs in every day."""


def ended_by_command(seen: Observed, thresholds: EndedByCommandThresholds) -> DataFrame:
    """Find such commands; one finding a night."""
    ends = seen.deeds.where(ok(EventType.TOKEN_EXPIRED) & F.col("principal").isNull())
    planned = without_rotations(ends, seen.deeds, ENDED_FOR_MANY.thresholds.rotation)
    by_night = out_of_office(planned, "first_seen", seen.workdays)
    lately = F.col("last_login") >= F.col("first_seen") - F.lit(thresholds.command_in_use)
    # A command that cannot read a token does not know its owner.
    lives = seen.lives.select("token_id", "owner", "last_login")
    in_use = by_night.drop("owner").join(lives, "token_id").where(lately)
    seconds = int(thresholds.command_within.total_seconds())
    around = Window.partitionBy(F.lit(0)).orderBy(F.unix_seconds("first_seen")).rangeBetween(-seconds, seconds)
    many = in_use.withColumn("owners", distinct_within("owner", around)).where(
        F.col("owners") >= thresholds.command_owners
    )
    nights = seen.work("nights", many.withColumn("night", F.to_date(F.col("first_seen") + F.lit(_HALF_DAY))))
    near = Window.partitionBy(F.lit(0)).orderBy(F.unix_date("night")).rangeBetween(-AROUND.days, AROUND.days)
    habit = nights.select("night").distinct().withColumn("nights", F.count("*").over(near))
    return _findings(nights.join(habit.where(F.col("nights") <= thresholds.command_nights), "night"))


def _findings(ends: DataFrame) -> DataFrame:
    nights = ends.groupBy("night").agg(
        *first_and_last(),
        F.count_distinct("token_id").alias("tokens"),
        F.count_distinct("owner").alias("owners"),
        F.slice(distinct("owner"), 1, SHOWN).alias("some_owners"),
        F.slice(distinct("node"), 1, SHOWN).alias("commands"),
        with_most("token_id", "first_seen").alias("token_id"),
        with_most("owner", "first_seen").alias("owner"),
    )
    rows = nights.withColumns({"address": F.lit(None).cast("string"), "events": F.col("tokens")})
    return finding_rows(
        rows,
        subject="token_id",
        severity=F.lit(Severity.MEDIUM.value),
        evidence=[
            ("tokens in use that were ended", F.col("tokens")),
            ("of different owners", F.col("owners")),
            ("owners", some(F.col("some_owners"))),
            ("by the commands", some(F.col("commands"))),
        ],
    )


ENDED_BY_COMMAND: Final = Sign(
    kind="ended_by_command",
    title="Tokens in use ended by a command at night",
    meaning="A command on ZooKeeper ends tokens of several owners that are in use outside the hours of the company.",
    finds="a command that ends tokens of several owners at night while they are in use",
    misses="tokens that are ended one by one or by day",
    subject_type=SubjectType.TOKEN,
    thresholds=EndedByCommandThresholds(),
    rule=ended_by_command,
    steps=(
        advise("See who was logged in on the machine that the command's name tells, and ask whether it was planned."),
        advise("If not, change the secrets that the machine's configuration has, and let the jobs get new tokens."),
        follow_owner,
    ),
)
