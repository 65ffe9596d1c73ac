"""Zones: which addresses are the same place, from a file of networks or learned from the whole company.

    zones = Zones.learned(places, load_networks(path), store.work)
    usage = zones.of(places)            # with `zone` and `zone_kind`

A zone is what a file of networks calls one. All other addresses are in a zone that is learned: a /24 of IPv4 or a /64
of IPv6, or the /16 or /48 around it, if most of its principals are in several of its parts (`_MOST`). So the pods of a
cluster, which start in any part of its network, are in one zone; the offices of a company, where each person has a
floor, are not.

`wide` gives the /16 or /48 of an address, whatever the zones are: an address whose wide network no other principal uses
is no place of the company.

Limits: two clusters that share a /16 are one zone, unless a file says otherwise.

Source: RFC 4291, section 2.5.4 (a site has a /48); RFC 1918
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import address_key, subnet, wide_network
from kafka_dt.pipeline.report.networks import ZoneKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.networks import Network
    from kafka_dt.pipeline.report.store import WriteAndRead

_FEWEST: Final = 3
"""Principals that show how a network is used."""
_MOST: Final = 0.5
"""The share of its principals that are in several parts of a network that is one zone."""


@dataclass(frozen=True, slots=True)
class Zones:
    """The zones of a company."""

    networks: Sequence[Network]
    """Those that a file names, the smallest first."""
    spread: DataFrame
    """`wide`: the large networks that are one zone each."""

    @classmethod
    def learned(cls, places: DataFrame, networks: Sequence[Network], work: WriteAndRead) -> Zones:
        """Learn the zones from all successful logins.

        Args:
            places: `who`, `address` and `subnet` of each, as `lives.logins_by_place` makes them.
            networks: those that a file names, the smallest first.
            work: writes what is learned.
        """
        principals = places.groupBy(wide_network(F.col("address")).alias("wide"), "who").agg(
            F.count_distinct("subnet").alias("parts")
        )
        spread = principals.groupBy("wide").agg(
            F.count("*").alias("principals"), F.count(F.when(F.col("parts") > 1, 1)).alias("moving")
        )
        is_one = (F.col("principals") >= _FEWEST) & (F.col("moving") >= F.col("principals") * _MOST)
        return cls(networks, work("spread", spread.where(is_one).select("wide")))

    def of(self, frame: DataFrame) -> DataFrame:
        """Add `wide`, `zone` and `zone_kind` of the column `address`."""
        address = F.col("address")
        is_one = self.spread.withColumn("is_one", F.lit(True))
        learned = F.when(F.col("is_one"), F.col("wide")).otherwise(subnet(address))
        return (
            frame.withColumns({"wide": wide_network(address), "key": address_key(address)})
            .join(F.broadcast(is_one), "wide", "left")
            .withColumns(
                {
                    "zone": F.coalesce(self._named(lambda each: each.name), learned),
                    "zone_kind": F.coalesce(self._named(lambda each: each.kind.value), F.lit(ZoneKind.LEARNED.value)),
                }
            )
            .drop("is_one", "key")
        )

    def _named(self, said: Callable[[Network], str]) -> Column:
        """Give what the file says of the smallest network around an address; null if there is none."""
        found = F.when(F.lit(False), F.lit(None).cast("string"))
        for each in self.networks:
            found = found.when(F.col("key").between(f"{each.first:032x}", f"{each.last:032x}"), F.lit(said(each)))
        return found
