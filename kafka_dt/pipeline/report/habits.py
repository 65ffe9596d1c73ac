"""What many of a company do: why a use that looks strange is none.

    habits = Habits.learned(usage, days, store.work)
    uses = without_habits(uses, habits)         # of hubs, of shared tools, of owners with an own login
    uses = without_programs_of_many(uses, habits)
    uses = without_tools_of_people(uses, habits)
    uses = without_workshops(uses, habits)
    uses = without_own_logins(uses, habits)
    uses = without_lines_down(uses, seen)

*The tokens of a hub.* A hub of notebooks, a scheduler or an operator of Kubernetes creates tokens for many. Where
`_BEFORE` of these owners came to a zone with a library, the tokens of the others may be used so, too: people start a
job in the cluster from a notebook, each of them on another day. `_ALWAYS` owners on as many days and machines show the
habit from the first one on.

*A program of many.* `_ALWAYS` owners of a hub have a program (a library and a kind of client id) in a zone, on as many
machines; each of them uses it there with `_AGAIN` tokens, on as many days, at least. People who make their tokens
themselves have such a program, too, in a private zone where few of them (`_DESKS`) log in without a token: a cluster,
and no office.

*A tool of people.* `_COMMON` people who make their tokens themselves use a tool (a library and a kind of client id)
with these, in private networks, on as many machines and days. So each of them may use it, however seldom, in a private
zone in which the person's tokens were used a day before.

*A shared tool.* The tokens of `_BEFORE` principals were used by a client at one address, the first of them some days
(`_TOOL_FOR`) ago, and the owner works by day: a web page for topics logs in with the tokens of the people who look at
it.

*A line of many.* An owner comes over the Internet with its library, from a large network from which `_LINE` others came
with theirs, from as many other addresses and on as many days: a second line where the first one fails, or a provider
from which people work. Customers of a provider may share its addresses (RFC 6598).

*Lines that are down.* An owner that does not work by day comes over the Internet for the first time, with its usual
client, and for half a day (`_DOWN`) at most. `_LINE` others from the same network do so at that time, each from a
network of its own.

*A workshop.* On one day `PEOPLE` principals or more use a library for the first time in a large network, each on a
machine of their own.

*Its own login.* The owner has just logged in at this address without a token, and with a library that it had on an
earlier day: it tries its token itself. A thief that has the owner's password, too, is a matter of `strange_login`.

Limits: a thief in a cluster with the program that many use there is left out, and one with the victim's client on a day
on which lines are down. Of a thief with the tokens of many owners of one hub the rules report the first few uses, or
none if it comes from many machines over many days.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import UNKNOWN, is_carriers, is_public, nth
from kafka_dt.pipeline.report.lives import own_addresses
from kafka_dt.pipeline.report.networks import ZoneKind
from kafka_dt.pipeline.report.peers import PEOPLE
from kafka_dt.pipeline.report.workdays import is_inside

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.window import WindowSpec

    from kafka_dt.pipeline.report.signs.sign import Observed
    from kafka_dt.pipeline.report.store import WriteAndRead

AROUND: Final = timedelta(days=15)
"""How far before and after others show what is usual in the company: a month in all."""
_BEFORE: Final = 3
"""A thief has the token of one owner, or of two."""
_ALWAYS: Final = 6
"""More owners, days and machines than a thief has."""
_AGAIN: Final = 2
"""A thief uses what it has got from an owner once, or on one day."""
_COMMON: Final = 12
"""People, machines and days that show a common tool. A thief with another tool has fewer."""
_DESKS: Final = 0.5
"""Nearly all who use their tokens in an office log in there as well, and hardly any in a cluster."""
_PEOPLE: Final = "people"
"""What makes the tokens that people make themselves; no principal has such a name."""
_LINE: Final = 3
"""A thief has the tokens of fewer, or one machine."""
_USUAL_FOR: Final = timedelta(days=1)
"""How long an owner had a library elsewhere that is its usual one."""
_TOOL_FOR: Final = timedelta(days=3)
"""A thief uses what it has got within a day or two."""
AT_HAND: Final = timedelta(hours=1)
"""How long after its own login a principal is still there."""
_DOWN: Final = timedelta(hours=12)
"""How long a line is down."""
_HUB: Final = ["requester", "zone", "software"]
_PROGRAM: Final = ["hub", "zone", "software", "client"]
_TOOL: Final = ["address", "software", "client"]
_LINE_USE: Final = ["who", "software", "wide", "address", "first_seen"]
OWN_USE: Final = ["who", "address", "first_seen"]
"""What tells a use at an address from others."""
OWN: Final = ("own_since", "own_came", "own_until")
"""What tells when a principal logged in at an address without a token; see `Habits.own_logins`."""


@dataclass(frozen=True, slots=True)
class Habits:
    """What is known of the habits of a company."""

    hubs: DataFrame
    """Since when tokens of a hub are used in a zone with a library (`hub_since`), or that they always are."""
    programs: DataFrame
    """The programs (`software`, `client`) of many in a zone, by what makes their tokens (`hub`)."""
    people_tools: DataFrame
    """The tools (`software`, `client`) of many people."""
    zones: DataFrame
    """Since when the tokens of an owner (`who`) are used in a zone (`zone_since`)."""
    tools: DataFrame
    """Since when the tokens of several were used with a client at an address (`tool_shared_since`), and of the first
    one for some days (`tool_since`)."""
    libraries: DataFrame
    """Since when an owner has a library as its usual one (`usual_since`) in a large network (`elsewhere`)."""
    lines: DataFrame
    """Uses over the Internet with a library that the owner had in another large network."""
    workshops: DataFrame
    """The large networks (`wide`) and days (`day`) of workshops."""
    people: DataFrame
    """The owners that work by day (`who`)."""
    own_logins: DataFrame
    """When principals logged in without a token at an address with a library, the first time (`own_came`) and the last
    (`own_until`), and since when they have that library (`own_since`)."""

    @classmethod
    def learned(cls, usage: DataFrame, days: DataFrame, work: WriteAndRead) -> Habits:
        """Learn them.

        Args:
            usage: where principals logged in, as `lives.logins_by_place` makes it, with zones.
            days: which of them work by day, as `workdays.workdays` makes it.
            work: writes what is computed.
        """
        by_token = usage.where(F.col("token_id").isNotNull())
        people = days.select("who")
        libraries = work("usual_libraries", _usual_libraries(by_token))
        return cls(
            hubs=work("hubs", _hubs(by_token)),
            programs=work("programs_of_many", _programs(usage, people)),
            people_tools=work("people_tools", _people_tools(by_token, people)),
            zones=work("zones_of_owners", by_token.groupBy("who", "zone").agg(F.min("first_seen").alias("zone_since"))),
            tools=work("tools", _tools(by_token)),
            libraries=libraries,
            lines=work("lines", _lines(by_token, libraries)),
            workshops=work("workshops", _workshops(usage)),
            people=people,
            own_logins=work("own_logins", _own_logins(usage)),
        )


def month_around(instant: str) -> WindowSpec:
    """Give the window of the rows whose `instant` is within `AROUND` of a row's."""
    seconds = int(AROUND.total_seconds())
    # All rows are in one partition; said so, neither Spark nor pyspark warns of it.
    return Window.partitionBy(F.lit(1)).orderBy(F.unix_seconds(instant)).rangeBetween(-seconds, seconds)


