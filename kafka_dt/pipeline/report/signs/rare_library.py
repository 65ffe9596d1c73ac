"""A token is used with a library that is rare for its owner, while the usual one goes on.

An owner's programs are written with one library or two. Another one that comes after `library_history` and ends before
the usual one does is a tool in other hands, if it stays below `rare_share` of the usual one's logins; or below
`brief_share`, if it comes from one machine and for no longer than `brief`. A client that does not name its library
(`unknown`) counts if it is as brief, and if its kind of client id is new to the owner, too: the owner's own client may
not name it once. A roll-out is quiet, because there the new library takes over. So is an owner that used more than
`usual_libraries` before, such as a team with notebooks. So are tests that run with several libraries: each run has a
token of its own, made within an hour (`made_within`) before its first use, and is in a zone and has the kind of client
id of the usual library. So are people who come to a network as a group, each with a notebook, and people in a workshop,
who try libraries on one day, each on a machine of their own. So is a tool that twelve people use with tokens of their
own in private networks, in a private zone in which the person's tokens have been used for a day. What many of the
company do is quiet, too, and an owner that tries its own token, and a colleague at work who looks into a job for an
hour (`colleagues`). It also looks at later logins: whether the usual library goes on.

The severity is high when the library comes only from zones in which the owner's usual library never was, and when no
others had just logged in at the address as themselves. The finding names these. It is medium if the owner is a person
who works by day, and the library comes by day from a private network or in the first week of its owner. In the hours of
the company this is quiet in a zone of the usual library, if no other was there: people at work try what they hear of.

An engineer who tries a token by hand at night, or for longer, looks like a thief.

Not seen: a thief with the owner's library; one with a person's token by day, in a zone of that person; one with a
nameless library that stays, or that has the owner's client id; a new version of the usual library; and owners that are
known for less than `library_history`.
"""

# The work is on one row for each token, address and client; there are few libraries for each owner.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.colleagues import colleagues, with_colleagues, without_engineers
from kafka_dt.pipeline.report.expressions import UNKNOWN, as_text, distinct, first_and_last, some, with_most
from kafka_dt.pipeline.report.habits import without_habits, without_tools_of_people, without_workshops
from kafka_dt.pipeline.report.peers import in_groups
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.sign import Sign, advise, end_token, follow_address, threshold
from kafka_dt.pipeline.report.workdays import with_at_work, with_first_week, with_in_office

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed


_WORK: Final = timedelta(hours=10)
"""A day of work, at most."""


@dataclass(frozen=True, slots=True)
class LibraryThresholds:
    """When a library is not the owner's."""

    library_history: timedelta = threshold(timedelta(days=3), "Time in which an owner shows its libraries")
    """Jobs run every day, and a weekend is two days long."""
    rare_share: float = threshold(0.05, "Logins with a library for each one with the usual library, at most")
    """The first pods of a roll-out are more."""
    brief_share: float = threshold(0.25, "... of a library on one machine")
    """A tool that reads much in a short time."""
    brief: timedelta = threshold(timedelta(days=1), "... and for no longer than")
    """A new program stays."""
    made_within: timedelta = threshold(timedelta(hours=1), "First use of a token that was made for it, within")
    """Tests make a token when they begin."""
    usual_libraries: int = threshold(2, "Libraries that an owner had before, at most")
    """An owner that uses more is shared by people, or by programs of several teams."""


