"""Wrong passwords of one principal are tried where it never logs in.

`wrong_passwords` wrong ones in a day are a sign, if they come from zones in which the principal never logged in before,
and does not for `password_history` later; or, in a zone of the principal, from a machine and with a library that it
never had. It does not matter from how many addresses they come, nor how fast: a client may take its time and use a new
address each time.

A program with an old or mistyped password is quiet, because its principal logs in from its network, at the latest after
the repair. Of a principal that was never seen, tries are a sign in a zone where no principal logs in, and of one that
was not known for `password_history` in such a zone of the Internet. They must not go on since the table begins, and at
most one other principal is tried there: programs that have moved with old passwords are several.

An old password is a sign, too: `old_passwords` tries, on two days at least, of a principal whose password another one
has changed, which has not logged in without a token since, from zones in which it never was or tried before. Who has
left tries at home whether the account still opens. The severity is medium.

Passwords of a principal that has none are a sign, too: `no_password` tries within a week, on two days at least, of a
principal that logs in, and never with a password, from zones in which it never logs in. A program with an old password
tries it since the table begins, and one with a wrong setting is where its principal is. The severity is medium.

The right password after wrong ones is a sign: there are wrong ones in `wrong_then_right` different minutes or more, in
the 12 hours before the principal's first login in a network of the Internet (/16, of IPv6 /48), and from that network.
No other principal was there for a day, and the login is outside the hours of the company (`workdays.office_hours`). By
day these are partners, and people at home who mistype. Minutes are counted because a client may try one password
several times within a minute.

The severity is high if the principal logs in there in the end, and wrong passwords were tried `no_slips` times before,
or in so many minutes of a night: one password was right. Otherwise it is medium. Passwords of many principals are
*Trying passwords of many principals*.

Not seen: a client in a network of the principal with its library; one that tries fewer than `wrong_passwords` a day of
a principal that goes on, or whose old password is right.
"""

# The work is on refused logins without a token, and there are few of them.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType, RefusalReason
from kafka_dt.pipeline.report.deeds import changed_user
from kafka_dt.pipeline.report.expressions import (
    UNKNOWN,
    as_text,
    distinct_over,
    distinct_within,
    first_and_last,
    is_public,
    of_type,
    ok,
    software,
    some,
    union,
)
from kafka_dt.pipeline.report.signs.finding import SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.guesses import guesses, of_tries, with_sums
from kafka_dt.pipeline.report.signs.sign import Sign, advise, follow_address, follow_principal, threshold
from kafka_dt.pipeline.report.workdays import out_of_office

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

_PATIENCE: Final = timedelta(hours=12)
"""An evening, or a night."""
_WEEK_D: Final = 7
_MECHANISMS: Final = r"^(PLAIN|SCRAM-.*)$"
"""Those of passwords."""
_SPRAYED: Final = 5
"""An address that tries passwords of so many principals is no matter of one of them."""


@dataclass(frozen=True, slots=True)
class GuessedPasswordThresholds:
    """How many wrong passwords are no slip."""

    wrong_passwords: int = threshold(20, "Wrong passwords of a principal in a day, where it never logs in")
    """A person gives up, or asks for help, after a few."""
    password_history: timedelta = threshold(timedelta(days=1), "Time in which a principal shows where it logs in")
    """A program that runs every day has been there."""
    wrong_then_right: int = threshold(
        2, "Minutes with wrong passwords before the right one, at night, where no principal was"
    )
    """One is a slip."""
    no_slips: int = threshold(4, "Minutes with wrong passwords before the right one that are no slips of a traveller")
    """Who travels types a password that a notebook at home remembers, at an hour that is night for the company."""
    old_passwords: int = threshold(4, "Tries of a password that was changed, of a principal that does not log in again")
    """Who forgot that it was changed asks for the new one."""
    no_password: int = threshold(10, "Wrong passwords in a week of a principal that logs in without one")
    """Who mistakes a setting tries a few times."""


