"""Passwords are tried for many principals, from addresses that never logged in.

A thief with a list of names tries a few passwords for each, so that no name stands out. The rule counts the principals
for which a login is refused in a day, over all addresses from which no client had logged in before. It counts only
principals that exist, each tried `spray_repeats` times at the most: a program with an old password tries it again and
again, and a scanner tries names that do not exist. A principal that logs in from the same address, before or later,
made a typing error. `sprayed` principals in a day are a sign, if they are `spray_factor` times more than is usual. Days
that follow each other are one finding, about the busiest of these addresses.

The severity is high when a login from one of these addresses succeeds until a day later: a password was right.

Not seen: a thief at an address from which others log in, such as an office's; a thief that tries fewer principals in a
day, or one of them very often.
"""

# The work is on one row for each day, principal and address with refused passwords.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType, RefusalReason
from kafka_dt.pipeline.report.deeds import of_strangers
from kafka_dt.pipeline.report.expressions import first_of, of_type, some
from kafka_dt.pipeline.report.signs.bursts import DAY, Usual, bursts
from kafka_dt.pipeline.report.signs.finding import SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.sign import Sign, advise, follow_address, threshold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed


@dataclass(frozen=True, slots=True)
class SprayThresholds:
    """How many principals are no typing errors."""

    sprayed: int = threshold(5, "Principals refused in a day from addresses that never logged in")
    """More people than that do not mistype at a new place on one day and give up."""
    spray_repeats: int = threshold(5, "... and tries of each, at most")
    """A program with an old password tries it again and again; servers lock an account after some tries."""
    spray_factor: float = threshold(5.0, "... and times what is usual")
    """Some companies have such refusals every day."""
    spray_history: timedelta = threshold(timedelta(days=7), "... in the days before")
    """The days that show what is usual."""


def sprayed_passwords(seen: Observed, thresholds: SprayThresholds) -> DataFrame:
    """Find days on which passwords of many principals are tried; days that follow each other are one finding."""
    tries = _by_strangers(seen, thresholds)
    usual = Usual(thresholds.spray_factor, thresholds.spray_history)
    found = bursts(tries, by="everywhere", what="principal", window=DAY, many=thresholds.sprayed, usual=usual)
    soon = F.col("hit_at").between(F.col("first_seen"), F.col("last_seen") + F.expr("INTERVAL 1 DAY"))
    hits = found.join(_guessed(tries, seen.usage), soon, "left").groupBy(*found.columns).agg(F.min("hit").alias("hit"))
    return _findings(hits)


def _by_strangers(seen: Observed, thresholds: SprayThresholds) -> DataFrame:
    """Give the refused passwords of principals that exist, from addresses that never logged in before."""
    wrong = of_type(EventType.LOGIN) & (F.col("reason") == RefusalReason.WRONG_CREDENTIALS.value)
    few = F.col("deeds") <= thresholds.spray_repeats
    refused = seen.deeds.where(wrong & few & F.col("token_id").isNull() & F.col("principal").isNotNull())
    tried = refused.select("principal", "address").distinct()
    logins = seen.usage.select(F.col("who").alias("principal"), "address")
    at_home = logins.join(tried, ["principal", "address"], "left_semi")
    typed = seen.work("typed", refused.join(at_home, ["principal", "address"], "left_anti"))
    return of_strangers(typed, seen.usage).withColumns({"everywhere": F.lit(True), "tries": F.col("deeds")})


def _guessed(tries: DataFrame, usage: DataFrame) -> DataFrame:
    """Give the logins without a token that succeeded from the addresses of refused ones."""
    tried = tries.select("address").distinct()
    return (
        usage.where(F.col("token_id").isNull())
        .join(tried, "address", "left_semi")
        .select(F.col("first_seen").alias("hit_at"), F.col("who").alias("hit"))
    )


def _findings(found: DataFrame) -> DataFrame:
    none = F.lit(None).cast("string")
    return finding_rows(
        found.withColumns({"token_id": none, "owner": none}),
        subject="address",
        severity=high_if(F.col("hit").isNotNull()),
        evidence=[
            ("principals in a day", F.col("most")),
            ("usual in a day", F.round("usual", 2)),
            ("attempts", F.col("events")),
            ("addresses in a day", F.col("addresses")),
            ("principals, for example", first_of(F.col("examples"))),
            ("logged in there later", F.col("hit")),
            ("clients", some(F.col("clients"))),
        ],
    )


SPRAYED_PASSWORDS: Final = Sign(
    kind="sprayed_passwords",
    title="Trying passwords of many principals",
    meaning="Logins of many principals are refused, from addresses that never logged in.",
    finds="refused logins of many principals from addresses that never logged in",
    misses="tries from an office's address, and a few tries a day",
    subject_type=SubjectType.ADDRESS,
    thresholds=SprayThresholds(),
    rule=sprayed_passwords,
    steps=(
        advise("Block the address at the listeners, and change the password of a principal that logged in from there."),
        follow_address,
    ),
)
