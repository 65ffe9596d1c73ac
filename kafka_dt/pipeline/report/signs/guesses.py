"""An address that tries many token ids that nobody made.

Ids are random: nobody meets one by trying, but who tries has heard of tokens and has none. Counted are the different
unknown ids of an address in a window (`Thresholds.guess_window`); ids that once were a token's do not count, jobs try
those for a while. A window is a sign when it has both many of them (`guessed_ids`) and many times more than is usual
for the address (`guess_factor`): behind a proxy or address translation there may always be a few. Windows that follow
each other are one finding.

Where no single address of a network is conspicuous but all of them together are, the network is the finding.

Not seen: who tries fewer than that an hour, and who comes from another network each time. Ids of tokens that were
removed before the table begins count as unknown.

The work is on refused logins with unknown ids; each window is over one address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType, RefusalReason
from kafka_dt.pipeline.findings import IncidentKind, Severity, SubjectType
from kafka_dt.pipeline.report import places
from kafka_dt.pipeline.report.conditions import of_type, some
from kafka_dt.pipeline.report.signs.rows import finding

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.thresholds import Thresholds

EXAMPLES = 5


def guessed_ids(events: DataFrame, lives: DataFrame, thresholds: Thresholds) -> DataFrame:
    """Find addresses, and networks, that guess token ids; one finding for each time they do.

    Args:
        events: of the table, up to the instant of the report.
        lives: as `lives.token_lives` makes them.
        thresholds: where the lines are.
    """
    guesses = _guesses(events, thresholds).join(lives.select("token_id"), "token_id", "left_anti")
    addresses = _bursts(guesses, F.col("address"), thresholds)
    caught = addresses.select(places.subnet(F.col("place")).alias("subnet")).distinct()
    rest = guesses.join(caught, "subnet", "left_anti")
    return _findings(addresses.unionByName(_bursts(rest, F.col("subnet"), thresholds)))


def _guesses(events: DataFrame, thresholds: Thresholds) -> DataFrame:
    unknown = of_type(EventType.LOGIN) & (F.col("reason") == RefusalReason.UNKNOWN_TOKEN.value)
    seconds = int(thresholds.guess_window.total_seconds())
    start = F.floor(F.unix_seconds("time") / seconds) * seconds
    return events.where(unknown & F.col("token_id").isNotNull()).select(
        "token_id",
        "time",
        F.coalesce("client_address", F.lit(places.UNKNOWN)).alias("address"),
        places.subnet(F.col("client_address")).alias("subnet"),
        places.software(F.col("client_software")).alias("software"),
        start.cast("long").alias("window"),
    )


def _bursts(guesses: DataFrame, place: Column, thresholds: Thresholds) -> DataFrame:
    """Find the windows in which a place tries more ids than others, and more than it does itself."""
    ids = guesses.groupBy(place.alias("place"), "window", "token_id").agg(
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
    seconds = int(thresholds.guess_window.total_seconds())
    history = int(thresholds.guess_history.total_seconds())
    before = Window.partitionBy("place").orderBy("window").rangeBetween(-history, -seconds)
    usual = F.coalesce(F.sum("ids").over(before), F.lit(0)) / F.lit(history // seconds)
    many = F.col("ids") >= F.greatest(F.lit(thresholds.guessed_ids), F.col("usual") * F.lit(thresholds.guess_factor))
    return _joined(windows.withColumn("usual", usual).where(many), seconds)


def _joined(windows: DataFrame, seconds: int) -> DataFrame:
    """Make one row of windows that follow each other."""
    in_order = Window.partitionBy("place").orderBy("window")
    begins = F.coalesce(F.col("window") - F.lag("window").over(in_order) > 2 * seconds, F.lit(True))
    return (
        windows.withColumn("begins", begins.cast("int"))
        .withColumn("time_number", F.sum("begins").over(in_order))
        .groupBy("place", "time_number")
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
            ("different unknown ids in an hour", F.col("most_ids")),
            ("usual in an hour", F.round("usual", 2)),
            ("attempts", F.col("events")),
            ("clients", some(F.col("clients"))),
            ("ids, for example", F.array_join(F.slice("examples", 1, EXAMPLES), ", ")),
        ],
    )