def without_habits(uses: DataFrame, habits: Habits) -> DataFrame:
    """Leave out uses that the habits of a hub, a shared tool, a line of many or the owner's own login explain.

    Args:
        uses: has `who`, `requester`, `zone`, `wide`, `address`, `software`, `client` and `first_seen`. It is read
            several times, so it should have been written.
        habits: those of the company.
    """
    is_of_hub = F.col("hub_always") | (F.col("hub_since") < F.col("first_seen"))
    was_there = (F.col("tool_shared_since") < F.col("first_seen")) & (F.col("tool_since") < F.col("first_seen"))
    is_with_tool = was_there & F.col("is_person")
    left = (
        _with_hub(uses, habits.people)
        .join(habits.programs, _PROGRAM, "left_anti")
        .join(habits.hubs, _HUB, "left")
        .join(habits.tools, _TOOL, "left")
        .where(~F.coalesce(is_of_hub, F.lit(False)) & ~F.coalesce(is_with_tool, F.lit(False)))
        .join(_on_shared_lines(uses, habits), _LINE_USE, "left_anti")
        .join(_at_hand(uses, habits), OWN_USE, "left_anti")
    )
    return left.select(uses.columns)


def without_programs_of_many(uses: DataFrame, habits: Habits) -> DataFrame:
    """Leave out uses of tokens of a hub, or of people, by a program of many in that zone.

    Args:
        uses: has `who`, `requester`, `zone`, `software` and `client`.
        habits: those of the company.
    """
    of_hub = _with_hub(uses, habits.people)
    return of_hub.join(habits.programs, _PROGRAM, "left_anti").select(uses.columns)


