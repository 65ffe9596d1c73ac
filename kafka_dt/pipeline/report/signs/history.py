"""What is usual: of a token, what it did in the time after its first login; of an owner, what its tokens did in theirs.

    rows = work("history", with_history(usage, lives, thresholds))
    with_owners(rows, usage)

`with_history` adds to each use by a token when the token's history ends, since when the token is known for each part of
the use (network, library, release, client, address), until when its usual use went on, and on how many machines it
began. `with_owners` adds since when its owner is known for them, and how it lives: how many tokens it has in how many
networks.

The work is on one row for each token, address and client, not on events. Each window is over one token; what is known
of an owner, who may have very many, is counted without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.thresholds import Thresholds

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


def with_history(usage: DataFrame, lives: DataFrame, thresholds: Thresholds) -> DataFrame:
    """Say of each use by a token what was usual before; tokens without enough of a history are left out.

    Args:
        usage: as `usage.logins_by_place` makes it.
        lives: as `lives.token_lives` makes them.
        thresholds: how long a history is.
    """
    share = (F.col("max_time") - F.col("created_at")) * F.lit(thresholds.history_of_life)
    length = F.least(F.lit(thresholds.history), F.greatest(F.lit(thresholds.shortest_history), share))
    tokens = lives.where(F.col("logins") > thresholds.history_logins).select(
        "token_id", (F.col("first_login") + length).alias("history_end")
    )
    rows = usage.join(tokens, "token_id")
    for name, columns in _PARTS.items():
        rows = rows.withColumn(name, F.min("first_seen").over(Window.partitionBy("token_id", *columns)))
    usual_client = usual("software_since") & usual("client_since")
    in_subnet, of_token = Window.partitionBy("token_id", "subnet"), Window.partitionBy("token_id")
    by_client = Window.partitionBy("token_id", "software", "client")
    rows = rows.withColumns(
        {
            "alone_there": F.min("address").over(in_subnet) == F.max("address").over(in_subnet),
            "alone_with_client": F.min("address").over(by_client) == F.max("address").over(by_client),
            "history_logins": F.sum(F.when(usual("first_seen"), F.col("logins"))).over(of_token),
            "usual_subnet_until": F.max(F.when(usual("subnet_since"), F.col("last_seen"))).over(of_token),
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


def with_owners(rows: DataFrame, usage: DataFrame) -> DataFrame:
    """Say of each use what was usual for the owner: in other tokens' histories, and without a token.

    Args:
        rows: as `with_history` makes them.
        usage: as `usage.logins_by_place` makes it.
    """
    columns = ("who", "token_id", *_OWNED, "first_seen")
    without_token = usage.where(F.col("token_id").isNull()).select(*columns)
    known = without_token.unionByName(rows.where(usual("first_seen")).select(*columns))
    owners = known.groupBy("who").agg(
        F.min("first_seen").alias("owner_since"),
        F.count_distinct("token_id").alias("owner_tokens"),
        F.count_distinct("subnet").alias("owner_networks"),
    )
    for name in _OWNED:
        since = F.min("first_seen").alias(f"owner_{name}_since")
        rows = rows.join(known.groupBy("who", name).agg(since), ["who", name], "left")
    return rows.join(owners, "who", "left")


def usual(since: str) -> Column:
    """Whether something began within the token's history."""
    return F.col(since) <= F.col("history_end")


def new_to_owner(name: str) -> Column:
    """Whether something came with the token that its owner was not known for, and not with its first login."""
    known, since = F.col(f"owner_{name}_since"), F.col(f"{name}_since")
    return (known.isNull() | (known >= since)) & (since > F.col("token_since"))
