"""Hosts that several people share: a bastion, an edge node, a server for terminals.

    uses = with_shared(uses, habits, "address")         # with `on_shared`

On such a host `_OTHERS` principals log in without a token, with the same library, each on several days; a day after the
last of them came, the host is known. Machines of a cluster are shared too, but jobs come there with tokens.

Limits: the address of a NAT or of a proxy is a shared host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import nth
from kafka_dt.pipeline.report.peers import SETTLED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.habits import Habits

_OTHERS: Final = 3
"""A pair of principals at an address may be a service and a thief."""


def with_shared(uses: DataFrame, habits: Habits, *by: str, people: DataFrame | None = None) -> DataFrame:
    """Add whether each use is on a shared host that was known by its `first_seen` (`on_shared`).

    Args:
        uses: has `address`, `software` and `first_seen`.
        habits: those of the company.
        by: what a use has in common with the host: `address`, or `address` and `software`.
        people: if they are given, only these principals (`who`) count.
    """
    # A thief with the passwords of several principals tries them within a day.
    guests = habits.own_logins.where(F.to_date("own_until") > F.to_date("own_came"))
    guests = guests if people is None else guests.join(people.select("who"), "who", "left_semi")
    known_since = (nth("own_came", _OTHERS) + F.lit(SETTLED)).alias("shared_since")
    hosts = guests.groupBy("address", "software").agg(known_since)
    hosts = hosts.groupBy(*by).agg(F.min("shared_since").alias("shared_since"))
    on_shared = F.coalesce(F.col("shared_since") < F.col("first_seen"), F.lit(False))
    return uses.join(hosts, [*by], "left").withColumn("on_shared", on_shared).drop("shared_since")
