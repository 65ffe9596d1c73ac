"""An address that tries many token ids that nobody made.

Ids are random: nobody meets one by trying, but who tries has heard of tokens and has none. Counted are the different
unknown ids of an address in an hour, and of who takes his time in a day; ids that once were a token's do not count,
jobs try those for a while. An hour or a day is a sign when it has both many of them (`Thresholds.guessed_in_an_hour`)
and many times more than is usual for the address (`guess_factor`): behind a proxy or address translation there may
always be a few. Those that follow each other are one finding.

Where no single address of a network is conspicuous but all of them together are, the network is the finding.

Not seen: who tries fewer than that in a day, and who comes from another network each time. Ids of tokens that were
removed before the table begins count as unknown.

The work is on refused logins with unknown ids; each window is over one address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType, RefusalReason
from kafka_dt.pipeline.findings import IncidentKind, Severity, SubjectType
from kafka_dt.pipeline.report import places
from kafka_dt.pipeline.report.conditions import first_of, of_type, some
from kafka_dt.pipeline.report.signs.rows import finding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.thresholds import Thresholds
    from kafka_dt.pipeline.report.store import Work

_HOUR_S: Final = 3600
_DAY_S: Final = 24 * _HOUR_S
_NEIGHBOURS: Final = 2


def guessed_ids(events: DataFrame, lives: DataFrame, thresholds: Thresholds, work: Work) -> DataFrame:
    """Find addresses, and networks, that guess token ids; one finding for each time they do.

    Args:
        events: of the table, up to the instant of the report.
        lives: as `lives.token_lives` makes them.
        thresholds: where the lines are.
        work: keeps what is used more than once.
    """
    guesses = work("guesses", _guesses(events).join(lives.select("token_id"), "token_id", "left_anti"))
    quick = _bursts(guesses, "address", _HOUR_S, thresholds.guessed_in_an_hour, thresholds)
    rest = guesses.join(quick.select("address"), "address", "left_anti")
    slow = _bursts(rest, "address", _DAY_S, thresholds.guessed_in_a_day, thresholds)
    found = work("guessers", quick.unionByName(slow))
    rest = guesses.join(found.select(places.subnet(F.col("address")).alias("subnet")), "subnet", "left_anti")
    together = _bursts(rest, "subnet", _HOUR_S, thresholds.guessed_in_an_hour, thresholds)
    return _findings(found.unionByName(together))


def _guesses(events: DataFrame) -> DataFrame:
    unknown = of_type(EventType.LOGIN) & (F.col("reason") == RefusalReason.UNKNOWN_TOKEN.value)
    return events.where(unknown & F.col("token_id").isNotNull()).select(
        "token_id",
        "time",
        F.coalesce("client_address", F.lit(places.UNKNOWN)).alias("address"),
        places.subnet(F.col("client_address")).alias("subnet"),
        places.software(F.col("client_software")).alias("software"),
    )


def _bursts(guesses: DataFrame, by: str, seconds: int, many: int, thresholds: Thresholds) -> DataFrame:
    """Find the windows in which an address, or a network, tries many ids, and many more than it usually does."""
    ids = guesses.groupBy(
        F.col(by).alias("place"), F.floor(F.unix_seconds("time") / seconds).cast("long").alias("window"), "token_id"
    ).agg(
        F.count("*").alias("tries"),
        F.min("time").alias("first_seen"),
        F.max("time").alias("last_seen"),
        F.min("software").alias("software"),
        F.min("address").alias("address"),
    )
    windows = ids.groupBy("place", "window").agg(
        F.count("*").alias("ids"),
        F.sum("tries").alias("tries"),
        F.min("first_seen").alias("first_seen"),
        F.max("last_seen").alias("last_seen"),
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
            F.min("first_seen").alias("first_seen"),
            F.max("last_seen").alias("last_seen"),
            F.sum("tries").alias("events"),
            F.max("ids").alias("most_ids"),
            F.min("usual").alias("usual"),
            F.array_distinct(F.flatten(F.collect_set("examples"))).alias("examples"),
            F.array_sort(F.collect_set("software")).alias("clients"),
            F.min("address").alias("address"),
        )
    )


def _findings(bursts: DataFrame) -> DataFrame:
    nobody = F.lit(None).cast("string")
    rows = bursts.withColumn("token_id", nobody).withColumn("owner", nobody)
    return finding(
        rows,
        kind=IncidentKind.UNKNOWN_ID_BURST,
        severity=F.lit(Severity.MEDIUM.value),
        subject_type=SubjectType.ADDRESS,
        subject=F.col("place"),
        evidence=[
            ("different unknown ids", F.concat_ws(" in ", F.col("most_ids"), F.col("within"))),
            ("usual for this address", F.concat_ws(" in ", F.round("usual", 2), F.col("within"))),
            ("attempts", F.col("events")),
            ("clients", some(F.col("clients"))),
            ("ids, for example", first_of(F.col("examples"))),
        ],
    )