def without_tools_of_people(uses: DataFrame, habits: Habits) -> DataFrame:
    """Leave out uses of tokens that people make themselves, with a tool of many people in a private zone of theirs.

    Args:
        uses: has `who`, `requester`, `zone`, `wide`, `zone_kind`, `software`, `client` and `first_seen`.
        habits: those of the company.
    """
    tools = habits.people_tools.withColumn("is_common", F.lit(True))
    of_people = _with_hub(uses, habits.people).join(F.broadcast(tools), ["software", "client"], "left")
    is_at_home = (F.col("zone") != UNKNOWN) & (F.col("zone_since") + F.lit(_USUAL_FOR) <= F.col("first_seen"))
    is_common = (F.col("hub") == _PEOPLE) & F.col("is_common") & is_inside() & is_at_home
    rows = of_people.join(habits.zones, ["who", "zone"], "left")
    return rows.where(~F.coalesce(is_common, F.lit(False))).select(uses.columns)


def without_workshops(uses: DataFrame, habits: Habits) -> DataFrame:
    """Leave out uses on a day on which people try libraries in a network, each on a machine of their own.

    Args:
        uses: has `wide` and `first_seen`.
        habits: those of the company.
    """
    days = uses.withColumn("day", F.to_date("first_seen"))
    return days.join(habits.workshops, ["wide", "day"], "left_anti").drop("day")


def without_own_logins(uses: DataFrame, habits: Habits) -> DataFrame:
    """Leave out uses at an address where the owner has just logged in without a token, with a library that it had.

    Args:
        uses: has the columns of `OWN_USE`.
        habits: those of the company.
    """
    return uses.join(_at_hand(uses, habits), OWN_USE, "left_anti")


def without_lines_down(uses: DataFrame, seen: Observed) -> DataFrame:
    """Leave out uses over the Internet on a day on which the lines of several owners from the same network are down.

    Args:
        uses: has the columns of `_LINE_USE`, `zone` and `client`.
        seen: what the company does.
    """
    came = seen.network_arrivals.where(is_public(F.col("wide")) & F.col("moved") & F.col("by_token"))
    came = came.where(F.col("until") <= F.col("since") + F.lit(_DOWN)).join(seen.workdays, "who", "left_anti")
    came = came.select("who", "wide", "origin", "since")
    others = came.select("origin", *(F.col(name).alias(f"other_{name}") for name in ("who", "wide", "since")))
    apart = F.abs(F.unix_seconds("other_since") - F.unix_seconds("since"))
    is_other = (F.col("other_who") != F.col("who")) & (F.col("other_wide") != F.col("wide"))
    down = (
        came.join(others, "origin")
        .where(is_other & (apart <= int(_DOWN.total_seconds())))
        .groupBy("who", "wide", "since")
        .agg(F.count_distinct("other_who").alias("others"))
        .where(F.col("others") >= _LINE)
    )
    clients = seen.clients.groupBy("who", "software", "client").agg(F.min("first_seen").alias("client_since"))
    is_usual = F.to_date("client_since") < F.to_date("first_seen")
    on_line = (
        uses.select(*_LINE_USE, "zone", "client")
        .join(down, ["who", "wide"])
        .where(F.col("first_seen") <= F.col("since") + F.lit(_DOWN))
        .join(clients, ["who", "software", "client"])
        .where(is_usual)
        .join(foreign_zones(seen.usage), "zone", "left_anti")
    )
    return uses.join(on_line.select(*_LINE_USE).distinct(), _LINE_USE, "left_anti").select(uses.columns)


