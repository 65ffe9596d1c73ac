"""What many of a company do, and who was at a place: why a use that looks strange is none.

    uses = without_habits(uses, usage)          # of hubs, of shared tools, of owners with an own login
    uses = without_workshops(uses, usage)
    uses = without_own_logins(uses, usage)
    uses = with_colleagues(uses, usage)         # with `colleagues`

*The tokens of a hub.* A hub of notebooks, a scheduler or an operator of Kubernetes creates tokens for many. Where
`_BEFORE` of these owners came to a zone with a library, the tokens of the others may be used so, too: people start a
job in the cluster from a notebook, each of them on another day. `_ALWAYS` owners on as many days and machines show the
habit from the first one on.

*A shared tool.* The tokens of `_BEFORE` principals were used by a client at one address, the first of them some days
(`_TOOL_FOR`) ago: a web page for topics logs in with the tokens of the people who look at it.

*A line of many.* An owner comes over the Internet with its library, from a large network from which `_LINE` others came
with theirs, from as many other addresses and on as many days: a second line where the first one fails, or a provider
from which people work.

*A workshop.* On one day `PEOPLE` principals or more use a library for the first time in a large network, each on a
machine of their own.

*Its own login.* The owner has just logged in at this address without a token, and with a library that it had on an
earlier day: it tries its token itself. A thief that has the owner's password, too, is a matter of `strange_login`.

*Colleagues.* Others had just logged in there in the same way: an engineer on call tries the token of a job that fails.
An engineer may also have taken it, so these are named and not left out.

Limits: of a thief with the tokens of many owners of one hub the rules report the first few uses, or none if it comes
from many machines over many days.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import UNKNOWN, distinct, is_public, nth
from kafka_dt.pipeline.report.lives import own_addresses
from kafka_dt.pipeline.report.networks import ZoneKind
from kafka_dt.pipeline.report.peers import PEOPLE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.window import WindowSpec

AROUND: Final = timedelta(days=15)
"""How far before and after others show what is usual in the company: a month in all."""
_BEFORE: Final = 3
"""A thief has the token of one owner, or of two."""
_ALWAYS: Final = 6
"""More owners, days and machines than a thief has."""
_LINE: Final = 3
"""A thief has the tokens of fewer, or one machine."""
_USUAL_FOR: Final = timedelta(days=1)
"""How long an owner had a library elsewhere that is its usual one."""
_TOOL_FOR: Final = timedelta(days=3)
"""A thief uses what it has got within a day or two."""
_AT_HAND: Final = timedelta(hours=1)
"""How long after its own login a principal is still there."""
_OWN: Final = ("own_since", "own_came", "own_until")


def month_around(instant: str) -> WindowSpec:
    """Give the window of the rows whose `instant` is within `AROUND` of a row's."""
    seconds = int(AROUND.total_seconds())
    return Window.orderBy(F.unix_seconds(instant)).rangeBetween(-seconds, seconds)


def without_habits(uses: DataFrame, usage: DataFrame) -> DataFrame:
    """Leave out uses that the habits of a hub, a shared tool, a line of many or the owner's own login explain.

    Args:
        uses: has `who`, `requester`, `zone`, `wide`, `address`, `software`, `client` and `first_seen`.
        usage: where principals logged in, as `lives.logins_by_place` makes it, with zones.
    """
    left = _without_shared_lines(_without_shared_tools(_without_hub_habits(uses, usage), usage), usage)
    return without_own_logins(left, usage)


