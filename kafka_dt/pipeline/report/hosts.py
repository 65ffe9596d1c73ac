"""Hosts that several people share: a bastion, an edge node, a server for terminals.

    uses = with_shared(uses, usage, "address")         # with `on_shared`

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

_OTHERS: Final = 3
"""A pair of principals at an address may be a service and a thief."""


def _shared_hosts(usage: DataFrame) -> DataFrame:
    """Give the `address` and the library (`software`) of shared hosts, and since when they are known (`shared_since`).

    Args:
        usage: where principals logged in, as `lives.logins_by_place` makes it.
    """
    own = usage.where(F.col("token_id").isNull()).groupBy("address", "software", "who")
    there = own.agg(F.min("first_seen").alias("came"), F.max("last_seen").alias("until"))
    # A thief with the passwords of several principals tries them within a day.
    guests = there.where(F.to_date("until") > F.to_date("came"))
    hosts = guests.groupBy("address", "software").agg((nth("came", _OTHERS) + F.lit(SETTLED)).alias("shared_since"))
    return hosts.where(F.col("shared_since").isNotNull())


def with_shared(uses: DataFrame, usage: DataFrame, *by: str) -> DataFrame:
    """Add whether each use is on a shared host that was known by its `first_seen` (`on_shared`).

    Args:
        uses: has `address`, `software` and `first_seen`.
        usage: where principals logged in, as `lives.logins_by_place` makes it.
        by: what a use has in common with the host: `address`, or `address` and `software`.
    """
    there = usage.join(uses.select("address").distinct(), "address", "left_semi")
    hosts = _shared_hosts(there).groupBy(*by).agg(F.min("shared_since").alias("shared_since"))
    on_shared = F.coalesce(F.col("shared_since") < F.col("first_seen"), F.lit(False))
    return uses.join(hosts, [*by], "left").withColumn("on_shared", on_shared).drop("shared_since")
