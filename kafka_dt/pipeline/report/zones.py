"""Zones: which addresses are the same place, from a file of networks or learned from the whole company.

    zones = Zones.learned(places, load_networks(path), store.work)
    usage = zones.of(places)            # with `zone` and `zone_kind`

A zone is what a file of networks calls one. All other addresses are in a zone that is learned: a /24 of IPv4 or a /64
of IPv6, or the largest of these around it:

- the /20 or /56, or the /16 or /48, if most of its principals are in several of its subnets (`_MOST`). So the pods of a
  cluster, which start in any part of its network, are in one zone; the offices of a company, where each person has a
  floor, are not.
- the /12 or /44, if a network above is in it: this and the other parts of it, as far as most of the principals of such
  a part are in several of them. A cluster may be larger than a /16, and another one may be beside it.

`wide` gives the /16 or /48 of an address, whatever the zones are: an address whose wide network no other principal uses
is no place of the company.

Limits: two clusters that share a /16 are one zone, unless a file says otherwise.

Source: RFC 4291, section 2.5.4 (a site has a /48); RFC 1918
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import (
    address_key,
    middle_network,
    subnet,
    wide_network,
    widest_network,
)
from kafka_dt.pipeline.report.networks import ZoneKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame, GroupedData

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
    larger: DataFrame
    """`network` and `zone`: the subnets, middle and large networks that are in a larger zone, or are one."""

    @classmethod
    def learned(cls, places: DataFrame, networks: Sequence[Network], work: WriteAndRead) -> Zones:
        """Learn the zones from all successful logins.

        Args:
            places: `who`, `address` and `subnet` of each, as `lives.logins_by_place` makes them.
            networks: those that a file names, the smallest first.
            work: writes what is learned.
        """
        address = F.col("address")
        around = {"middle": middle_network(address), "wide": wide_network(address), "widest": widest_network(address)}
        principals = work("principals", places.withColumns(around).select("who", "subnet", *around).distinct())
        spread = work("spread", _spread(principals, "middle").unionByName(_spread(principals, "wide")))
        larger = _joined(principals, spread)
        zones = spread.join(larger, "network", "left_anti").withColumn("zone", F.col("network")).unionByName(larger)
        return cls(networks, work("zones", zones))

    def of(self, frame: DataFrame) -> DataFrame:
        """Add `wide`, `zone` and `zone_kind` of the column `address`."""
        address = F.col("address")
        around = {"small": subnet(address), "middle": middle_network(address), "wide": wide_network(address)}
        zoned = frame.withColumns({**around, "key": address_key(address)})
        for network in around:
            zones = self.larger.select(F.col("network").alias(network), F.col("zone").alias(f"zone_of_{network}"))
            zoned = zoned.join(F.broadcast(zones), network, "left")
        learned = F.coalesce("zone_of_wide", "zone_of_middle", "zone_of_small", "small")
        return zoned.withColumns(
            {
                "zone": F.coalesce(self._named(lambda each: each.name), learned),
                "zone_kind": F.coalesce(self._named(lambda each: each.kind.value), F.lit(ZoneKind.LEARNED.value)),
            }
        ).drop("small", "middle", *(f"zone_of_{network}" for network in around), "key")

    def _named(self, said: Callable[[Network], str]) -> Column:
        """Give what the file says of the smallest network around an address; null if there is none."""
        found = F.when(F.lit(False), F.lit(None).cast("string"))
        for each in self.networks:
            found = found.when(F.col("key").between(f"{each.first:032x}", f"{each.last:032x}"), F.lit(said(each)))
        return found


def _spread(principals: DataFrame, network: str) -> DataFrame:
    """Give the networks most of whose principals are in several of their subnets."""
    each = principals.groupBy(F.col(network).alias("network"), "who").agg(
        (F.count_distinct("subnet") > 1).alias("moves")
    )
    return _most_move(each.groupBy("network")).select("network")


def _joined(principals: DataFrame, spread: DataFrame) -> DataFrame:
    """Give the networks that belong to the zone around them (`zone`)."""
    parts = principals.withColumnRenamed("widest", "zone")
    for name in ("wide", "middle"):
        one = spread.select(F.col("network").alias(name), F.col("network").alias(f"spread_{name}"))
        parts = parts.join(F.broadcast(one), name, "left")
    is_spread = F.coalesce("spread_wide", "spread_middle").isNotNull()
    network = F.coalesce("spread_wide", "spread_middle", "subnet").alias("network")
    each = parts.select("zone", network, "who", is_spread.alias("is_spread")).distinct()
    several = each.groupBy("zone", "who").agg((F.count("*") > 1).alias("moves"))
    found = _most_move(each.join(several, ["zone", "who"]).groupBy("zone", "network", "is_spread"))
    around = found.groupBy("zone").agg(F.count("*").alias("parts"), F.max("is_spread").alias("any_spread"))
    return found.join(around.where(F.col("any_spread") & (F.col("parts") > 1)), "zone").select("network", "zone")


def _most_move(networks: GroupedData) -> DataFrame:
    found = networks.agg(F.count("*").alias("principals"), F.count(F.when(F.col("moves"), 1)).alias("moving"))
    return found.where((F.col("principals") >= _FEWEST) & (F.col("moving") >= F.col("principals") * _MOST))
