"""A token is used from more places, or by more clients, than its history says.

What a token does in the time after its first login (`history`) is usual for the token. What an owner's tokens do in
their histories, and what the owner does without a token, is usual for the owner. The rule compares other uses by
network, library and client id, never by address alone. A use is a sign in one of these cases:

- *elsewhere*: it comes from a network that is new to the token and to its owner, and the usual use goes on beside it
  (`overlap`); a roll-out or a move is over by then. For an owner that is in another network all the time, such as a
  user with a laptop, the client has to be another one as well.
- *another client*: at a new address it is another library, or another release of the library with another kind of
  client id, and the usual clients go on.
- *moved and changed*: the network is new to the token and its owner, and the library or the kind of client id is new to
  the token. The usual use need not go on: a thief that moves a job takes its program along.
- *strange to its owner*: the owner is known for longer than `history`, so even the first day of a token is no excuse.
  The use comes from a network in which the owner never was, and the library or the kind of client id is new to the
  owner, too. Or it comes from one machine alone although the job began on several (`parts`), which neither move nor
  change as one: from a network that is strange to an owner that stays where it is (`known_tokens`,
  `networks_a_token`), or with a library and a kind of client id that are both new to the owner.

Not seen: a thief in the victim's own network with the victim's own program; one behind the same proxy or address
translation; one that takes over a token that is not used any more, from a network of its owner; one that needs no
login, because it has a connection that is open already. A network into which a job grows after its first day looks
like a theft if no other token of the owner began there. An owner with one token has little history, and a token with
fewer logins than `history_logins` has none.
"""

# The work is on one row for each token, address and client, not on events. Each window is over one token; what is known
# of an owner, which may have very many, is counted without one.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import (
    UNKNOWN,
    as_text,
    distinct,
    first_and_last,
    some,
)
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.sign import Sign, advise, end_all_of_owner, end_token, follow_address, threshold

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

_PARTS: Final = {
    "subnet_since": ("subnet",),
    "software_since": ("software",),
    "release_since": ("software", "software_version"),
    "client_since": ("client",),
    "address_since": ("address",),
}
"""Column -> since when a token is known for the same of these."""
_OWNED: Final = ("subnet", "software", "client")
"""Of what an owner's habits are known."""


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


def stolen_tokens(seen: Observed, thresholds: StolenTokenThresholds) -> DataFrame:
    """Find tokens that another client seems to have as well; one finding a token."""
    rows = seen.work("history", _with_history(seen.usage, seen.lives, thresholds))
    judged = _with_owners(rows, seen.usage).withColumn("case", _case(thresholds))
    odd = seen.work("odd", judged.where(F.col("case").isNotNull()))
    return _findings(odd, _habits(rows, odd))


def _case(thresholds: StolenTokenThresholds) -> Column:
    overlap = F.lit(thresholds.overlap)
    subnet_new, software_new, client_new = (~_usual(f"{part}_since") for part in ("subnet", "software", "client"))
    strange_network = _new_to_owner("subnet")
    strange_client = _new_to_owner("software") | _new_to_owner("client")
    known_well = F.col("owner_tokens") >= thresholds.known_tokens
    many_networks = F.col("owner_networks") > F.col("owner_tokens") * F.lit(thresholds.networks_a_token)
    roams, stays = known_well & many_networks, known_well & ~many_networks

    subnet_goes_on = F.col("usual_subnet_until") >= F.col("subnet_since") + overlap
    client_goes_on = F.col("usual_client_until") >= F.greatest("release_since", "address_since") + overlap
    other_release = ~_usual("release_since") & client_new

    elsewhere = subnet_new & strange_network & subnet_goes_on & (~roams | software_new | client_new)
    another_client = ~_usual("address_since") & (software_new | other_release) & client_goes_on
    moved_and_changed = subnet_new & strange_network & (software_new | client_new)

    many_machines = F.col("parts") >= thresholds.parts
    one_there = many_machines & F.col("alone_there") & stays
    strange_there = _known_before("subnet_since", thresholds) & strange_network & (strange_client | one_there)
    one_with_client = many_machines & F.col("alone_with_client") & _new_to_owner("software") & _new_to_owner("client")
    strange_program = _known_before("software_since", thresholds) & one_with_client
    return (
        F.when(elsewhere, F.lit("elsewhere"))
        .when(another_client, F.lit("another client"))
        .when(moved_and_changed, F.lit("moved and changed"))
        .when(strange_there | strange_program, F.lit("strange to its owner"))
    )


def _known_before(since: str, thresholds: StolenTokenThresholds) -> Column:
    """Whether the owner was known for long enough when something came."""
    return F.col("owner_since") + F.lit(thresholds.history) < F.col(since)


