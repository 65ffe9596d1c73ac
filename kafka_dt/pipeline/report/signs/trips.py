"""Business trips: people who work elsewhere for some days, with what they always use, and come back.

    strange = without_trips(seen, came)         # `who`, `wide`, `since`, ...

A principal that comes to a strange network is on a trip if all of this holds, of its logins without a token:

- it works by day, and in the strange network at no other hour, with clients that it had before;
- on a day on whose weekday it works elsewhere, twice at least, it is in the strange network, and not where it was;
- it is not where it was before on any day between its first and its last one in the strange network;
- it is there again afterwards.

Days are days in UTC. On the day of the journey a person is in both places. A thief comes while the principal goes on.

Not seen: a thief with the principal's own client, by day, while the principal has a day off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.expressions import ok
from kafka_dt.pipeline.report.workdays import is_in_day

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

_TRIP: Final = ("who", "wide")
_HABIT: Final = 2
"""So many days show that a weekday is a working day: once may be a Saturday on which there was much to do."""


def without_trips(seen: Observed, strange: DataFrame) -> DataFrame:
    """Leave out the principals and networks that are business trips.

    Args:
        seen: the logins of the principals.
        strange: principals (`who`) that came to a strange large network (`wide`), and when (`since`).
    """
    came = strange.select(*_TRIP, "since").join(seen.workdays, "who")
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
    there, by_day = F.col("at") == F.col("wide"), is_in_day(F.col("first_seen")) & is_in_day(F.col("last_seen"))
    days = placed.groupBy(*_TRIP, "date").agg(
        F.bool_or(there).alias("away"),
        F.bool_or(there & ~by_day).alias("late"),
        F.bool_or(F.col("at_since") < F.col("since")).alias("home"),
    )
    of_trip = Window.partitionBy(*_TRIP)
    date, weekday, home = F.col("date"), F.weekday("date"), F.col("home")
    away_on, works_on = F.when(F.col("away"), date), F.when(~F.col("away"), weekday)
    days = days.withColumns(
        {
            "first": F.min(away_on).over(of_trip),
            "last": F.max(away_on).over(of_trip),
            "weekdays": F.collect_list(works_on).over(of_trip),
        }
    )
    is_working_day = F.size(F.filter("weekdays", lambda each: each == weekday)) >= _HABIT
    works_away = F.col("away") & ~home & is_working_day
    goes_on = home & (F.col("first") < date) & (date < F.col("last"))
    comes_back = home & (date > F.col("last"))
    is_trip = F.bool_or(works_away) & ~F.bool_or(goes_on | F.col("late")) & F.bool_or(comes_back)
    return days.groupBy(*_TRIP).agg(is_trip.alias("is_trip")).where("is_trip").drop("is_trip")
