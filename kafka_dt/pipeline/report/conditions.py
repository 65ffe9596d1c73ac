"""The conditions and expressions that the analyses share, by name.

    events.where(conditions.OK & conditions.of_type(EventType.LOGIN))

Everything is a function of Spark SQL, nothing runs in Python. The session's time zone has to be UTC, as
`kafka_dt.pipeline.session` sets it: instants are shown as text.

Source: kafka_dt/audit/event.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType, Outcome

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import Column, DataFrame

INSTANT_FORMAT: Final = "yyyy-MM-dd HH:mm:ss 'UTC'"
"""How evidence shows an instant."""
_LONGEST: Final = 120
"""Characters of a name in evidence; clients choose some, and a node takes thousands."""
TOKEN_EVENTS: Final = (
    EventType.LOGIN,
    EventType.TOKEN_CREATED,
    EventType.TOKEN_RENEWED,
    EventType.TOKEN_EXPIRED,
    EventType.TOKEN_REMOVED,
)
"""What happens to a token."""


def of_type(*types: EventType) -> Column:
    """Whether an event is of one of these types."""
    return F.col("type").isin([each.value for each in types])


def went_well() -> Column:
    """Whether what was asked for was done."""
    return F.col("outcome") == Outcome.OK.value


def ok(*types: EventType) -> Column:
    """Whether an event is of one of these types and was done."""
    return of_type(*types) & went_well()


def login_by_token() -> Column:
    """Whether an event is a login that succeeded by a token."""
    return ok(EventType.LOGIN) & F.col("token_id").isNotNull()


def until(events: DataFrame, at: datetime) -> DataFrame:
    """Leave out what happened after `at`; whole days of it are not read.

    Args:
        events: of the table.
        at: an instant with its zone.
    """
    instant = F.lit(at)
    return events.where((F.col("date") <= F.to_date(instant)) & (F.col("time") <= instant))


def as_text(instant: Column) -> Column:
    """Show an instant as people read it; null stays null."""
    return F.date_format(instant, INSTANT_FORMAT)


def first_of(values: Column, limit: int = 5) -> Column:
    """Show the first values of an array as text; long ones are cut."""
    return F.array_join(F.transform(F.slice(values, 1, limit), _cut), ", ")


def some(values: Column, limit: int = 5) -> Column:
    """Show the first values of a sorted array as text, and that there are more of them."""
    shown = first_of(values, limit)
    more = F.when(F.size(values) > limit, F.concat(F.lit(" and "), F.size(values) - limit, F.lit(" more")))
    return F.concat(shown, F.coalesce(more, F.lit("")))


def _cut(text: Column) -> Column:
    return F.when(F.length(text) > _LONGEST, F.concat(F.substring(text, 1, _LONGEST), F.lit("…"))).otherwise(text)