def foreign_zones(usage: DataFrame) -> DataFrame:
    """Give the zones (`zone`) that the file of networks calls foreign: nothing excuses a use there."""
    return usage.where(F.col("zone_kind") == ZoneKind.FOREIGN.value).select("zone").distinct()


def _with_hub(uses: DataFrame, people: DataFrame) -> DataFrame:
    """Add what makes such tokens for many (`hub`), their requester or people by themselves; and `is_person`."""
    rows = uses.join(people.withColumn("is_person", F.lit(True)), "who", "left")
    own = F.when(F.col("is_person"), F.lit(_PEOPLE))
    return rows.withColumn("hub", F.when(F.col("requester") != F.col("who"), F.col("requester")).otherwise(own))


def _programs(usage: DataFrame, people: DataFrame) -> DataFrame:
    """Give the programs that many of a hub use again and again, and people in zones where few of them log in."""
    rows = _with_hub(usage, people).where(F.col("hub").isNotNull())
    inside = is_inside() & ~is_carriers(F.col("wide"))
    by_token = F.col("token_id").isNotNull()
    users = (
        rows.where("is_person")
        .groupBy("zone", "who")
        .agg(F.bool_or(by_token).alias("uses"), F.bool_or(~by_token).alias("comes"))
        .where("uses")
    )
    desks = users.groupBy("zone").agg((F.avg(F.col("comes").cast("int")) >= _DESKS).alias("desks")).where("desks")
    desks = desks.select("zone", F.lit(_PEOPLE).alias("hub"))
    uses = rows.where(by_token & ((F.col("hub") != _PEOPLE) | inside)).join(desks, ["zone", "hub"], "left_anti")
    again = uses.groupBy(*_PROGRAM, "who").agg(
        F.least(F.count_distinct("token_id"), F.count_distinct(F.to_date("first_seen"))).alias("times"),
        F.collect_set("address").alias("addresses"),
    )
    counts = (
        again.where(F.col("times") >= _AGAIN)
        .groupBy(*_PROGRAM)
        .agg(
            F.count("*").alias("owners"),
            F.size(F.array_distinct(F.flatten(F.collect_list("addresses")))).alias("machines"),
        )
    )
    return counts.where(F.least("owners", "machines") >= _ALWAYS).select(*_PROGRAM)


def _people_tools(by_token: DataFrame, people: DataFrame) -> DataFrame:
    """Give the tools with which many people use their tokens in private networks."""
    uses = _with_hub(by_token, people).where((F.col("hub") == _PEOPLE) & is_inside() & (F.col("software") != UNKNOWN))
    many = F.least(*(F.count_distinct(each) for each in ("who", "address", F.to_date("first_seen"))))
    return uses.groupBy("software", "client").agg(many.alias("many")).where(F.col("many") >= _COMMON).drop("many")


def _hubs(by_token: DataFrame) -> DataFrame:
    of_hubs = by_token.where(F.col("requester") != F.col("who"))
    owners = of_hubs.groupBy(*_HUB, "who").agg(F.min("first_seen").alias("began"))
    since = owners.groupBy(*_HUB).agg(nth("began", _BEFORE).alias("hub_since"))
    counts = of_hubs.groupBy(*_HUB).agg(
        F.count_distinct("who").alias("owners"),
        F.count_distinct(F.to_date("first_seen")).alias("days"),
        F.count_distinct("address").alias("machines"),
    )
    always = F.least("owners", "days", "machines") >= _ALWAYS
    return since.join(counts, _HUB).select(*_HUB, "hub_since", always.alias("hub_always"))


def _tools(by_token: DataFrame) -> DataFrame:
    users = by_token.groupBy(*_TOOL, "who").agg(F.min("first_seen").alias("began"))
    return users.groupBy(*_TOOL).agg(
        nth("began", _BEFORE).alias("tool_shared_since"), (F.min("began") + F.lit(_TOOL_FOR)).alias("tool_since")
    )