def _with_history(usage: DataFrame, lives: DataFrame, thresholds: StolenTokenThresholds) -> DataFrame:
    """Add to each use by a token what was usual for the token; leave out tokens without enough of a history.

    That is when the history ends, since when the token is known for each part of the use (network, library, release,
    client, address), until when its usual use went on, and on how many machines it began.
    """
    share = (F.col("max_time") - F.col("created_at")) * F.lit(thresholds.history_of_life)
    length = F.least(F.lit(thresholds.history), F.greatest(F.lit(thresholds.shortest_history), share))
    tokens = lives.where(F.col("logins") > thresholds.history_logins).select(
        "token_id", (F.col("first_login") + length).alias("history_end")
    )
    rows = usage.join(tokens, "token_id")
    for name, columns in _PARTS.items():
        rows = rows.withColumn(name, F.min("first_seen").over(Window.partitionBy("token_id", *columns)))
    usual_client = _usual("software_since") & _usual("client_since")
    in_subnet, of_token = Window.partitionBy("token_id", "subnet"), Window.partitionBy("token_id")
    by_client = Window.partitionBy("token_id", "software", "client")
    rows = rows.withColumns(
        {
            "alone_there": F.min("address").over(in_subnet) == F.max("address").over(in_subnet),
            "alone_with_client": F.min("address").over(by_client) == F.max("address").over(by_client),
            "history_logins": F.sum(F.when(_usual("first_seen"), F.col("logins"))).over(of_token),
            "usual_subnet_until": F.max(F.when(_usual("subnet_since"), F.col("last_seen"))).over(of_token),
            "usual_client_until": F.max(F.when(usual_client, F.col("last_seen"))).over(of_token),
            "token_since": F.min("first_seen").over(of_token),
        }
    )
    began = (F.col("first_seen") == F.col("address_since")) & (
        F.col("first_seen") <= F.col("token_since") + F.lit(thresholds.shortest_history)
    )
    return rows.withColumn("parts", F.count(F.when(began, 1)).over(of_token)).where(
        F.col("history_logins") >= thresholds.history_logins
    )


def _with_owners(rows: DataFrame, usage: DataFrame) -> DataFrame:
    """Add to each use what was usual for the owner: in other tokens' histories, and without a token.

    That is since when the owner is known for the parts of the use, and how it lives: how many tokens it has in how many
    networks.
    """
    columns = ("who", "token_id", *_OWNED, "first_seen")
    without_token = usage.where(F.col("token_id").isNull()).select(*columns)
    known = without_token.unionByName(rows.where(_usual("first_seen")).select(*columns))
    owners = known.groupBy("who").agg(
        F.min("first_seen").alias("owner_since"),
        F.count_distinct("token_id").alias("owner_tokens"),
        F.count_distinct("subnet").alias("owner_networks"),
    )
    for name in _OWNED:
        since = F.min("first_seen").alias(f"owner_{name}_since")
        rows = rows.join(known.groupBy("who", name).agg(since), ["who", name], "left")
    return rows.join(owners, "who", "left")


def _usual(since: str) -> Column:
    """Whether something began within the token's history."""
    return F.col(since) <= F.col("history_end")


def _new_to_owner(name: str) -> Column:
    """Whether something came with the token that its owner was not known for, and not with its first login."""
    known, since = F.col(f"owner_{name}_since"), F.col(f"{name}_since")
    return (known.isNull() | (known >= since)) & (since > F.col("token_since"))


def _habits(rows: DataFrame, odd: DataFrame) -> DataFrame:
    """Tell the usual places of each token of which anything is unusual."""
    place = ["token_id", "address", "software", "software_version", "client"]
    habits = rows.join(odd.select("token_id").distinct(), "token_id", "left_semi")
    habits = habits.join(odd.select(*place), place, "left_anti")
    newest = Window.partitionBy("token_id").orderBy(F.desc("logins"), "address", "software", "client")
    return (
        habits.withColumn("rank", F.row_number().over(newest))
        .where(F.col("rank") <= SHOWN)
        .groupBy("token_id")
        .agg(
            some(distinct("subnet")).alias("usual_networks"),
            some(distinct(_client())).alias("usual_clients"),
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
            some(distinct(F.when(shown, F.col("address")))).alias("addresses"),
            some(distinct(F.when(shown, F.col("subnet")))).alias("networks"),
            some(distinct(F.when(shown, _client()))).alias("clients"),
        )
        .join(habits, "token_id", "left")
    )
    goes_on = F.array_contains("cases", "elsewhere") | (F.size("cases") > 1)
    return finding_rows(
        rows,
        subject="token_id",
        severity=high_if(goes_on),
        evidence=[
            ("what is unusual", F.array_join("cases", ", ")),
            ("unusual addresses", F.col("addresses")),
            ("in networks", F.col("networks")),
            ("unusual clients", F.col("clients")),
            ("usual networks", F.col("usual_networks")),
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
    subject_type=SubjectType.TOKEN,
    thresholds=StolenTokenThresholds(),
    rule=stolen_tokens,
    steps=(
        advise("Ask the owner whether the unusual addresses and clients are theirs. If not:"),
        end_token,
        follow_address,
        end_all_of_owner,
    ),
)
