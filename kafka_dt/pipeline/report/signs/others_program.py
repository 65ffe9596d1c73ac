"""A token is used by a program that is another owner's.

The id of a client often names its program. The rule looks at a kind of client id, with its library, that is new to an
owner after `program_history`. One or two others (`program_owners`) began to use it `program_history` or more before
that, used it over more than a day, and logged in with it `program_logins` times or more. The program of one owner then
has the token of another. A kind of client id that the owner had with another library is its own: the program is written
anew, or begins to name its library. So is one that is used with `program_tokens` of the owner's tokens: a colleague
recommends a tool, and it stays. What two people had, who work by day, is a tool, too, and no program of one of them.

Ids that a library gives by itself say nothing: `rdkafka`, `consumer-1`, `adminclient-1`. There a program is known by
its place and its release: a zone, a version of a library, and a kind of client id that one or two others had together.
The zone and the release have to be new to the owner. It is quiet if `program_moves` owners came to the zone on the same
day, or if the owner came late to another zone with a token before, as people do.

The severity is high if the library is new to the owner as well. Two teams that share a program, or a program that is
configured with the wrong token, look the same.

Not seen: a thief whose client has the name of the owner's program or one of its own; one without a name, in a zone or
with a release of the owner; and one that gets token after token.
"""

# The work is on one row for each principal and program.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import (
    as_text,
    distinct,
    first_and_last,
    is_given,
    some,
    union,
    with_most,
)
from kafka_dt.pipeline.report.peers import first_arrivals
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.sign import Sign, advise, end_token, follow_address, threshold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

_KNOWN: Final = ("program_since", "owner_since", "others", "others_logins")
"""What a finding says of a program."""
_DAY: Final = timedelta(days=1)
"""A load test is over by then, and its program is that of no owner."""
_PEOPLE: Final = 2
"""People who have the same program share a tool."""


@dataclass(frozen=True, slots=True)
class ProgramThresholds:
    """When a program is another owner's."""

    program_history: timedelta = threshold(timedelta(days=3), "Time in which owners show their programs")
    """Jobs run every day, and a weekend is two days long."""
    program_owners: int = threshold(2, "Others that used the program before, at most")
    """A program of more owners is a common tool."""
    program_logins: int = threshold(10, "Their logins with it, at least")
    """Fewer are an experiment."""
    program_tokens: int = threshold(3, "Tokens of the owner with which a named program becomes its own")
    """A thief has one, or two."""
    program_moves: int = threshold(3, "Owners that came to a zone on the same day move their programs together")
    """A cluster that moves or fails over takes several owners along."""


def others_programs(seen: Observed, thresholds: ProgramThresholds) -> DataFrame:
    """Find programs of other owners that use a token; one finding for each owner and program."""
    people = seen.workdays.select("who", F.lit(1).alias("person"))
    clients = seen.clients.join(people, "who", "left").fillna(0, ["person"])
    named, placed = _by_name(clients, thresholds), _by_place(clients, seen, thresholds)
    new = union(named, placed.join(named, ["who", "software", "client"], "left_anti"))
    libraries = seen.clients.groupBy("who", "software").agg(F.min("first_seen").alias("software_since"))
    is_new = F.col("software_since") >= F.col("program_since")
    found = seen.work("programs", new.join(libraries, ["who", "software"]).withColumn("new_library", is_new))
    uses = seen.usage.where(F.col("token_id").isNotNull()).join(found, ["who", "software", "client"])
    is_placed = (F.col("zone") == F.col("place")) & (F.col("software_version") == F.col("release"))
    return _findings(uses.where(F.col("place").isNull() | is_placed), thresholds)


def _by_name(clients: DataFrame, thresholds: ProgramThresholds) -> DataFrame:
    """Find kinds of client ids, with their libraries, that are new to an owner and that few others had."""
    names = clients.groupBy("who", "client").agg(F.min("first_seen").alias("client_since"))
    programs = _others(clients.where(~is_given(F.col("client"))), ("software", "client"), thresholds, brief=False)
    programs = programs.where(F.col("people_before") < _PEOPLE)
    known = clients.where("by_token").groupBy("who").agg(F.min("first_seen").alias("owner_since"))
    return (
        programs.join(known, "who")
        .where(F.col("program_since") > F.col("owner_since") + F.lit(thresholds.program_history))
        .join(names, ["who", "client"])
        .where(F.col("client_since") >= F.col("program_since"))
        .select("who", "software", "client", *_KNOWN)
    )