def _usual_libraries(by_token: DataFrame) -> DataFrame:
    usual_since = F.min("first_seen") + F.lit(_USUAL_FOR)
    return by_token.groupBy("who", "software", F.col("wide").alias("elsewhere")).agg(usual_since.alias("usual_since"))


def _lines(by_token: DataFrame, libraries: DataFrame) -> DataFrame:
    there = by_token.where(_is_line() & (F.col("zone_kind") == ZoneKind.LEARNED.value))
    return _with_usual(there.select(*_LINE_USE).distinct(), libraries)


def _workshops(usage: DataFrame) -> DataFrame:
    began = usage.groupBy("who", "software").agg(F.min("first_seen").alias("since"))
    new = usage.join(began, ["who", "software"]).where(F.to_date("first_seen") == F.to_date("since"))
    own = new.join(own_addresses(usage), "address").where("own_address")
    people = own.groupBy("wide", F.to_date("since").alias("day")).agg(F.count_distinct("who").alias("people"))
    return people.where(F.col("people") >= PEOPLE).drop("people")


def _own_logins(usage: DataFrame) -> DataFrame:
    there = (
        usage.where(F.col("token_id").isNull())
        .groupBy("who", "software", "address")
        .agg(F.min("first_seen").alias("own_came"), F.max("last_seen").alias("own_until"))
    )
    return there.withColumn("own_since", F.min("own_came").over(Window.partitionBy("who", "software")))


def _on_shared_lines(uses: DataFrame, habits: Habits) -> DataFrame:
    """Find uses with the owner's library over the Internet, from a network from which others come with theirs.

    The others come from other addresses than the use: each has a line, and a thief has one machine. The columns are
    those of `_LINE_USE`.
    """
    public = _with_usual(uses.where(_is_line()).select(*_LINE_USE).distinct(), habits.libraries)
    other = [F.col(name).alias(f"other_{name}") for name in ("who", "address", "first_seen")]
    apart = F.abs(F.unix_seconds("other_first_seen") - F.unix_seconds("first_seen"))
    return (
        public.join(habits.lines.select("wide", *other), "wide")
        .where((F.col("other_who") != F.col("who")) & (F.col("other_address") != F.col("address")))
        .where(apart <= int(AROUND.total_seconds()))
        .groupBy(*_LINE_USE)
        .agg(
            F.count_distinct("other_who").alias("others"),
            F.count_distinct("other_address").alias("addresses"),
            F.count_distinct(F.to_date("other_first_seen")).alias("days"),
        )
        .where(F.least("others", "addresses", "days") >= _LINE)
        .select(*_LINE_USE)
    )


def _is_line() -> Column:
    """Whether a use may come by a provider's line. Clusters have its shared addresses, too; their zones are larger."""
    of_carrier = is_carriers(F.col("wide")) & F.col("zone").endswith("/24")
    return (is_public(F.col("wide")) | of_carrier) & (F.col("software") != UNKNOWN)


def _with_usual(uses: DataFrame, libraries: DataFrame) -> DataFrame:
    """Keep uses with a library that the owner had in another large network for a day."""
    before = (F.col("elsewhere") != F.col("wide")) & (F.col("usual_since") < F.col("first_seen"))
    return uses.join(libraries, ["who", "software"]).where(before).select(uses.columns).distinct()


def _at_hand(uses: DataFrame, habits: Habits) -> DataFrame:
    """Find the uses that `without_own_logins` leaves out; the columns are those of `OWN_USE`."""
    own = habits.own_logins.select("who", "address", *OWN)
    at_hand = uses.select(*OWN_USE).distinct().join(own, ["who", "address"])
    return at_hand.where(is_at_hand()).select(*OWN_USE).distinct()


def is_at_hand() -> Column:
    """Whether a principal with the columns `OWN` is at the address of a use, with a library that it had before."""
    return (
        (F.to_date("own_since") < F.to_date("first_seen"))
        & (F.col("own_came") <= F.col("first_seen"))
        & (F.col("own_until") + F.lit(AT_HAND) >= F.col("first_seen"))
    )
