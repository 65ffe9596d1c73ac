"""A token that is used from more places, or by more clients, than its history says.

What is usual for a token and for its owner is found by `history.py`. What is not is compared by network, library and
client id, never by address alone, and is a sign in one of these cases:

elsewhere
    It comes from a network that is new to the token and to its owner, and the usual use goes on beside it. Of an owner
    who is in another network all the time, as with a laptop, that is no sign unless the client is another one, too.
another client
    It is a library, or a version of it with another kind of client id, that is new to the token, at an address that
    is new to it as well, and the usual clients go on.
moved and changed
    The network is new to the token and its owner, and the library or the kind of client id to the token. Whether the
    usual use goes on does not matter: who moves a job takes its program along.
strange to its owner
    The owner is known for longer than a token's history, so even a token's first day is no excuse. After it was used
    elsewhere it comes from a network in which the owner never was, and the library or the kind of client id is new to
    the owner, too. Or it is one machine alone though the job began on several (`Thresholds.parts`), which neither move
    nor are upgraded as one: in a network that is strange to an owner who stays where it is, or with a library and a
    kind of client id that both are.

Not seen: a thief in the victim's own network with the victim's own program; one behind the same proxy or address
translation; one who takes over a token that is not used any more, from a network of its owner; one who does without a
login, on a connection that is open already. Networks that a job grows into after its first day look like a theft, if
nobody of the same owner began there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.findings import IncidentKind, Severity, SubjectType
from kafka_dt.pipeline.report import places
from kafka_dt.pipeline.report.conditions import as_text, some
from kafka_dt.pipeline.report.signs.history import new_to_owner, usual, with_history, with_owners
from kafka_dt.pipeline.report.signs.rows import SHOWN, finding

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.thresholds import Thresholds
    from kafka_dt.pipeline.report.store import Work


def stolen_tokens(usage: DataFrame, lives: DataFrame, thresholds: Thresholds, work: Work) -> DataFrame:
    """Find tokens that somebody else seems to have; one finding a token.

    Args:
        usage: as `usage.logins_by_place` makes it.
        lives: as `lives.token_lives` makes them.
        thresholds: where the lines are.
        work: keeps what is used more than once.
    """
    rows = work("history", with_history(usage, lives, thresholds))
    judged = with_owners(rows, usage).withColumn("case", _case(thresholds))
    odd = work("odd", judged.where(F.col("case").isNotNull()))
    return _findings(odd, _habits(rows, odd))


def _case(thresholds: Thresholds) -> Column:
    overlap = F.lit(thresholds.overlap)
    subnet_new, software_new, client_new = (~usual(f"{part}_since") for part in ("subnet", "software", "client"))
    strange_network = new_to_owner("subnet")
    strange_client = new_to_owner("software") | new_to_owner("client")
    known_well = F.col("owner_tokens") >= thresholds.known_tokens
    many_networks = F.col("owner_networks") > F.col("owner_tokens") * F.lit(thresholds.networks_a_token)
    roams, stays = known_well & many_networks, known_well & ~many_networks

    subnet_goes_on = F.col("usual_subnet_until") >= F.col("subnet_since") + overlap
    client_goes_on = F.col("usual_client_until") >= F.greatest("release_since", "address_since") + overlap
    other_release = ~usual("release_since") & client_new

    elsewhere = subnet_new & strange_network & subnet_goes_on & (~roams | software_new | client_new)
    another_client = ~usual("address_since") & (software_new | other_release) & client_goes_on
    moved_and_changed = subnet_new & strange_network & (software_new | client_new)

    many_machines = F.col("parts") >= thresholds.parts
    one_there = many_machines & F.col("alone_there") & stays
    strange_there = _known_before("subnet_since", thresholds) & strange_network & (strange_client | one_there)
    one_with_client = many_machines & F.col("alone_with_client") & new_to_owner("software") & new_to_owner("client")
    strange_program = _known_before("software_since", thresholds) & one_with_client
    return (
        F.when(elsewhere, F.lit("elsewhere"))
        .when(another_client, F.lit("another client"))
        .when(moved_and_changed, F.lit("moved and changed"))
        .when(strange_there | strange_program, F.lit("strange to its owner"))
    )


def _known_before(since: str, thresholds: Thresholds) -> Column:
    """Whether the owner was known for long enough when something came."""
    return F.col("owner_since") + F.lit(thresholds.history) < F.col(since)


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
            some(F.array_sort(F.collect_set("subnet"))).alias("usual_networks"),
            some(F.array_sort(F.collect_set(_client()))).alias("usual_clients"),
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
            F.min("first_seen").alias("first_seen"),
            F.max("last_seen").alias("last_seen"),
            F.sum("logins").alias("events"),
            F.array_sort(F.collect_set("case")).alias("cases"),
            some(F.array_sort(F.collect_set(F.when(shown, F.col("address"))))).alias("addresses"),
            some(F.array_sort(F.collect_set(F.when(shown, F.col("subnet"))))).alias("networks"),
            some(F.array_sort(F.collect_set(F.when(shown, _client())))).alias("clients"),
        )
        .join(habits, "token_id", "left")
    )
    goes_on = F.array_contains("cases", "elsewhere") | (F.size("cases") > 1)
    return finding(
        rows,
        kind=IncidentKind.STOLEN_TOKEN,
        severity=F.when(goes_on, F.lit(Severity.HIGH.value)).otherwise(F.lit(Severity.MEDIUM.value)),
        subject_type=SubjectType.TOKEN,
        subject=F.col("token_id"),
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
    version = F.when(F.col("software_version") != places.UNKNOWN, F.col("software_version"))
    return F.concat_ws(" ", "software", version, F.concat(F.lit("as "), F.col("client")))
