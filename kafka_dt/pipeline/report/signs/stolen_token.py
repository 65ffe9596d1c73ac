"""A token is used from more places, or by more clients, than its history and its owner's say.

What a token does in the time after its first login (`history`) is usual for the token. What an owner's tokens do in
their histories, and what the owner does without a token, is usual for the owner; so is a zone, a `history` after
`told_tokens` of its tokens came there. The rule compares other uses by zone, library and client id, never by address
alone. A use is a sign in one of these cases:

- *alone in a network, with another client*: when the owner came to this large network (/16, of IPv6 /48), no other
  principal was there for a day, and fewer than `move_together` moved there on the same day; and the library or the kind
  of client id is new to the owner, which has used tokens for `known_for`. The token need not have a history. An owner
  that came to such networks before travels, and is left out.
- *another program in another place*: the zone, the library and the kind of client id are all new to an owner that has
  used tokens for `known_for`, or for `people_known_for` if it works by day and comes in its day, and fewer than
  `move_together` moved there on the same day. The token need not have a history, and the usual use need not go on. An
  owner that came to another zone so before travels. Of this case and the one before, the first day (`history`) is told:
  what goes on comes with each further token of the owner.
- *in a foreign network*: the file of networks calls the zone foreign, and it is new to the token and its owner.
- *elsewhere*: it comes from a zone that is new to the token and to its owner, and the usual use goes on beside it
  (`overlap`); a roll-out or a move is over by then. For an owner that is in another zone all the time, such as a
  user with a laptop, the client has to be another one as well. A site may have two lines: the
  case is quiet about an owner that has two zones, is the only principal in each, and comes over the second, a private
  one whose addresses no provider shares among its customers (100.64.0.0/10). So may a partner: the case is quiet about
  an owner that only comes over the Internet, in a zone to which three of its tokens or more came, the first and the
  last of them two weeks apart.
- *another client*: at a new address it is a library that the owner does not use for `history` either, or another
  release of the library with another kind of client id, and the usual clients go on. A usual kind of client id that
  begins to name its library is an upgrade.
- *moved and changed*: the zone is new to the token and its owner, and the library or the kind of client id is new to
  the token. The usual use need not go on: a thief that moves a job takes its program along.
- *strange to its owner*: the owner is known for longer than `history`, so even the first day of a token is no excuse.
  The use comes from a zone in which the owner never was, and the library or the kind of client id is new to the
  owner, too. Or it comes from one machine alone although the job began on several (`parts`), which neither move nor
  change as one: from a zone that is strange to an owner that stays where it is (`known_tokens`, `networks_a_token`), or
  with a library and a kind of client id that are both new to the owner.
- *unlike the tokens before it*: a job gets a token for each run, or for each day, and a token's history is all of its
  life. Then its siblings say what is usual: those that the same requester made for the same owner before,
  `known_tokens` of them over `known_for`. A use after a share (`history_of_life`) of the token's actual life is a sign
  if two things are new to the owner since the token began: the zone, and the library or the kind of client id; or both
  of these. Of this case, too, the first day is told.

A zone is not strange if `move_together` owners came to it on the same day, with the libraries that they had before: a
cluster moves, or fails over. Owners that come with a library that is new to them do not explain each other. Nor is a
network strange on the day on which the owner came there on many machines (`peers.MACHINES`) with one library that it
had before: this is a load test, or a new place of the job. Nor is a detour told, unless the network is foreign: the
owner's line or cluster is down, its home is silent meanwhile, as it is not else, and its work goes on with clients
that it had there.

A person who works by day is not strange by day in a network to which `neighbours_before` others had come from where the
person was: colleagues work with a laptop in the office or on the VPN, too. The person is on a machine of their own, or
on a host that several principals share (`hosts.with_shared`). If the client is the token's usual one, the others may
have come from anywhere.

What many of the company do is quiet, unless the network is foreign (`habits`): tokens of a hub or a scheduler that are
used in a zone with a library as those of other owners were before, a program of many in a zone, a tool at one address
that logs in with the tokens of several principals, and the owner's library in a network of the Internet from which
others come with theirs in that month, such as a second line. So are the owners of one network whose lines are down on
the same day, and who come over the Internet with their usual clients, each from a network of its own. So is an owner
that has just logged in at the address without a token, with a library that it had: it tries its token itself. So is a
person at work who logs in at the address without a token in the week after, with the library of the use: it is a new
desk; in the person's first week any address of the zone will do. And so is a person (`workdays.people`) with a library
of their own in a private network to which many people come now and then, such as a VPN (`roaming`). For *unlike the
tokens before it*, so is a tool that twelve people use with tokens of their own in private networks, if the person's
tokens have been used in that private zone for a day. So is another client on a day on which people try libraries
together. So is what a colleague at work looks into for an hour: the colleague has just logged in at the address.

The severity is high where another client goes on beside the usual one elsewhere, where an owner is alone with another
client, in a foreign network, and where several cases hold; but medium where others had just logged in at the address as
themselves. The finding names these: an engineer on call may have tried the token, or taken it. It is medium as well
where an owner that works by day comes in its day from a private network, or from any but a foreign one in the first
week in which it is known.

Not seen: an engineer who uses a stolen token at work for an hour; a copy of a site's machine in a private zone of no
other principal; a thief in a zone of the victim with the victim's own program; one behind the same proxy, address
translation or provider; one with a person's token and program by day on a shared host, or with a person's token and
library on the VPN; one that takes over a token that is not used any more, from a zone of its owner; one that comes on
the day of a move, or takes the place of the owner while its home is down; one that needs no login, because it has a
connection that is open already; one in a cluster with a program that six owners use there; in a person's first week a
colleague on the same VPN with the same library. Of a thief with the tokens of many people of a hub only the first few
uses are reported, or none if they come from many machines over many days. An owner that moves alone and changes its
program looks like a theft once. An owner with one token has little history, and a token with fewer logins than
`history_logins` has none.
"""