def guessed_passwords(seen: Observed, thresholds: GuessedPasswordThresholds) -> DataFrame:
    """Find principals whose password is guessed; one finding a principal."""
    refused = of_type(EventType.LOGIN) & F.col("token_id").isNull() & F.col("principal").isNotNull()
    tries = seen.deeds.where(refused).withColumn("owner", F.col("principal"))
    wrong = tries.where(F.col("reason") == RefusalReason.WRONG_CREDENTIALS.value)
    many, history = thresholds.wrong_passwords, thresholds.password_history
    guessed = seen.work("guessed", guesses(wrong, seen, of="owner", many=many, history=history))
    sure = guessed.where(F.col("succeeded_at").isNotNull()).select("owner")
    right = seen.work("right", _right_at_last(seen, thresholds).join(sure, "owner", "left_anti"))
    others = guessed.join(right.select("owner"), "owner", "left_anti")
    found = seen.work("found", union(others, right))
    old = _old_passwords(tries, seen, thresholds).join(found, "owner", "left_anti")
    found = seen.work("with_old", union(found, old))
    without = _without_password(wrong, seen, thresholds).join(found, "owner", "left_anti")
    found = union(found, without)
    return finding_rows(
        found.withColumn("token_id", F.lit(None).cast("string")),
        subject="owner",
        severity=high_if(F.col("succeeded_at").isNotNull() & (F.col("events") >= thresholds.no_slips)),
        evidence=[
            ("wrong passwords in a day", F.col("most")),
            ("attempts", F.col("events")),
            ("after the password was changed at", as_text(F.col("changed_at"))),
            ("a login there succeeded at", as_text(F.col("succeeded_at"))),
            ("from addresses", some(F.col("addresses"))),
            ("in zones", some(F.col("zones"))),
            ("the principal logs in from zones", some(F.col("homes"))),
            ("clients", some(F.col("clients"))),
            ("the principal is known since", as_text(F.col("known_since"))),
        ],
    )


def _right_at_last(seen: Observed, thresholds: GuessedPasswordThresholds) -> DataFrame:
    """Find principals that come from the Internet at night after wrong passwords; columns as of `_old_passwords`."""
    since = F.col("since")
    begin = seen.clients.agg((F.min("first_seen") + F.lit(thresholds.password_history)).alias("settled"))
    alone = is_public(F.col("wide")) & (F.col("others_before") == 0) & ~F.col("by_token")
    came = seen.network_arrivals.where(alone).crossJoin(F.broadcast(begin)).where(since > F.col("settled"))
    came = came.select(F.col("who").alias("owner"), "wide", "since")
    came = seen.work("came", out_of_office(came, "since", seen.workdays))
    is_wrong = of_type(EventType.LOGIN) & (F.col("reason") == RefusalReason.WRONG_CREDENTIALS.value)
    wrong = seen.events.where(is_wrong & F.col("token_id").isNull()).select(
        *("date", "time", F.col("principal").alias("owner")),
        F.coalesce("client_address", F.lit(UNKNOWN)).alias("address"),
        software(F.col("client_software")).alias("software"),
    )
    minutes = (
        wrong.join(F.broadcast(came.select("owner").distinct()), "owner")
        .groupBy("owner", "date", "address", "software", F.date_trunc("minute", "time").alias("minute"))
        .agg(*first_and_last("time", "time"), F.lit(1).alias("deeds"))
    )
    near = seen.zones.of(seen.work("minutes", minutes)).join(came, ["owner", "wide"])
    before = near.where(F.col("last_seen").between(since - F.lit(_PATIENCE), since))
    found = with_sums(before, "owner").groupBy("owner").agg(*of_tries(), F.min("since").alias("succeeded_at"))
    return found.where(F.col("events") >= thresholds.wrong_then_right)


