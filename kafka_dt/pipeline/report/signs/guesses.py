"""Many wrong secrets of one token or principal, where its owner never logs in.

    found = guesses(tries, seen, of="token_id", many=8, history=timedelta(days=1))

`tries` has a row for each attempt, or for several: `owner`, the column named by `of`, `date`, `address`, `software`,
`first_seen`, `last_seen`, `deeds`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.deeds import known_since
from kafka_dt.pipeline.report.expressions import (
    UNKNOWN,
    distinct,
    distinct_over,
    first_and_last,
    is_public,
    with_most,
)
from kafka_dt.pipeline.report.signs.finding import SHOWN

if TYPE_CHECKING:
    from datetime import timedelta

    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

_TRIED_THERE: Final = 2
"""Owners that are tried from a zone in which no principal logs in, at most, where one is guessed."""


def guesses(
    tries: DataFrame, seen: Observed, *, of: str, many: int, history: timedelta, nameless: bool = False
) -> DataFrame:
    """Find what is tried `many` times in a day by clients that are not the owner's, neither before nor later.

    They come from zones where the owner never logs in, or did not before and does not for `history`: who has guessed
    right logs in there, too. Or they come from a machine and with a library that it never has, in a zone that it
    shares. What an owner has that was never seen is guessed in zones where no principal logs in,
    and what one has that is known for less than `history` in such zones of the Internet.

    Args:
        tries: as above.
        seen: tells where owners log in.
        of: the column of what is guessed.
        many: tries in a day, from all addresses together.
        history: how long an owner is known that has shown where it logs in.
        nameless: whether a client that does not name its library is strange to an owner whose clients all name theirs.

    Returns:
        A row for each: `of`, `owner`, `known_since`, `first_seen`, `last_seen`, `events`, `most` (in a day), `address`
        (the one with the most), `addresses`, `zones`, `clients`, `succeeded_at`, when the owner logged in there, and
        `homes`, where it logs in.
    """
    homes = seen.clients.select(F.col("who").alias("owner"), "zone").distinct()
    known = known_since(seen.deeds, seen.clients).withColumnRenamed("principal", "owner")
    begin = seen.deeds.agg((F.min("first_seen") + F.lit(history)).alias("settled"))
    placed = seen.zones.of(tries).withColumn("begun", F.min("first_seen").over(Window.partitionBy("owner")))
    tried_there = distinct_over("owner", "zone")
    judged = (
        _with_places(placed, seen, history)
        .withColumn("tried_there", tried_there)
        .join(known, "owner", "left")
        .crossJoin(F.broadcast(begin))
    )
    strange = judged.where(_is_strange(history, nameless=nameless)).drop(
        "own_library", "own_machine", "used", "settled", "tried_there"
    )
    found = (
        with_sums(strange, of)
        .where(F.col("in_a_day") >= many)
        .groupBy(*dict.fromkeys((of, "owner")), "known_since")
        .agg(
            *of_tries(),
            F.min(F.when(~F.col("at_home"), F.col("place_since"))).alias("succeeded_at"),
        )
    )
    there = homes.join(found.select("owner"), "owner", "left_semi")
    return found.join(there.groupBy("owner").agg(F.slice(distinct("zone"), 1, SHOWN).alias("homes")), "owner", "left")


def with_sums(tries: DataFrame, of: str) -> DataFrame:
    """Add how many tries there are of a thing in a day (`in_a_day`), and from an address (`of_address`)."""
    in_a_day, of_address = (F.sum("deeds").over(Window.partitionBy(of, each)) for each in ("date", "address"))
    return tries.withColumns({"in_a_day": in_a_day, "of_address": of_address})


def of_tries() -> tuple[Column, ...]:
    """Aggregate tries in zones, as `with_sums` gives them: `first_seen` to `clients` of what `guesses` returns."""
    return (
        *first_and_last(),
        F.sum("deeds").alias("events"),
        F.max("in_a_day").alias("most"),
        with_most("address", "of_address").alias("address"),
        F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
        F.slice(distinct("zone"), 1, SHOWN).alias("zones"),
        F.slice(distinct("software"), 1, SHOWN).alias("clients"),
    )


def _with_places(tries: DataFrame, seen: Observed, history: timedelta) -> DataFrame:
    """Say of each try whether the owner has its zone, library and machine, and whether any principal logs in there."""
    since, until = F.min("first_seen").alias("place_since"), F.max("last_seen").alias("place_until")
    stays = F.col("place_until") >= F.col("place_since") + F.lit(history)
    at_home = F.coalesce((F.col("place_since") <= F.col("first_seen")) | stays, F.lit(False))
    yes = F.lit(True)
    owners = tries.select("owner").distinct()
    own = seen.clients.withColumnRenamed("who", "owner").join(owners, "owner", "left_semi")
    tried = tries.select("owner", "address").distinct()
    machines = seen.usage.withColumnRenamed("who", "owner").join(tried, ["owner", "address"], "left_semi")
    return (
        tries.join(own.groupBy("owner", "zone").agg(since, until), ["owner", "zone"], "left")
        .withColumn("at_home", at_home)
        .join(own.select("owner", "software", yes.alias("own_library")).distinct(), ["owner", "software"], "left")
        .join(machines.select("owner", "address", yes.alias("own_machine")).distinct(), ["owner", "address"], "left")
        .join(seen.clients.select("zone", yes.alias("used")).distinct(), "zone", "left")
    )


def _is_strange(history: timedelta, *, nameless: bool) -> Column:
    known = F.col("known_since") + F.lit(history) < F.col("first_seen")
    named = F.lit(nameless) | (F.col("software") != UNKNOWN)
    another = named & F.col("own_library").isNull() & F.col("own_machine").isNull()
    # A new program with a mangled secret is in a new network of the company.
    is_new = (F.col("known_since") <= F.col("first_seen")) & ~known & is_public(F.col("wide"))
    # A program with an old password has tried it since the table begins, and programs that move are several.
    unused = (
        (F.col("known_since").isNull() | is_new)
        & F.col("used").isNull()
        & (F.col("settled") < F.col("begun"))
        & (F.col("tried_there") <= _TRIED_THERE)
    )
    return (known & (~F.col("at_home") | another)) | unused
