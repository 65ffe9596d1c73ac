"""Ends of tokens in a place that is new to the principal that ends them.

    places = ended_in_new_places(ends, acts, seen, thresholds)

A thief who has the password of an operator or a scheduler logs in from another place. Most new places are honest:
another office, a move, a standby that took over, a trip.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import as_text, distinct_within, first_and_last
from kafka_dt.pipeline.report.peers import SETTLED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.ended_for_many import EndedForManyThresholds
    from kafka_dt.pipeline.report.signs.sign import Observed

FIRST_DAY: Final = timedelta(days=1)
"""What goes on for longer in a new place, or with a new library, is known by then."""


def ended_in_new_places(
    ends: DataFrame, acts: DataFrame, seen: Observed, thresholds: EndedForManyThresholds
) -> DataFrame:
    """Find the places in which principals end tokens on their first day there, and which the company does not explain.

    Args:
        ends: the ends of tokens, with `principal`, `owner`, `token_id`, `zone`, `wide` and `first_seen`.
        acts: what these principals did, with `principal`, `zone`, `wide`, `first_seen`, `last_seen`, and whether it was
            a token for another owner (`asks`).
        seen: what the report has computed.
        thresholds: of the sign.

    Returns:
        `principal`, `zone`, `wide`, `place_since`, and `counts`, what was counted, as text.
    """
    places = _new_places(seen, acts, thresholds)
    place = ["principal", "zone", "wide"]
    on_first_day = F.col("first_seen") < F.col("place_since") + F.lit(FIRST_DAY)
    enough = (F.col("tokens") >= thresholds.ended_tokens) | (F.col("owners") >= thresholds.ended_few_owners)
    return (
        ends.join(places, place)
        .where(on_first_day)
        .groupBy(*place, "place_since", "counts")
        .agg(F.count_distinct("token_id").alias("tokens"), F.count_distinct("owner").alias("owners"))
        .where(enough)
        .select(*place, "place_since", "counts")
    )


def _new_places(seen: Observed, acts: DataFrame, thresholds: EndedForManyThresholds) -> DataFrame:
    """Give the places to which principals came after `ending_history`, and which the company does not explain.

    The columns are `principal`, `zone`, `wide`, `place_since`, and `counts`, what was counted, as text.
    """
    zone, wide, of_principal = (Window.partitionBy("principal", *more) for more in (("zone",), ("wide",), ()))
    earlier = of_principal.orderBy(F.unix_micros("place_since")).rangeBetween(Window.unboundedPreceding, -1)
    places = (
        acts.groupBy("principal", "zone", "wide")
        .agg(
            *first_and_last(),
            F.min(F.when(F.col("asks"), F.col("first_seen"))).alias("asks_since"),
        )
        .withColumn("place_since", F.least(F.min("first_seen").over(zone), F.min("first_seen").over(wide)))
        .withColumns(
            {
                "known_since": F.min("first_seen").over(of_principal),
                "elsewhere_until": F.max("last_seen").over(earlier),
                "places_before": distinct_within("zone", earlier),
            }
        )
    )
    since, day = F.col("place_since"), F.lit(FIRST_DAY)
    late = since >= F.col("known_since") + F.lit(thresholds.ending_history)
    stays = (F.col("last_seen") >= since + day) & (F.col("elsewhere_until") < since + day)
    moved = F.col("moved") & (F.col("others_moved") >= thresholds.ended_colleagues)
    arrivals = seen.arrivals.select(F.col("who").alias("principal"), "zone", "moved", "others_moved")
    new = seen.work("new_places", places.where(late & ~stays).join(arrivals, ["principal", "zone"], "left"))
    unexplained = (
        new.where(~F.coalesce(moved, F.lit(False)))
        .join(_with_colleagues(new, places, seen.arrivals, thresholds), ["principal", "zone", "wide"], "left_anti")
        .join(_taken_over(new, acts), ["principal", "zone", "wide"], "left_anti")
    )
    journeys = F.count("*").over(earlier)
    counts = F.format_string(
        "the principal was in %d other zones since %s, and came to %s at %s",
        "places_before",
        as_text(F.col("known_since")),
        "zone",
        as_text(since),
    )
    return (
        unexplained.withColumn("journeys", journeys)
        .where(F.col("journeys") == 0)
        .select("principal", "zone", "wide", "place_since", counts.alias("counts"))
    )


def _with_colleagues(
    new: DataFrame, places: DataFrame, arrivals: DataFrame, thresholds: EndedForManyThresholds
) -> DataFrame:
    """Give the new places in which others were that were in a place of the principal before, too."""
    others = arrivals.select(F.col("who").alias("other"), "zone", F.col("since").alias("other_since"))
    homes = places.select("principal", F.col("zone").alias("home"), F.col("place_since").alias("home_since"))
    at_home = others.select("other", F.col("zone").alias("home"), F.col("other_since").alias("other_home_since"))
    there = F.col("other_since") + F.lit(SETTLED) <= F.col("place_since")
    is_earlier = (F.col("home_since") < F.col("place_since")) & (F.col("other_home_since") < F.col("place_since"))
    return (
        new.select("principal", "zone", "wide", "place_since")
        .join(others, "zone")
        .where(there & (F.col("other") != F.col("principal")))
        .join(homes, "principal")
        .join(at_home, ["other", "home"])
        .where(is_earlier)
        .groupBy("principal", "zone", "wide")
        .agg(F.count_distinct("other").alias("colleagues"))
        .where(F.col("colleagues") >= thresholds.ended_colleagues)
    )


def _taken_over(new: DataFrame, acts: DataFrame) -> DataFrame:
    """Give the new places in which principals ask for tokens within a day, and nowhere else while they are there."""
    soon = F.col("asks_since") < F.col("place_since") + F.lit(FIRST_DAY)
    standby = new.where(soon).select(
        "principal", "zone", "wide", "place_since", F.col("last_seen").alias("place_until")
    )
    asked = acts.where("asks").select(
        "principal", F.col("zone").alias("other_zone"), F.col("first_seen").alias("asked_at")
    )
    meanwhile = (F.col("other_zone") != F.col("zone")) & F.col("asked_at").between(
        F.col("place_since"), F.col("place_until")
    )
    twice = standby.join(asked, "principal").where(meanwhile)
    place = ["principal", "zone", "wide"]
    return standby.join(twice, place, "left_anti").select(*place)