def rare_libraries(seen: Observed, thresholds: LibraryThresholds) -> DataFrame:
    """Find libraries that are rare for an owner; one finding for each of them."""
    by_token = seen.usage.where(F.col("token_id").isNotNull())
    of_client = Window.partitionBy("who", "client")
    libraries = (
        by_token.withColumn("client_since", F.min("first_seen").over(of_client))
        .groupBy("who", "software")
        .agg(
            *first_and_last(),
            F.sum("logins").alias("logins"),
            F.count_distinct("address").alias("addresses"),
            F.min("client_since").alias("client_since"),
        )
    )
    owners = libraries.groupBy("who").agg(
        F.min("first_seen").alias("owner_since"),
        with_most("software", "logins").alias("usual"),
        F.max("logins").alias("usual_logins"),
        with_most("last_seen", "logins", "software").alias("usual_until"),
    )
    in_order = Window.partitionBy("who").orderBy("first_seen", "software")
    is_brief = (F.col("addresses") == 1) & (F.col("last_seen") <= F.col("first_seen") + F.lit(thresholds.brief))
    share = F.when(is_brief, F.lit(thresholds.brief_share)).otherwise(F.lit(thresholds.rare_share))
    is_rare = (
        (F.col("software") != F.col("usual"))
        & ((F.col("software") != UNKNOWN) | (is_brief & (F.col("client_since") >= F.col("first_seen"))))
        & (F.col("first_seen") > F.col("owner_since") + F.lit(thresholds.library_history))
        & (F.col("logins") <= F.col("usual_logins") * share)
        & (F.col("last_seen") < F.col("usual_until"))
        & (F.col("earlier") <= thresholds.usual_libraries)
    )
    rare = libraries.withColumn("earlier", F.row_number().over(in_order) - 1).join(owners, "who").where(is_rare)
    about = seen.work("rare", rare.select("who", "software", "usual", "usual_logins", "usual_until"))
    usual = about.select("who", F.col("usual").alias("software")).distinct()
    usual_uses = by_token.join(F.broadcast(usual), ["who", "software"])
    uses = by_token.join(F.broadcast(about), ["who", "software"])
    for name in ("zone", "client"):
        since = usual_uses.groupBy("who", name).agg(F.min("first_seen").alias("since"))
        there = F.coalesce(F.col("since") <= F.col("first_seen"), F.lit(False))
        uses = uses.join(since, ["who", name], "left").withColumn(f"usual_{name}", there).drop("since")
    people = in_groups(seen.arrivals)
    strange = seen.work("strange", uses.join(people, ["who", "zone"], "left_anti"))
    unusual = without_tools_of_people(without_habits(strange, seen.habits), seen.habits)
    alone = seen.work("alone", without_workshops(unusual, seen.habits))
    odd = seen.work("odd", _without_variants(alone, by_token, seen.lives, thresholds))
    tried = seen.work("tried", with_colleagues(odd, seen.habits))
    uses = with_at_work(without_engineers(tried, seen), seen.workdays)
    uses = with_first_week(uses, seen.clients, seen.workdays)
    return _findings(with_in_office(uses, "first_seen", seen.workdays))


def _without_variants(
    uses: DataFrame, by_token: DataFrame, lives: DataFrame, thresholds: LibraryThresholds
) -> DataFrame:
    """Leave out uses of tokens that were made for them, in the zone and with the client id of the usual library."""
    tokens = F.broadcast(uses.select("token_id").distinct())
    libraries = (
        by_token.join(tokens, "token_id").groupBy("token_id").agg(F.count_distinct("software").alias("libraries"))
    )
    is_fresh = F.col("created_known") & (F.col("first_login") <= F.col("created_at") + F.lit(thresholds.made_within))
    made = lives.join(tokens, "token_id").where(is_fresh).join(libraries.where(F.col("libraries") == 1), "token_id")
    made = made.select("token_id", F.lit(True).alias("is_made"))
    is_variant = F.col("usual_zone") & F.col("usual_client") & F.col("is_made").isNotNull()
    return uses.join(made, "token_id", "left").where(~is_variant)


def _findings(uses: DataFrame) -> DataFrame:
    in_hours = F.col("last_seen") <= F.col("first_seen") + F.lit(_WORK)
    rows = uses.groupBy(F.col("who").alias("owner"), "software", "usual", "usual_logins", "usual_until").agg(
        *first_and_last(),
        F.sum("logins").alias("events"),
        with_most("token_id", "logins").alias("token_id"),
        with_most("address", "logins", "token_id").alias("address"),
        F.count_distinct("token_id").alias("tokens"),
        colleagues(),
        F.max("usual_zone").alias("there"),
        F.bool_and(F.col("at_work") | F.col("first_week")).alias("at_work"),
        F.bool_and(F.col("at_work") & F.col("in_office") & F.col("usual_zone") & in_hours).alias("in_office"),
        F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
        F.slice(distinct("client"), 1, SHOWN).alias("clients"),
    )
    return finding_rows(
        rows.where(~F.col("in_office") | F.col("colleagues").isNotNull()),
        subject="token_id",
        severity=high_if(~F.col("there") & ~F.col("at_work") & F.col("colleagues").isNull()),
        evidence=[
            ("unusual library", F.col("software")),
            ("logins with it", F.col("events")),
            ("tokens", F.col("tokens")),
            ("from addresses", some(F.col("addresses"))),
            ("logged in there as themselves", some(F.col("colleagues"))),
            ("as clients", some(F.col("clients"))),
            ("the usual library", F.col("usual")),
            ("logins with that", F.col("usual_logins")),
            ("last with that", as_text(F.col("usual_until"))),
        ],
    )


RARE_LIBRARY: Final = Sign(
    kind="rare_library",
    title="Used with a library that is rare for the owner",
    meaning="A client uses the token with a library that the owner's programs do not use, and those go on.",
    finds="a tool that uses the token while the owner's library goes on",
    misses="the owner's library, and clients that stay and do not name theirs",
    subject_type=SubjectType.TOKEN,
    thresholds=LibraryThresholds(),
    rule=rare_libraries,
    about_use=True,
    steps=(
        advise("Ask the owner whether an engineer tried the token by hand, or wrote a new program. If not:"),
        end_token,
        follow_address,
    ),
)
