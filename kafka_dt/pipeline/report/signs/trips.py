"""Business trips: people who work elsewhere for some days, with what they always use, and come back.

    strange = without_trips(seen, came)         # `who`, `wide`, `since`, ...

A principal that comes to a strange network is on a trip if all of this holds, of its logins without a token:

- it works by day, and its clients there are those that it had before;
- on a day on whose weekday it works where it was before, it is in the strange network and not there;
- it is not there on any day between its first and its last one in the strange network;
- it is there again afterwards.

Days are days in UTC. On the day of the journey a person is in both places. A thief comes while the principal goes on.

Not seen: a thief with the principal's own client, by day, while the principal is on holiday.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.expressions import ok

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

_TRIP: Final = ("who", "wide")


def without_trips(seen: Observed, strange: DataFrame) -> DataFrame:
    """Leave out the principals and networks that are business trips.

    Args:
        seen: the logins of the principals.
        strange: principals (`who`) that came to a strange large network (`wide`), and when (`since`).
    """
    came = strange.select(*_TRIP, "since").join(seen.workdays, "who", "left_semi")
    trips = _journeys(seen, came).join(_with_another_client(seen, came), [*_TRIP], "left_anti")
    return strange.join(trips, [*_TRIP], "left_anti")


def _with_another_client(seen: Observed, came: DataFrame) -> DataFrame:
    own = seen.clients.where(~F.col("by_token"))
    had = own.groupBy("who", "software", "client").agg(F.min("first_seen").alias("had_since"))
    there = own.join(came, [*_TRIP]).join(had, ["who", "software", "client"])
    return there.where(F.col("had_since") >= F.col("since")).select(*_TRIP)


def _journeys(seen: Observed, came: DataFrame) -> DataFrame:
    """Give the principals and networks of those who are away on their working days, and come back."""
    networks = seen.network_arrivals.select("who", F.col("wide").alias("at"), F.col("since").alias("at_since"))
    logins = seen.deeds.where(ok(EventType.LOGIN)).withColumnRenamed("principal", "who").join(came, "who", "left_semi")
    placed = seen.zones.of(logins).withColumnRenamed("wide", "at").join(networks, ["who", "at"]).join(came, "who")
    days = placed.groupBy(*_TRIP, "date").agg(
        F.bool_or(F.col("at") == F.col("wide")).alias("away"),
        F.bool_or(F.col("at_since") < F.col("since")).alias("home"),
    )
    of_trip = Window.partitionBy(*_TRIP)
    date, weekday, home = F.col("date"), F.weekday("date"), F.col("home")
    away_on, home_on = F.when(F.col("away"), date), F.when(home & ~F.col("away"), weekday)
    days = days.withColumns(
        {
            "first": F.min(away_on).over(of_trip),
            "last": F.max(away_on).over(of_trip),
            "weekdays": F.collect_set(home_on).over(of_trip),
        }
    )
    works_away = F.col("away") & ~home & F.array_contains("weekdays", weekday)
    goes_on = home & (F.col("first") < date) & (date < F.col("last"))
    is_trip = F.bool_or(works_away) & ~F.bool_or(goes_on) & F.bool_or(home & (date > F.col("last")))
    return days.groupBy(*_TRIP).agg(is_trip.alias("is_trip")).where("is_trip").drop("is_trip")
