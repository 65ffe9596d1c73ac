"""Hosts that several people share: a bastion, an edge node, a server for terminals.

    hosts = shared_hosts(usage)
    quiet = logins.join(hosts, ["address", "software"]).where(F.col("first_seen") > F.col("shared_since"))

On such a host `_OTHERS` principals log in without a token, with the same library, for a day before another one does.
Machines of a cluster are shared too, but jobs come there with tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.peers import SETTLED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OTHERS: Final = 3
"""A pair of principals at an address may be a service and a thief."""


def shared_hosts(usage: DataFrame) -> DataFrame:
    """Give the `address` and the library (`software`) of shared hosts, and since when they are known (`shared_since`).

    Args:
        usage: where principals logged in, as `lives.logins_by_place` makes it.
    """
    own = usage.where(F.col("token_id").isNull()).groupBy("address", "software", "who")
    came = own.agg(F.min("first_seen").alias("came")).groupBy("address", "software")
    third = F.get(F.array_sort(F.collect_list("came")), F.lit(_OTHERS - 1)) + F.lit(SETTLED)
    return came.agg(third.alias("shared_since")).where(F.col("shared_since").isNotNull())
