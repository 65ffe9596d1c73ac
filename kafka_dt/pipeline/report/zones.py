"""Zones: which addresses are the same place, from a file of networks or learned from the whole company.

    zones = Zones.learned(places, deeds, load_networks(path), store.work)
    usage = zones.of(places)            # with `subnet`, `wide`, `zone` and `zone_kind`

A zone is what a file of networks calls one. All other addresses are in a zone that is learned: a /24 of IPv4 or a /64
of IPv6, or the largest of these around it:

- the /20 or /56, or the /16 or /48, if most of its principals are in several of its subnets (`_MOST`). So the pods of a
  cluster, which start in any part of its network, are in one zone; the offices of a company, where each person has a
  floor, are not.
- the /12 or /44, if a network above is in it: this and the other parts of it, as far as most of the principals of such
  a part are in several of them. A cluster may be larger than a /16, and another one may be beside it.

`wide` gives the /16 or /48 of an address: an address whose wide network no other principal uses is no place of the
company. A file may name a public network as an office, a VPN or a cluster: then `wide` gives its zone, and rules about
the Internet do not hold there.

Limits: two clusters that share a /16 are one zone, unless a file says otherwise.

Source: RFC 4291, section 2.5.4 (a site has a /48); RFC 1918
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import (
    address_key,
    is_public,
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

_NETWORKS: Final = ("subnet", "middle", "wide")
"""Networks around an address that may be in a zone, or be one, the smallest first."""
_FEWEST: Final = 3
"""Principals that show how a network is used."""
_MOST: Final = 0.5
"""The share of its principals that are in several parts of a network that is one zone."""


@dataclass(frozen=True, slots=True)
class Zones:
    """The zones of a company."""

    addresses: DataFrame
    """One row for each address in the events: `address`, `subnet`, `wide`, `zone`, `zone_kind`."""

    @classmethod
    def learned(cls, places: DataFrame, deeds: DataFrame, networks: Sequence[Network], work: WriteAndRead) -> Zones:
        """Learn the zones from all successful logins.

        Args:
            places: `who` and `address` of each, as `lives.logins_by_place` makes them.
            deeds: `address` of the other events of clients, as `deeds.deeds_by_day` makes them; logins may be in both.
            networks: those that a file names, the smallest first.
            work: writes what is learned.
        """
        # Once for each address: to tell the networks of one takes longer than to look it up a hundred times.
        addresses = work("networks", _with_networks(places.select("address").unionByName(deeds.select("address"))))
        principals = work("principals", _principals(places, addresses))
        spread = work("spread", _spread(principals, "middle").unionByName(_spread(principals, "wide")))
        larger = _joined(principals, spread)
        zones = spread.join(larger, "network", "left_anti").withColumn("zone", F.col("network")).unionByName(larger)
        return cls(work("addresses", _in_zones(addresses, work("zones", zones), networks)))

    def of(self, frame: DataFrame) -> DataFrame:
        """Add `subnet`, `wide`, `zone` and `zone_kind` of the column `address`, which is one of an event."""
        return frame.join(self.addresses, "address", "left")


def _with_networks(addresses: DataFrame) -> DataFrame:
    """Give each address once, with the networks around it and what it is compared by (`key`)."""
    address = F.col("address")
    return addresses.distinct().select(
        "address",
        subnet(address).alias("subnet"),
        middle_network(address).alias("middle"),
        wide_network(address).alias("wide"),
        widest_network(address).alias("widest"),
        address_key(address).alias("key"),
    )


def _principals(places: DataFrame, addresses: DataFrame) -> DataFrame:
    """Give the networks in which each principal was."""
    there = places.select("who", "address").distinct().join(addresses, "address")
    return there.select("who", *_NETWORKS, "widest").distinct()


def _in_zones(addresses: DataFrame, larger: DataFrame, networks: Sequence[Network]) -> DataFrame:
    """Give the zone of each address.

    Args:
        addresses: as `_with_networks` makes them.
        larger: `network` and `zone`: the subnets, middle and large networks that are in a larger zone, or are one.
        networks: those that a file names, the smallest first.
    """
    for network in _NETWORKS:
        zones = larger.select(F.col("network").alias(network), F.col("zone").alias(f"zone_of_{network}"))
        addresses = addresses.join(F.broadcast(zones), network, "left")
    learned = F.coalesce(*(f"zone_of_{network}" for network in reversed(_NETWORKS)), "subnet")
    kind = F.coalesce(_named(networks, lambda each: each.kind.value), F.lit(ZoneKind.LEARNED.value))
    zone = F.coalesce(_named(networks, lambda each: each.name), learned)
    is_ours = kind.isin(ZoneKind.CLUSTER.value, ZoneKind.OFFICE.value, ZoneKind.VPN.value)
    wide = F.when(is_ours & is_public(F.col("wide")), zone).otherwise(F.col("wide"))
    return addresses.select("address", "subnet", wide.alias("wide"), zone.alias("zone"), kind.alias("zone_kind"))


def _named(networks: Sequence[Network], said: Callable[[Network], str]) -> Column:
    """Give what the file says of the smallest network around an address; null if there is none."""
    found = F.when(F.lit(False), F.lit(None).cast("string"))
    for each in networks:
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