def _old_passwords(tries: DataFrame, seen: Observed, thresholds: GuessedPasswordThresholds) -> DataFrame:
    """Find principals that try the password that they had; the columns are some of those of `guesses`, `changed_at`."""
    user = changed_user().alias("owner")
    own = seen.clients.withColumnRenamed("who", "owner")
    until = own.where(~F.col("by_token")).groupBy("owner").agg(F.max("last_seen").alias("own_until"))
    changed = seen.deeds.where(ok(EventType.SCRAM_USER_CHANGED)).select(
        user, F.col("first_seen").alias("changed"), "principal"
    )
    by_others = changed.where(~F.col("principal").eqNullSafe(F.col("owner"))).join(until, "owner")
    gone = (
        by_others.where(F.col("own_until") < F.col("changed"))
        .groupBy("owner")
        .agg(F.min("changed").alias("changed_at"))
    )
    reasons = (RefusalReason.WRONG_CREDENTIALS, RefusalReason.UNKNOWN_USER)
    refused = tries.where(F.col("reason").isin([each.value for each in reasons])).join(gone, "owner")
    is_later = F.col("changed_at") < F.col("first_seen")
    placed = seen.zones.of(refused)
    strange = (
        placed.where(is_later)
        .join(own.select("owner", "zone").distinct(), ["owner", "zone"], "left_anti")
        .join(placed.where(~is_later).select("owner", "zone").distinct(), ["owner", "zone"], "left_anti")
    )
    return (
        with_sums(strange, "owner")
        .groupBy("owner", "changed_at")
        .agg(*of_tries(), F.count_distinct("date").alias("days"))
        .where((F.col("events") >= thresholds.old_passwords) & (F.col("days") > 1))
        .drop("days")
    )


def _without_password(wrong: DataFrame, seen: Observed, thresholds: GuessedPasswordThresholds) -> DataFrame:
    """Find principals that have no password and are tried with some; the columns are some of those of `guesses`."""
    history = F.lit(thresholds.password_history)
    begin = seen.deeds.agg((F.min("first_seen") + history).alias("settled"))
    by_password = F.col("mechanism").rlike(_MECHANISMS)
    logins = seen.deeds.where(ok(EventType.LOGIN)).groupBy(F.col("principal").alias("owner"))
    known = logins.agg(F.min("first_seen").alias("known_since"), F.bool_or(by_password).alias("has_password"))
    week = Window.partitionBy("owner").orderBy(F.unix_date("date")).rangeBetween(1 - _WEEK_D, 0)
    few = wrong.withColumn("owners", distinct_over("owner", "address")).where(F.col("owners") < _SPRAYED)
    tried = (
        few.where(by_password)
        .join(known.where(~F.col("has_password")), "owner")
        .crossJoin(F.broadcast(begin))
        .withColumn("begun", F.min("first_seen").over(Window.partitionBy("owner")))
        .where((F.col("settled") < F.col("begun")) & (F.col("known_since") + history < F.col("begun")))
    )
    homes = seen.clients.select(F.col("who").alias("owner"), "zone").distinct()
    away = seen.zones.of(tried).join(homes, ["owner", "zone"], "left_anti")
    counts = {"in_a_week": F.sum("deeds").over(week), "days": distinct_within("date", week)}
    is_many = (F.col("in_a_week") >= thresholds.no_password) & (F.col("days") > 1)
    many = away.withColumns(counts).where(is_many).select("owner").distinct()
    tries = with_sums(away.join(many, "owner"), "owner")
    return tries.groupBy("owner", "known_since").agg(*of_tries())


GUESSED_PASSWORD: Final = Sign(
    kind="guessed_password",
    title="Guessing the password of a principal",
    meaning="A client tries wrong or old passwords of this principal again and again, where it never logs in.",
    finds="many wrong passwords of one principal where it never logs in, old ones, and those of one that has none",
    misses="tries from a network of the principal with its library, and a few a day",
    subject_type=SubjectType.PRINCIPAL,
    thresholds=GuessedPasswordThresholds(),
    rule=guessed_passwords,
    steps=(
        advise("Ask the principal's team whether the client is theirs. If not, block the address at the listeners."),
        advise("If a login there succeeded, change the password (kafka-dt user), then end the principal's tokens."),
        follow_address,
        follow_principal,
    ),
)