def _without_hub_habits(uses: DataFrame, usage: DataFrame) -> DataFrame:
    """Leave out uses of tokens that their hub's tokens are known for.

    Args:
        uses: has `requester`, `zone`, `software` and `first_seen`.
        usage: where tokens were used, as `lives.logins_by_place` makes it, with zones.
    """
    of_hubs = usage.where(F.col("token_id").isNotNull() & (F.col("requester") != F.col("who")))
    of_hubs = of_hubs.join(uses.select("requester").distinct(), "requester", "left_semi")
    habit = ["requester", "zone", "software"]
    owners = of_hubs.groupBy(*habit, "who").agg(F.min("first_seen").alias("began"))
    since = owners.groupBy(*habit).agg(nth("began", _BEFORE).alias("habit_since"))
    counts = of_hubs.groupBy(*habit).agg(
        F.count_distinct("who").alias("owners"),
        F.count_distinct(F.to_date("first_seen")).alias("days"),
        F.count_distinct("address").alias("machines"),
    )
    always = F.least("owners", "days", "machines") >= _ALWAYS
    habits = since.join(counts, habit).select(*habit, "habit_since", always.alias("always"))
    is_habit = F.col("always") | (F.col("habit_since") < F.col("first_seen"))
    rows = uses.join(habits, habit, "left").where(~F.coalesce(is_habit, F.lit(False)))
    return rows.drop("habit_since", "always")


def _without_shared_tools(uses: DataFrame, usage: DataFrame) -> DataFrame:
    """Leave out uses with a tool that several principals used at this address before.

    Args:
        uses: has `address`, `software`, `client` and `first_seen`.
        usage: where principals logged in, as `lives.logins_by_place` makes it.
    """
    tool = ["address", "software", "client"]
    by_token = usage.where(F.col("token_id").isNotNull())
    there = by_token.join(uses.select("address").distinct(), "address", "left_semi")
    users = there.groupBy(*tool, "who").agg(F.min("first_seen").alias("began"))
    tools = users.groupBy(*tool).agg(
        nth("began", _BEFORE).alias("shared_since"), (F.min("began") + F.lit(_TOOL_FOR)).alias("known_since")
    )
    is_tool = (F.col("shared_since") < F.col("first_seen")) & (F.col("known_since") < F.col("first_seen"))
    rows = uses.join(tools, tool, "left").where(~F.coalesce(is_tool, F.lit(False)))
    return rows.drop("shared_since", "known_since")


def _without_shared_lines(uses: DataFrame, usage: DataFrame) -> DataFrame:
    """Leave out uses with the owner's library over the Internet, from a network from which others come with theirs.

    The others come from other addresses than the use: each has a line, and a thief has one machine.

    Args:
        uses: has `who`, `wide`, `address`, `software` and `first_seen`.
        usage: where principals logged in, as `lives.logins_by_place` makes it, with zones.
    """
    library, use = ["who", "software"], ["who", "software", "wide", "address", "first_seen"]
    by_token = usage.where(F.col("token_id").isNotNull())
    had = by_token.groupBy(*library, F.col("wide").alias("elsewhere")).agg(
        (F.min("first_seen") + F.lit(_USUAL_FOR)).alias("usual_since")
    )
    is_line = is_public(F.col("wide")) & (F.col("software") != UNKNOWN)
    public = _with_usual(uses.where(is_line).select(*use).distinct(), had)
    there = by_token.where(is_line & (F.col("zone_kind") == ZoneKind.LEARNED.value))
    came = _with_usual(there.join(public.select("wide").distinct(), "wide", "left_semi").select(*use).distinct(), had)
    other = [F.col(name).alias(f"other_{name}") for name in ("who", "address", "first_seen")]
    apart = F.abs(F.unix_seconds("other_first_seen") - F.unix_seconds("first_seen"))
    lines = (
        public.join(came.select("wide", *other), "wide")
        .where((F.col("other_who") != F.col("who")) & (F.col("other_address") != F.col("address")))
        .where(apart <= int(AROUND.total_seconds()))
        .groupBy(*use)
        .agg(
            F.count_distinct("other_who").alias("others"),
            F.count_distinct("other_address").alias("addresses"),
            F.count_distinct(F.to_date("other_first_seen")).alias("days"),
        )
        .where(F.least("others", "addresses", "days") >= _LINE)
    )
    return uses.join(lines, use, "left_anti")


