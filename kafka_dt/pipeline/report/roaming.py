"""Networks to which many people come now and then, such as a VPN.

    uses = without_roamers(uses, seen)

At least `_PEOPLE` people log in without a token in such a network, from as many addresses, though each of them logs in
more often in another one. So a cluster that runs their jobs is none. The network is a large one (/16, of IPv6 /48),
private, and no file of networks calls it foreign.

A person (`workdays.people`) who comes there is no stranger, at any hour, with a library that the person had in another
network for a day. A thief with a person's token rarely has the person's library.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import with_most
from kafka_dt.pipeline.report.workdays import is_inside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

_DAY: Final = timedelta(days=1)
"""After that a library is the person's, and not of the thief who tries the token elsewhere first."""
_PEOPLE: Final = 20
"""A thief has the tokens of a few."""


def without_roamers(uses: DataFrame, seen: Observed) -> DataFrame:
    """Leave out uses of people in such a network, with a library that they had in another network for a day.

    Args:
        uses: has `who`, `wide`, `zone_kind`, `software` and `first_seen`.
        seen: what the company does.
    """
    had = seen.clients.join(seen.people, "who").groupBy("who", "software", F.col("wide").alias("had_in"))
    libraries = had.agg((F.min("first_seen") + F.lit(_DAY)).alias("had_since"))
    of_use = ["who", "wide", "software", "first_seen"]
    quiet = (
        uses.where(is_inside())
        .select(*of_use)
        .join(_networks(seen), "wide")
        .join(libraries, ["who", "software"])
        .where((F.col("had_in") != F.col("wide")) & (F.col("had_since") <= F.col("first_seen")))
    )
    return uses.join(quiet.select(*of_use).distinct(), of_use, "left_anti")


def _networks(seen: Observed) -> DataFrame:
    """Give the large networks (`wide`) to which many people come that log in more often elsewhere."""
    logins = seen.clients.join(seen.people, "who").groupBy("who", "wide").agg(F.sum("logins").alias("in_all"))
    usual = logins.groupBy("who").agg(with_most("wide", "in_all").alias("usual"))
    themselves = seen.usage.where(F.col("token_id").isNull() & is_inside())
    guests = themselves.join(usual, "who").where(F.col("wide") != F.col("usual"))
    many = F.least(F.count_distinct("who"), F.count_distinct("address")) >= _PEOPLE
    return guests.groupBy("wide").agg(many.alias("many")).where("many").select("wide")