# The work is on one row for each token, address and client, not on events. Each window is over one token, or over the
# places of one owner or zone; what is known of an owner, which may have very many tokens, is counted without one.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.colleagues import colleagues, with_colleagues, without_engineers
from kafka_dt.pipeline.report.detours import detours
from kafka_dt.pipeline.report.expressions import (
    UNKNOWN,
    as_text,
    distinct,
    first_and_last,
    is_carriers,
    is_public,
    some,
    union,
)
from kafka_dt.pipeline.report.habits import (
    without_habits,
    without_lines_down,
    without_own_logins,
    without_programs_of_many,
    without_tools_of_people,
    without_workshops,
)
from kafka_dt.pipeline.report.hosts import with_shared
from kafka_dt.pipeline.report.lives import own_addresses
from kafka_dt.pipeline.report.roaming import without_roamers
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.sign import (
    Sign,
    advise,
    end_all_of_owner,
    end_token,
    follow_address,
    threshold,
)
from kafka_dt.pipeline.report.signs.token_histories import (
    ANOTHER_CLIENT,
    ELSEWHERE,
    ELSEWHERE_CHANGED,
    FOREIGN,
    OWNED,
    unlike_histories,
)
from kafka_dt.pipeline.report.strangers import ALONE, ANEW, CLIENT, strange_clients, with_owners_since
from kafka_dt.pipeline.report.workdays import (
    is_in_day,
    is_inside,
    with_at_work,
    with_first_week,
    without_new_places_of_work,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.habits import Habits
    from kafka_dt.pipeline.report.signs.sign import Observed

_PLACE: Final = ("token_id", "address", "software", "software_version", "client")
"""What a use is, among the uses of a token."""
UNLIKE: Final = "unlike the tokens before it"
_LINES: Final = 2
"""Zones of a site: those of its usual line and of the other one."""
_OVER_LINE: Final = 3
"""Tokens that a partner uses over its second line: who has stolen one has no further ones."""
_LINE_FOR: Final = timedelta(days=14)
"""How far apart they come, from the first to the last: tokens that are stolen at once are used at once."""
_SURE: Final = (ALONE, FOREIGN, ELSEWHERE_CHANGED)
"""The cases that an honest client hardly makes: two things are new, or the operator's file says so."""


@dataclass(frozen=True, slots=True)
class StolenTokenThresholds:
    """What is usual, in numbers."""

    history: timedelta = threshold(timedelta(days=1), "History of a token, from its first login")
    """How long after its first login a token's uses are its history: what they show is usual. Jobs start all their
    parts within a day, and a job that runs daily has run once."""
    history_of_life: float = threshold(1 / 7, "... at most this share of its longest life")
    """... but no more than this share of the token's longest life: a day of Kafka's default of seven."""
    shortest_history: timedelta = threshold(timedelta(hours=1), "... at least")
    """... and no less than this."""
    history_logins: int = threshold(3, "Logins that make a history")
    """A token with fewer logins in its history has nothing to compare with."""
    overlap: timedelta = threshold(timedelta(hours=1), "How long usual use goes on beside unusual")
    """How long the usual use goes on beside the new one: a roll-out or a move is over by then, a theft is not."""
    known_tokens: int = threshold(5, "Tokens of an owner that is known well")
    """An owner with fewer tokens is not known well enough to say how it lives."""
    networks_a_token: float = threshold(0.25, "Networks for each of its tokens of an owner that stays, at most")
    """An owner that is in more networks than this, for each of its tokens, moves about."""
    parts: int = threshold(3, "Machines of a job that does not move as one")
    """A job of so many machines, that began within a `shortest_history`, does not move as one."""
    told_tokens: int = threshold(2, "Tokens of an owner that make a zone usual")
    """The report tells of the first ones, where they are strange."""
    known_for: timedelta = threshold(timedelta(days=3), "How long an owner is known that has a usual place")
    """Before that, an owner is known by too few days: jobs run daily, and the first day is not the truth."""
    people_known_for: timedelta = threshold(
        timedelta(days=14), "... that works by day, and comes in its day with another program"
    )
    """People have a program that they use once a week."""
    neighbours_before: int = threshold(5, "Neighbours that were in a network before in which people work")
    """A few may be travellers."""
    move_together: int = threshold(3, "Owners that came to a zone on the same day move together")
    """A cluster that moves or fails over takes several owners along; a thief has the token of one, or of two."""


def stolen_tokens(seen: Observed, thresholds: StolenTokenThresholds) -> DataFrame:
    """Find tokens that another client seems to have as well; one finding a token."""
    judged = unlike_histories(seen, thresholds)
    strange = _strange_to_owner(seen, thresholds)
    case = F.col("case")
    columns = [*_PLACE, "who", "zone", "zone_kind", "wide", "first_seen", "last_seen", "logins", "case"]
    unlike = _unlike_siblings(seen, thresholds)
    first = F.when(case == ALONE, 0).when(case == ANEW, 2).when(case == UNLIKE, 3).otherwise(1)
    counted = [*columns, "requester", "counts"]
    told = strange.select(*counted).unionByName(unlike.select(*counted))
    every = union(judged.select(*columns, "requester"), told)
    cases = _without_habits(seen.work("every", every), seen.habits).drop("requester")
    of_use = Window.partitionBy(*_PLACE).orderBy(first)
    strange_cases = seen.work("cases", _not_deployed(cases, seen))
    ranked = _not_as_neighbours(strange_cases, seen, thresholds).withColumn("rank", F.rank().over(of_use))
    unusual = seen.work("unusual", ranked.where(F.col("rank") == 1).drop("rank"))
    alone = seen.work("alone", _not_on_detours(unusual, seen))
    tried = seen.work("tried", with_colleagues(alone, seen.habits))
    not_at_work = seen.work("not_at_work", without_engineers(tried, seen))
    odd = seen.work("odd", without_lines_down(not_at_work, seen))
    odd = with_first_week(with_at_work(odd, seen.workdays), seen.clients, seen.workdays)
    odd = _not_over_second_lines(without_new_places_of_work(odd, seen.usage), seen)
    odd = without_roamers(odd, seen)
    return _findings(odd, _habits(seen.usage, tried))


def _not_on_detours(odd: DataFrame, seen: Observed) -> DataFrame:
    """Leave out uses on detours, unless the network is foreign."""
    is_foreign = F.col("case") == FOREIGN
    away = detours(seen, odd.where(~is_foreign)).withColumn("away", F.lit(True))
    return odd.join(away, ["who", "zone"], "left").where(is_foreign | F.col("away").isNull()).drop("away")


def _not_over_second_lines(odd: DataFrame, seen: Observed) -> DataFrame:
    """Leave out usual clients in a private zone of the owner alone, if it is alone at home, too: a site has two lines.

    The addresses that providers share among their customers are no lines of a site.
    """
    zones = seen.clients.select("who", "zone").distinct()
    zones = zones.withColumn("alone", F.count("*").over(Window.partitionBy("zone")) == 1)
    lines = zones.groupBy("who").agg(F.count("*").alias("zones"), F.bool_and("alone").alias("alone"))
    sites = lines.where((F.col("zones") == _LINES) & F.col("alone")).select("who")
    is_line = (F.col("case") == ELSEWHERE) & is_inside() & ~is_carriers(F.col("wide"))
    over_lines = odd.where(is_line).join(sites, "who").select(*_PLACE, "case")
    of_partners = _over_partners_lines(odd.where(F.col("case") == ELSEWHERE), seen)
    return odd.join(over_lines.unionByName(of_partners), [*_PLACE, "case"], "left_anti")


def _over_partners_lines(odd: DataFrame, seen: Observed) -> DataFrame:
    """Give the uses of owners that only come over the Internet, in zones to which their tokens come again and again."""
    places = seen.usage.join(odd.select("who").distinct(), "who", "left_semi")
    outside = places.groupBy("who").agg(F.bool_and(is_public(F.col("wide"))).alias("outside")).where("outside")
    tokens = places.where(F.col("token_id").isNotNull()).groupBy("who", "zone", "token_id")
    came = tokens.agg(F.min("first_seen").alias("came")).groupBy("who", "zone")
    lines = came.agg(F.count("*").alias("tokens"), (F.max("came") - F.min("came")).alias("span")).where(
        (F.col("tokens") >= _OVER_LINE) & (F.col("span") >= F.lit(_LINE_FOR))
    )
    return odd.join(outside, "who").join(lines, ["who", "zone"]).select(*_PLACE, "case")


def _not_deployed(odd: DataFrame, seen: Observed) -> DataFrame:
    """Leave out uses on the day on which the owner came there with many machines, unless the network is foreign."""
    deployed = seen.deployments.withColumn("deployed", F.lit(True))
    rows = odd.withColumn("day", F.to_date("first_seen")).join(deployed, ["who", "wide", "day"], "left")
    return rows.where((F.col("case") == FOREIGN) | F.col("deployed").isNull()).drop("day", "deployed")


def _not_as_neighbours(odd: DataFrame, seen: Observed, thresholds: StolenTokenThresholds) -> DataFrame:
    """Leave out uses of people by day, where many were before, on a machine of their own or on a shared host."""
    came = seen.network_arrivals.select("who", "wide", "neighbours_before", "others_before")
    with_usual_client = F.col("case") == ELSEWHERE
    neighbours = F.when(with_usual_client, F.col("others_before")).otherwise(F.col("neighbours_before"))
    by_day = (
        odd.where(F.col("case") != FOREIGN)
        .join(came, ["who", "wide"])
        .where(neighbours >= thresholds.neighbours_before)
        .join(seen.workdays, "who")
        .where(is_in_day(F.col("first_seen")))
    )
    there = seen.usage.join(odd.select("address").distinct(), "address", "left_semi")
    usual = (
        with_shared(by_day, seen.habits, "address")
        .join(own_addresses(there), "address")
        .where(F.col("own_address") | F.col("on_shared"))
    )
    return odd.join(usual.select(*_PLACE, "case").distinct(), [*_PLACE, "case"], "left_anti")


def _strange_to_owner(seen: Observed, thresholds: StolenTokenThresholds) -> DataFrame:
    """Find uses in a place that is new to the owner, by a client that is new to it as well.

    The place is a large network where no other principal was, if the owner does not travel: then one thing about the
    client is enough. Or it is any zone to which others did not move along.
    """
    known_for, together = thresholds.known_for, thresholds.move_together
    strange = strange_clients(
        seen,
        since="tokens_since",
        known_for=known_for,
        people_known_for=thresholds.people_known_for,
        move_together=together,
    )
    strange = seen.work("strange", strange.where("by_token").drop("by_token"))
    uses = seen.usage.where(F.col("token_id").isNotNull()).join(strange, [*CLIENT])
    # What goes on for longer comes with each new token of the owner; the first ones have told of it.
    return uses.where(F.col("first_seen") < F.col("since") + F.lit(thresholds.history))


def _without_habits(cases: DataFrame, habits: Habits) -> DataFrame:
    """Leave out what many do, and what the owner tries itself, unless the network is foreign."""
    columns = cases.columns
    foreign, in_place, unlike = (F.col("case") == each for each in (FOREIGN, ANOTHER_CLIENT, UNLIKE))
    elsewhere = without_habits(cases.where(~foreign & ~in_place), habits)
    elsewhere = elsewhere.where(~unlike).unionByName(without_tools_of_people(elsewhere.where(unlike), habits))
    there = without_programs_of_many(cases.where(in_place), habits)
    there = without_own_logins(without_workshops(there, habits), habits)
    return cases.where(foreign).unionByName(elsewhere.select(columns)).unionByName(there.select(columns))


def _unlike_siblings(seen: Observed, thresholds: StolenTokenThresholds) -> DataFrame:
    """Find uses in which two things are new to an owner whose earlier tokens show what is usual."""
    life = F.coalesce(F.least("ended_at", "max_time"), F.col("last_login")) - F.col("created_at")
    share = F.greatest(F.lit(thresholds.shortest_history), life * F.lit(thresholds.history_of_life))
    siblings = Window.partitionBy("owner", "requester").orderBy("first_login", "token_id")
    before = siblings.rowsBetween(Window.unboundedPreceding, -1)
    known = seen.lives.where(F.col("first_login").isNotNull()).select(
        "token_id",
        F.col("first_login").alias("began"),
        (F.col("first_login") + F.least(F.lit(thresholds.history), share)).alias("history_end"),
        F.count("*").over(before).alias("siblings"),
        F.min("first_login").over(before).alias("siblings_since"),
    )
    is_known = (F.col("siblings") >= thresholds.known_tokens) & (
        F.col("began") >= F.col("siblings_since") + F.lit(thresholds.known_for)
    )
    clients = seen.clients.where("by_token").select("who", "wide", *OWNED).distinct()
    clients = with_owners_since(clients, seen.clients, *OWNED)
    arrived = seen.arrivals.select("who", "zone", "people", "others_moved", "tokens_since")
    zone_since, library_since, client_since = (F.col(f"owner_{name}_since") for name in OWNED)
    new_client, new_program = F.greatest(library_since, client_since), F.least(library_since, client_since)
    # The uses are many, the clients that an owner did not begin with are few.
    is_late = F.greatest(zone_since, new_client) >= F.col("tokens_since") + F.lit(thresholds.known_for)
    late = seen.work("late", clients.join(arrived, ["who", "zone"]).where(is_late))
    moves = (F.col("others_moved") >= thresholds.move_together - 1) & (library_since < zone_since)
    day, began = F.lit(thresholds.history), F.col("began")
    in_new_zone = (zone_since > began) & (F.col("first_seen") < zone_since + day) & (new_client >= zone_since) & ~moves
    in_group = F.col("people").isNotNull() & (F.col("first_seen") < zone_since + day)
    by_new_program = (new_program > began) & (F.col("first_seen") < new_client + day)
    counts = F.format_string("%d tokens before it, since %s", "siblings", as_text(F.col("siblings_since")))
    return (
        seen.usage.join(late, ["who", "wide", *OWNED])
        .join(known.where(is_known), "token_id")
        .where((F.col("first_seen") > F.col("history_end")) & (in_new_zone | by_new_program) & ~in_group)
        .withColumns({"case": F.lit(UNLIKE), "counts": counts})
    )


def _habits(usage: DataFrame, odd: DataFrame) -> DataFrame:
    """Tell the usual places of each owner of whose tokens a use is unusual."""
    habits = usage.join(odd.select("who").distinct(), "who", "left_semi")
    habits = habits.join(odd.select(*_PLACE), [*_PLACE], "left_anti")
    busiest = Window.partitionBy("who").orderBy(F.desc("logins"), "token_id", "address", "software", "client")
    return (
        habits.withColumn("rank", F.row_number().over(busiest))
        .groupBy(F.col("who").alias("owner"))
        .agg(
            some(distinct(F.when(F.col("rank") <= SHOWN, F.col("zone")))).alias("usual_zones"),
            some(distinct(F.when(F.col("rank") <= SHOWN, _client()))).alias("usual_clients"),
            F.max("last_seen").alias("usual_until"),
        )
    )


def _findings(odd: DataFrame, habits: DataFrame) -> DataFrame:
    token = Window.partitionBy("token_id")
    busiest = token.orderBy(F.desc("logins"), "address", "software", "client")
    shown = F.col("rank") <= SHOWN
    rows = (
        odd.withColumn("rank", F.row_number().over(busiest))
        .groupBy("token_id")
        .agg(
            F.max(F.when(F.col("rank") == 1, F.col("who"))).alias("owner"),
            F.max(F.when(F.col("rank") == 1, F.col("address"))).alias("address"),
            *first_and_last(),
            F.sum("logins").alias("events"),
            distinct("case").alias("cases"),
            colleagues(),
            F.bool_and(F.col("at_work") | (F.col("first_week") & (F.col("case") != FOREIGN))).alias("at_work"),
            some(distinct(F.when(shown, F.col("address")))).alias("addresses"),
            some(distinct(F.when(shown, F.col("zone")))).alias("zones"),
            F.min("counts").alias("counts"),
            some(distinct(F.when(shown, _client()))).alias("clients"),
        )
        .join(habits, "owner", "left")
    )
    sure = F.arrays_overlap("cases", F.array(*map(F.lit, _SURE))) | (F.size("cases") > 1)
    return finding_rows(
        rows,
        subject="token_id",
        severity=high_if(sure & ~F.col("at_work") & F.col("colleagues").isNull()),
        evidence=[
            ("what is unusual", F.array_join("cases", ", ")),
            ("unusual addresses", F.col("addresses")),
            ("in zones", F.col("zones")),
            ("logged in there as themselves", some(F.col("colleagues"))),
            ("counted", F.col("counts")),
            ("unusual clients", F.col("clients")),
            ("usual zones", F.col("usual_zones")),
            ("usual clients", F.col("usual_clients")),
            ("usual use last seen", as_text(F.col("usual_until"))),
        ],
    )


def _client() -> Column:
    """Name a client: `librdkafka 2.6.1 as console-consumer-#`; a version that is unknown is left out."""
    version = F.when(F.col("software_version") != UNKNOWN, F.col("software_version"))
    return F.concat_ws(" ", "software", version, F.concat(F.lit("as "), F.col("client")))


STOLEN_TOKEN: Final = Sign(
    kind="stolen_token",
    title="Used by a stranger",
    meaning="A client uses the token from other networks, or with other programs, than its owner did before.",
    finds="a token in a zone, or with a program, that is new to its owner and that the company does not explain",
    misses="a thief in the owner's zone with the owner's program, and one that comes on the day of a move",
    subject_type=SubjectType.TOKEN,
    thresholds=StolenTokenThresholds(),
    rule=stolen_tokens,
    about_use=True,
    steps=(
        advise("Ask the owner whether the unusual addresses and clients are theirs. If not:"),
        end_token,
        follow_address,
        end_all_of_owner,
    ),
)
