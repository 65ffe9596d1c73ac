"""What the events say of tokens and logins, in one pass each: the aggregates that nearly all analyses start from.

    usage = logins_by_place(events)
    lives = token_lives(events, usage)
    clients = clients_by_zone(usage)

`token_lives` makes one row a token:

| column | |
|---|---|
| `token_id`, `owner`, `requester`, `renewers` | as created; of a token older than the table owner and requester |
| `created_at` | when it was issued, or first seen |
| `created_known` | whether its creation is in the table |
| `max_time`, `expiry_time` | the end that no renewal moves, and the end as it was last told |
| `ended_at` | when it ended or will end, as far as is known; null: not known |
| `revoked_at` | when it ended by a request; null: it was not ended, or was renewed after |
| `logins`, `first_login`, `last_login` | by the token, successful |
| `last_attempt` | the last login with its id, successful or not |
| `renewals`, `last_renewal` | successful |

An id without any successful event is not a token and has no row. Logins, which are most events, are counted in
aggregates of fixed width, which Spark keeps in a hash table however many events there are.

`logins_by_place` makes one row for each token, address and client that belong together:

| column | |
|---|---|
| `token_id` | null for a login without a token |
| `who` | the owner of the token, or the principal that logged in |
| `requester` | the principal that asked for the token |
| `address` | of the client |
| `software`, `software_version`, `client` | its library, the version of it, the shape of its client id |
| `first_seen`, `last_seen`, `logins` | successful ones |
| `day_bits` | the days (UTC) between them with a login: a bit for each, see `days_of` |
| `hour_bits` | the same of the hours, see `hours_of` |

The report adds the subnet and the zone of each address (`zones.py`).

A client that logs in every hour for a month is one row, not 720. Refused logins are not in it: a client may try as many
as it likes.

`clients_by_zone` makes one row for each principal, zone and client that belong together, whatever the tokens and
addresses: `who`, `zone`, `wide`, `software`, `software_version`, `client`, `by_token` (whether it came with tokens),
`first_seen`, `last_seen`, `logins`, `own_address` (whether no other principal came from its addresses). Jobs have
thousands of tokens and machines, and few of these rows.

Source: KIP-48, "Token Details"; KIP-511 (what clients say of themselves); kafka_dt/tokens/token.py
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.expressions import (
    TOKEN_EVENTS,
    UNKNOWN,
    client_shape,
    first_and_last,
    hour_number,
    login_by_token,
    of_type,
    ok,
    ordering,
    shortened,
    software,
    went_well,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from pyspark.sql import Column, DataFrame

_BITS: Final = 63
"""A number of 64 bits has so many besides its sign."""
TOLD: Final = timedelta(hours=_BITS - 1)
"""Of a use for less than this, `hours_of` gives the hours of its logins alone."""
_BIT_COLUMNS: Final = ("day_bits", "hour_bits")
_PLACE: Final = ("token_id", "who", "requester", "address", "software", "software_version", "client")
_CLIENT: Final = ("who", "zone", "wide", "software", "software_version", "client")


def token_lives(events: DataFrame, usage: DataFrame) -> DataFrame:
    """Make one row of each token; `logins_by_place` has counted its logins, and knows the owner of an older token."""
    return (
        _told(events)
        .join(_used(usage), "token_id", "full")
        .withColumn("first_seen", F.least("first_told", "first_login"))
        .where(F.col("first_seen").isNotNull())
        .select(
            "token_id",
            F.coalesce("created.owner", "used_by.owner").alias("owner"),
            F.coalesce("created.requester", "used_by.requester", "created.owner", "used_by.owner").alias("requester"),
            F.coalesce("created.renewers", F.array().cast("array<string>")).alias("renewers"),
            F.coalesce("created.issue_time", "first_seen").alias("created_at"),
            F.col("created").isNotNull().alias("created_known"),
            _longest_end().alias("max_time"),
            "expiry_time",
            _ended_at().alias("ended_at"),
            revoked_at().alias("revoked_at"),
            F.coalesce("logins", F.lit(0)).alias("logins"),
            "first_login",
            "last_login",
            F.greatest("last_refused", "last_login").alias("last_attempt"),
            F.coalesce("renewals", F.lit(0)).alias("renewals"),
            "last_renewal",
        )
    )


def alive_at(at: datetime) -> Column:
    """Whether a token lives at an instant; if its end is unknown, it lives until a day after its last use."""
    instant = F.lit(at)
    return (F.col("created_at") <= instant) & (known_end() > instant)


def known_end() -> Column:
    """Give the end of a token; if the table does not tell it, a day after its last use."""
    return F.coalesce("ended_at", F.coalesce("last_login", "created_at") + F.expr("INTERVAL 1 DAY"))


def _used(usage: DataFrame) -> DataFrame:
    """Count the logins by each token."""
    by_owner = (
        usage.where(F.col("token_id").isNotNull())
        .groupBy("token_id", "who", "requester")
        .agg(*first_and_last(), F.sum("logins").alias("logins"))
    )
    return by_owner.groupBy("token_id").agg(
        F.max_by(F.struct(F.col("who").alias("owner"), "requester"), ordering("who", "requester")).alias("used_by"),
        F.min("first_seen").alias("first_login"),
        F.max("last_seen").alias("last_login"),
        F.sum("logins").alias("logins"),
    )


def _told(events: DataFrame) -> DataFrame:
    """Gather what events tell of each id but its successful logins."""
    time, expiry = F.col("time"), F.col("expiry_time")
    by_request = ok(EventType.TOKEN_EXPIRED)
    # A request that ends a token at once may leave out the time of the end, which is the time of the request.
    told_end = F.when(by_request, F.coalesce(expiry, time)).when(
        ok(EventType.TOKEN_CREATED, EventType.TOKEN_RENEWED), expiry
    )
    created = F.struct(
        F.coalesce("owner", "principal").alias("owner"),
        F.coalesce("requester", "principal").alias("requester"),
        "renewers",
        F.coalesce("issue_time", "time").alias("issue_time"),
        "max_time",
    )
    return (
        events.where(F.col("token_id").isNotNull() & of_type(*TOKEN_EVENTS) & ~login_by_token())
        .groupBy("token_id")
        .agg(
            F.min_by(created, F.when(ok(EventType.TOKEN_CREATED), F.struct(time, created))).alias("created"),
            F.min(F.when(went_well(), time)).alias("first_told"),
            F.max_by(told_end, F.when(told_end.isNotNull(), F.struct(time, told_end))).alias("expiry_time"),
            F.max(F.when(went_well(), F.col("max_time"))).alias("told_max_time"),
            F.min(F.when(ok(EventType.TOKEN_REMOVED), time)).alias("removed_at"),
            F.max_by(told_end, F.when(by_request, F.struct(time, told_end))).alias("requested_end"),
            F.max(F.when(by_request, time)).alias("last_request"),
            F.max(F.when(of_type(EventType.LOGIN), time)).alias("last_refused"),
            F.count(F.when(ok(EventType.TOKEN_RENEWED), time)).alias("renewals"),
            F.max(F.when(ok(EventType.TOKEN_RENEWED), time)).alias("last_renewal"),
        )
    )


def _ended_at() -> Column:
    # The maximum alone says nothing: few tokens are renewed until then.
    told = F.coalesce("expiry_time", "removed_at").isNotNull()
    return F.when(told, F.least("expiry_time", "removed_at", _longest_end()))


def _longest_end() -> Column:
    return F.coalesce("created.max_time", "told_max_time")


def revoked_at() -> Column:
    """Give the end that a request has set; null where none did, or where a renewal came after it.

    It is made of `last_request`, `requested_end` and `last_renewal` of a token.
    """
    renewed_after = F.coalesce(F.col("last_renewal") > F.col("last_request"), F.lit(False))
    return F.when(F.col("last_request").isNotNull() & ~renewed_after, F.greatest("requested_end", "last_request"))


def logins_by_place(events: DataFrame) -> DataFrame:
    """Count the successful logins of each token, address and client.

    They are counted by what clients say first: to make names of that takes longer than all else that is done with a
    login.
    """
    as_told = (
        events.where(ok(EventType.LOGIN))
        .select(
            "time",
            "date",
            "token_id",
            F.coalesce("owner", "principal").alias("who"),
            "requester",
            F.col("client_address").alias("address"),
            shortened(F.col("client_software")).alias("software"),
            shortened(F.col("client_software_version")).alias("software_version"),
            shortened(F.col("client_id")).alias("client"),
        )
        .groupBy(*_PLACE)
        .agg(*first_and_last("time", "time"), F.count("*").alias("logins"), *_bits())
    )
    named = {
        "address": F.coalesce("address", F.lit(UNKNOWN)),
        "software": software(F.col("software")),
        "software_version": software(F.col("software_version")),
        "client": client_shape(F.col("client")),
    }
    return (
        as_told.withColumns(named)
        .groupBy(*_PLACE)
        .agg(*first_and_last(), F.sum("logins").alias("logins"), *(F.bit_or(name).alias(name) for name in _BIT_COLUMNS))
    )


def clients_by_zone(usage: DataFrame) -> DataFrame:
    """Count the logins of each principal by zone and client; `usage` has the zones."""
    return (
        usage.join(own_addresses(usage), "address")
        .groupBy(*_CLIENT, F.col("token_id").isNotNull().alias("by_token"))
        .agg(*first_and_last(), F.sum("logins").alias("logins"), F.bool_and("own_address").alias("own_address"))
    )


def own_addresses(usage: DataFrame) -> DataFrame:
    """Tell of each address whether it is one principal's own (`own_address`)."""
    return usage.groupBy("address").agg((F.min("who") == F.max("who")).alias("own_address"))


def days_of() -> Column:
    """Give the days of a row of `logins_by_place`, as dates.

    The bit of a day is its number modulo `_BITS`, so a place in use for longer than that has some days too many.
    """
    days = F.sequence(F.to_date("first_seen"), F.to_date("last_seen"))
    return F.filter(days, lambda day: F.getbit(F.col("day_bits"), F.pmod(F.unix_date(day), F.lit(_BITS))) == 1)


def hours_of() -> Column:
    """Give the hours of a row with `hour_bits`, as numbers since 1970; of a use of `TOLD` and longer some too many."""
    ends = (hour_number(F.col(name)) for name in ("first_seen", "last_seen"))
    return F.filter(
        F.sequence(*ends), lambda hour: F.getbit(F.col("hour_bits"), F.pmod(hour, F.lit(_BITS)).cast("int")) == 1
    )


def _bits() -> Iterator[Column]:
    numbers = (F.unix_date("date"), hour_number(F.col("time")))
    for name, number in zip(_BIT_COLUMNS, numbers, strict=True):
        bit = F.pmod(number, F.lit(_BITS)).cast("int")
        yield F.bit_or(F.call_function("shiftleft", F.lit(1).cast("bigint"), bit)).alias(name)