def _by_place(clients: DataFrame, seen: Observed, thresholds: ProgramThresholds) -> DataFrame:
    """Find places and releases that are new to an owner, where few others had such a client."""
    # A client without a name is a common tool if others tried it there, however briefly.
    programs = _others(clients, ("software", "client", "zone", "software_version"), thresholds, brief=True)
    late = F.col("since") > F.col("tokens_since") + F.lit(thresholds.program_history)
    alone = F.col("others_moved") < thresholds.program_moves - 1
    came = first_arrivals(seen.arrivals, F.col("by_token") & late & alone)
    since = F.min("first_seen").alias("release_since")
    releases = seen.clients.groupBy("who", "software", "software_version").agg(since)
    is_new = F.least("since", "release_since") >= F.col("program_since")
    return (
        programs.join(came.select("who", "zone", "since", "owner_since"), ["who", "zone"])
        .join(releases, ["who", "software", "software_version"])
        .where(is_new)
        .select(
            "who",
            "software",
            "client",
            *_KNOWN,
            F.col("zone").alias("place"),
            F.col("software_version").alias("release"),
        )
    )


def _others(clients: DataFrame, program: Sequence[str], thresholds: ProgramThresholds, *, brief: bool) -> DataFrame:
    """Tell since when each principal has a program, and keep those that one or two others had for long enough.

    brief: whether others that had it for less than a day count towards `program_owners`
    """
    programs = clients.groupBy("who", *program).agg(
        F.min("first_seen").alias("program_since"),
        F.sum("logins").alias("logins"),
        F.max("person").alias("person"),
        (F.max("last_seen") > F.min("first_seen") + F.lit(_DAY)).alias("lasts"),
    )
    history = int(thresholds.program_history.total_seconds())
    of_program = Window.partitionBy(*program).orderBy(F.unix_seconds("program_since"))
    before = of_program.rangeBetween(Window.unboundedPreceding, -history)
    # The first few names, not all of them in each row: thousands of owners may share a program.
    who, logins, person = (F.when(F.col("lasts"), F.col(name)) for name in ("who", "logins", "person"))
    numbers = range(1, thresholds.program_owners + 1)
    first = [F.nth_value(who, number, ignoreNulls=True).over(before) for number in numbers]
    habits = {
        "others": F.array_compact(F.array(*first)),
        "others_before": F.count("*" if brief else who).over(before),
        "others_logins": F.sum(logins).over(before),
        "people_before": F.coalesce(F.sum(person).over(before), F.lit(0)),
    }
    return programs.withColumns(habits).where(
        F.col("others_before").between(1, thresholds.program_owners)
        & (F.col("others_logins") >= thresholds.program_logins)
    )


def _findings(uses: DataFrame, thresholds: ProgramThresholds) -> DataFrame:
    rows = uses.groupBy(F.col("who").alias("owner"), "software", "client", "place", "release").agg(
        *first_and_last(),
        F.sum("logins").alias("events"),
        with_most("token_id", "logins").alias("token_id"),
        with_most("address", "logins", "token_id").alias("address"),
        F.count_distinct("token_id").alias("tokens"),
        F.first("others").alias("others"),
        F.first("others_logins").alias("others_logins"),
        F.max("new_library").alias("new_library"),
        F.max("owner_since").alias("owner_since"),
        F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
    )
    return finding_rows(
        rows.where(F.col("place").isNotNull() | (F.col("tokens") < thresholds.program_tokens)),
        subject="token_id",
        severity=high_if(F.col("new_library")),
        evidence=[
            ("program", F.concat_ws(" as ", F.concat_ws(" ", "software", "release"), "client")),
            ("in the zone of that program", F.col("place")),
            ("until then a program of", some(F.array_sort("others"))),
            ("their logins with it", F.col("others_logins")),
            ("logins with the owner's tokens", F.col("events")),
            ("tokens", F.col("tokens")),
            ("from addresses", some(F.col("addresses"))),
            ("the library is new to the owner", F.when(F.col("new_library"), F.lit("yes"))),
            ("the owner is known since", as_text(F.col("owner_since"))),
        ],
    )


OTHERS_PROGRAM: Final = Sign(
    kind="others_program",
    title="Used by another owner's program",
    meaning="A program that was another owner's until now uses the token.",
    finds="a token that a program of another owner uses",
    misses="a client without a name of its own, in a zone or with a release of the owner",
    subject_type=SubjectType.TOKEN,
    thresholds=ProgramThresholds(),
    rule=others_programs,
    about_use=True,
    steps=(
        advise("Ask both owners whether the program should have this token. If not:"),
        end_token,
        follow_address,
    ),
)
