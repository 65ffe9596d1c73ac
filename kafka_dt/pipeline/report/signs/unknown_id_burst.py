"""An address tries many token ids that no token ever had.

Ids are random, so a client cannot meet one by trying. A client that tries has heard of tokens and has none. The rule
counts the different unknown ids of an address in an hour, and in a day for a client that takes its time. It leaves out
ids that once were a token's, because jobs try those for a while.

An hour is a sign when it has at least `guessed_in_an_hour` different ids, a day when it has `guessed_in_a_day`. Both
need `guess_factor` times more than is usual for the address: behind a proxy or address translation there may always be
a few. Hours or days that follow each other are one finding. Where no single address of a network stands out but all of
them together do, the network is the finding.

Not seen: a client that tries fewer ids in a day, and one that comes from another network each time. Ids of tokens that
were removed before the table begins count as unknown.
"""

# The work is on refused logins with unknown ids; each window is over one address.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType, RefusalReason
from kafka_dt.pipeline.report.expressions import (
    UNKNOWN,
    distinct,
    first_and_last,
    first_of,
    of_type,
    software,
    some,
    subnet,
)
from kafka_dt.pipeline.report.signs.finding import Severity, SubjectType, finding_rows
from kafka_dt.pipeline.report.signs.sign import Sign, advise, follow_address, threshold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

_HOUR_S: Final = 3600
_DAY_S: Final = 24 * _HOUR_S
_NEIGHBOURS: Final = 2


@dataclass(frozen=True, slots=True)
class GuessThresholds:
    """How many ids are no typing errors."""

    guessed_in_an_hour: int = threshold(5, "Different unknown ids in an hour that are no typing errors")
    """A client with a wrong copy of an id notices at the second or third try."""
    guessed_in_a_day: int = threshold(8, "... in a day")
    guess_factor: float = threshold(5.0, "... and times what is usual for the address")
    """A proxy with stale clients behind it always has some."""
    guess_history: timedelta = threshold(timedelta(days=7), "... in the time before")
    """The time before in which the usual number is counted."""


def guessed_ids(seen: Observed, thresholds: GuessThresholds) -> DataFrame:
    """Find addresses, and networks, that guess token ids; one finding for each time they do."""
    tokens = seen.lives.select("token_id")
    guesses = seen.work("guesses", _guesses(seen.events).join(tokens, "token_id", "left_anti"))
    quick = _bursts(guesses, "address", _HOUR_S, thresholds.guessed_in_an_hour, thresholds)
    rest = guesses.join(quick.select("address"), "address", "left_anti")
    slow = _bursts(rest, "address", _DAY_S, thresholds.guessed_in_a_day, thresholds)
    found = seen.work("guessers", quick.unionByName(slow))
    rest = guesses.join(found.select(subnet(F.col("address")).alias("subnet")), "subnet", "left_anti")
    together = _bursts(rest, "subnet", _HOUR_S, thresholds.guessed_in_an_hour, thresholds)
    return _findings(found.unionByName(together))


def _guesses(events: DataFrame) -> DataFrame:
    unknown = of_type(EventType.LOGIN) & (F.col("reason") == RefusalReason.UNKNOWN_TOKEN.value)
    return events.where(unknown & F.col("token_id").isNotNull()).select(
        "token_id",
        "time",
        F.coalesce("client_address", F.lit(UNKNOWN)).alias("address"),
        subnet(F.col("client_address")).alias("subnet"),
        software(F.col("client_software")).alias("software"),
    )


def _bursts(guesses: DataFrame, by: str, seconds: int, many: int, thresholds: GuessThresholds) -> DataFrame:
    """Find the windows in which an address, or a network, tries many ids, and many more than it usually does."""
    ids = guesses.groupBy(
        F.col(by).alias("place"), F.floor(F.unix_seconds("time") / seconds).cast("long").alias("window"), "token_id"
    ).agg(
        F.count("*").alias("tries"),
        *first_and_last("time", "time"),
        F.min("software").alias("software"),
        F.min("address").alias("address"),
    )
    windows = ids.groupBy("place", "window").agg(
        F.count("*").alias("ids"),
        F.sum("tries").alias("tries"),
        *first_and_last(),
        F.array(F.min("token_id"), F.max("token_id")).alias("examples"),
        F.min("software").alias("software"),
        F.min("address").alias("address"),
    )
    before = int(thresholds.guess_history.total_seconds()) // seconds
    earlier = Window.partitionBy("place").orderBy("window").rangeBetween(-before, -1)
    usual = F.coalesce(F.sum("ids").over(earlier), F.lit(0)) / F.lit(before)
    burst = F.col("ids") >= F.greatest(F.lit(many), F.col("usual") * F.lit(thresholds.guess_factor))
    found = _joined(windows.withColumn("usual", usual).where(burst))
    return found.withColumn("within", F.lit("an hour" if seconds == _HOUR_S else "a day"))


def _joined(windows: DataFrame) -> DataFrame:
    """Make one row of windows that follow each other, with one between them at the most."""
    in_order = Window.partitionBy("place").orderBy("window")
    begins = F.coalesce(F.col("window") - F.lag("window").over(in_order) > _NEIGHBOURS, F.lit(True))
    return (
        windows.withColumn("begins", begins.cast("int"))
        .withColumn("burst", F.sum("begins").over(in_order))
        .groupBy("place", "burst")
        .agg(
            *first_and_last(),
            F.sum("tries").alias("events"),
            F.max("ids").alias("most_ids"),
            F.min("usual").alias("usual"),
            F.array_distinct(F.flatten(F.collect_set("examples"))).alias("examples"),
            distinct("software").alias("clients"),
            F.min("address").alias("address"),
        )
    )


def _findings(bursts: DataFrame) -> DataFrame:
    none = F.lit(None).cast("string")
    rows = bursts.withColumns({"token_id": none, "owner": none})
    return finding_rows(
        rows,
        subject="place",
        severity=F.lit(Severity.MEDIUM.value),
        evidence=[
            ("different unknown ids", F.concat_ws(" in ", F.col("most_ids"), F.col("within"))),
            ("usual for this address", F.concat_ws(" in ", F.round("usual", 2), F.col("within"))),
            ("attempts", F.col("events")),
            ("clients", some(F.col("clients"))),
            ("ids, for example", first_of(F.col("examples"))),
        ],
    )


UNKNOWN_ID_BURST: Final = Sign(
    kind="unknown_id_burst",
    title="Guessing token ids",
    meaning="A client at this address tries many token ids that no token ever had.",
    subject_type=SubjectType.ADDRESS,
    thresholds=GuessThresholds(),
    rule=guessed_ids,
    steps=(
        advise("Block the address at the listeners until you know which client it is."),
        follow_address,
    ),
)
