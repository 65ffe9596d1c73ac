"""A token that is used from more places, or by more clients, than its history says.

What a token did in the time after its first login (`Thresholds.history`) is usual for it, and what its owner did with
other tokens in theirs, or without a token, is usual for the owner. Whatever comes later is compared by network,
library and client id, never by address alone, and is a sign in one of these cases:

elsewhere
    It comes from a network that is new to the token and to its owner, and the usual use goes on beside it.
another client
    It is a library, or a version of it with another kind of client id, that is new to the token, at an address that
    is new to it as well, and the usual clients go on.
moved and changed
    Network and library are both new, and the network is new to the owner. Whether the usual use goes on does not
    matter: who moves a job takes its program along.
stranger on the first day
    The same within the token's history, where it cannot be usual because the owner is known for longer: a network and
    a library that the owner never had, beside others that it had.

Not seen: a thief in the victim's own network with the victim's own program; one behind the same proxy or address
translation; one who takes over a token that is not used any more, from a network of its owner; one who does without a
login, on a connection that is open already. Networks that a job grows into after its first day look like a theft, if
nobody of the same owner began there.

The work is on one row for each token, address and client, not on events, and each window is over one token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.findings import IncidentKind, Severity, SubjectType
from kafka_dt.pipeline.report.conditions import as_text, some
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
    rows = work("history", _with_history(usage, lives, thresholds))
    odd = work("odd", _judged(rows, usage, thresholds).where(F.col("case").isNotNull()))
    return _findings(odd, _habits(rows, odd))


def _with_history(usage: DataFrame, lives: DataFrame, thresholds: Thresholds) -> DataFrame:
    """Add to each use by a token when its history ends, since when each part of it is known, and until when usual."""
    share = (F.col("max_time") - F.col("created_at")) * F.lit(thresholds.history_of_life)
    length = F.least(F.lit(thresholds.history), F.greatest(F.lit(thresholds.shortest_history), share))
    tokens = lives.where(F.col("logins") > thresholds.history_logins).select(
        "token_id", (F.col("first_login") + length).alias("history_end")
    )
    since = {
        "subnet_since": ("subnet",),
        "software_since": ("software",),
        "release_since": ("software", "software_version"),
        "client_since": ("client",),
        "address_since": ("address",),
    }
    rows = usage.join(tokens, "token_id")
    for name, columns in since.items():
        rows = rows.withColumn(name, F.min("first_seen").over(Window.partitionBy("token_id", *columns)))
    usual = {
        "history_logins": F.sum(F.when(_usual("first_seen"), F.col("logins"))),
        "usual_subnet_until": F.max(F.when(_usual("subnet_since"), F.col("last_seen"))),
        "usual_client_until": F.max(F.when(_usual("software_since") & _usual("client_since"), F.col("last_seen"))),
        "token_since": F.min("first_seen"),
    }
    token = Window.partitionBy("token_id")
    rows = rows.withColumns({name: value.over(token) for name, value in usual.items()})
    return rows.where(F.col("history_logins") >= thresholds.history_logins)


def _judged(rows: DataFrame, usage: DataFrame, thresholds: Thresholds) -> DataFrame:
    known = _known_of_owners(rows, usage)
    for name in ("subnet", "software"):
        since = F.min("since").alias(f"owner_{name}_since")
        rows = rows.join(known.groupBy("who", name).agg(since), ["who", name], "left")
    owners = known.groupBy("who").agg(F.min("since").alias("owner_since"))
    return rows.join(owners, "who", "left").withColumn("case", _case(thresholds))


def _known_of_owners(rows: DataFrame, usage: DataFrame) -> DataFrame:
    """Say since when an owner is known in each network with each library: in its tokens' histories, or without one."""
    columns = ("who", "subnet", "software", "first_seen")
    without_token = usage.where(F.col("token_id").isNull()).select(*columns)
    in_history = rows.where(_usual("first_seen")).select(*columns)
    known = without_token.unionByName(in_history)
    return known.groupBy("who", "subnet", "software").agg(F.min("first_seen").alias("since"))


def _case(thresholds: Thresholds) -> Column:
    overlap = F.lit(thresholds.overlap)
    subnet_new, software_new = ~_usual("subnet_since"), ~_usual("software_since")
    owner_was_not_there = _unknown_before("owner_subnet_since", "subnet_since")
    subnet_goes_on = F.col("usual_subnet_until") >= F.col("subnet_since") + overlap
    client_goes_on = F.col("usual_client_until") >= F.greatest("release_since", "address_since") + overlap
    other_release = ~_usual("release_since") & ~_usual("client_since")
    at_new_address = ~_usual("address_since")
    elsewhere = subnet_new & owner_was_not_there & subnet_goes_on
    moved_and_changed = subnet_new & owner_was_not_there & software_new
    another_client = at_new_address & (software_new | other_release) & client_goes_on
    stranger = (
        _usual("subnet_since")
        & owner_was_not_there
        & _unknown_before("owner_software_since", "software_since")
        & (F.col("subnet_since") > F.col("token_since"))
        & (F.col("owner_since") + F.lit(thresholds.history) < F.col("subnet_since"))
    )
    return (
        F.when(elsewhere, F.lit("elsewhere"))
        .when(another_client, F.lit("another client"))
        .when(moved_and_changed, F.lit("moved and changed"))
        .when(stranger, F.lit("stranger on the first day"))
    )


def _usual(since: str) -> Column:
    return F.col(since) <= F.col("history_end")


def _unknown_before(owner_since: str, since: str) -> Column:
    """Whether the owner was not known for something before the token brought it."""
    return F.col(owner_since).isNull() | (F.col(owner_since) >= F.col(since))


def _habits(rows: DataFrame, odd: DataFrame) -> DataFrame:
    """Tell the usual places of each token of which anything is unusual."""
    place = ["token_id", "address", "software", "software_version", "client"]
    usual = rows.join(odd.select("token_id").distinct(), "token_id", "left_semi")
    usual = usual.join(odd.select(*place), place, "left_anti")
    newest = Window.partitionBy("token_id").orderBy(F.desc("logins"), "address", "software", "client")
    return (
        usual.withColumn("rank", F.row_number().over(newest))
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
    return F.concat_ws(" ", "software", "software_version", F.concat(F.lit("as "), F.col("client")))