def _with_usual(uses: DataFrame, had: DataFrame) -> DataFrame:
    """Keep uses with a library that the owner had in another large network for a day."""
    before = (F.col("elsewhere") != F.col("wide")) & (F.col("usual_since") < F.col("first_seen"))
    return uses.join(had, ["who", "software"]).where(before).select(uses.columns).distinct()


def without_workshops(uses: DataFrame, usage: DataFrame) -> DataFrame:
    """Leave out uses on a day on which people try libraries in a network, each on a machine of their own.

    Args:
        uses: has `wide` and `first_seen`.
        usage: where principals logged in, as `lives.logins_by_place` makes it, with zones.
    """
    days = uses.select("wide", F.to_date("first_seen").alias("day")).distinct()
    began = usage.groupBy("who", "software").agg(F.min("first_seen").alias("since"))
    new = usage.join(began, ["who", "software"]).where(F.to_date("first_seen") == F.to_date("since"))
    there = new.withColumn("day", F.to_date("since")).join(days, ["wide", "day"], "left_semi")
    own = there.join(own_addresses(usage.join(there.select("address").distinct(), "address", "left_semi")), "address")
    people = own.where("own_address").groupBy("wide", "day").agg(F.count_distinct("who").alias("people"))
    workshops = people.where(F.col("people") >= PEOPLE).drop("people")
    return uses.withColumn("day", F.to_date("first_seen")).join(workshops, ["wide", "day"], "left_anti").drop("day")


def without_own_logins(uses: DataFrame, usage: DataFrame) -> DataFrame:
    """Leave out uses at an address where the owner has just logged in without a token, with a library that it had.

    Args:
        uses: has `who`, `address` and `first_seen`.
        usage: where principals logged in, as `lives.logins_by_place` makes it.
    """
    own = _own_logins(usage, uses.select("who", "address").distinct())
    at_hand = (
        uses.select("who", "address", "first_seen")
        .distinct()
        .join(own.select("who", "address", *_OWN), ["who", "address"])
        .where(_is_at_hand())
        .select("who", "address", "first_seen")
        .distinct()
    )
    return uses.join(at_hand, ["who", "address", "first_seen"], "left_anti")


def with_colleagues(uses: DataFrame, usage: DataFrame) -> DataFrame:
    """Add which others had just logged in without a token at the address of a use, as they do (`colleagues`).

    Args:
        uses: has `who`, `address` and `first_seen`.
        usage: where principals logged in, as `lives.logins_by_place` makes it.
    """
    own = _own_logins(usage, uses.select("address").distinct())
    others = own.withColumnRenamed("who", "colleague").select("colleague", "address", *_OWN)
    there = (
        uses.select("who", "address", "first_seen")
        .distinct()
        .join(others, "address")
        .where((F.col("colleague") != F.col("who")) & _is_at_hand())
        .groupBy("who", "address", "first_seen")
        .agg(distinct("colleague").alias("colleagues"))
    )
    return uses.join(there, ["who", "address", "first_seen"], "left")


def colleagues() -> Column:
    """Aggregate the column of `with_colleagues`; null if there were none."""
    names = F.array_distinct(F.flatten(F.collect_list("colleagues")))
    return F.when(F.size(names) > 0, F.array_sort(names)).alias("colleagues")


def _own_logins(usage: DataFrame, places: DataFrame) -> DataFrame:
    """Tell when principals logged in without a token at some places, and since when they have that library."""
    own = usage.where(F.col("token_id").isNull())
    there = (
        own.join(places, places.columns, "left_semi")
        .groupBy("who", "software", "address")
        .agg(F.min("first_seen").alias("own_came"), F.max("last_seen").alias("own_until"))
    )
    theirs = own.join(there.select("who").distinct(), "who", "left_semi")
    since = theirs.groupBy("who", "software").agg(F.min("first_seen").alias("own_since"))
    return there.join(since, ["who", "software"])


def _is_at_hand() -> Column:
    return (
        (F.to_date("own_since") < F.to_date("first_seen"))
        & (F.col("own_came") <= F.col("first_seen"))
        & (F.col("own_until") + F.lit(_AT_HAND) >= F.col("first_seen"))
    )
