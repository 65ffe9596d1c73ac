"""Zones that are learned from a company or that a file names, and what is usual there, on a real Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka_dt.pipeline.report.networks import load_networks
from kafka_dt.pipeline.report.peers import peers
from kafka_dt.pipeline.report.zones import Zones

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kafka_dt.pipeline.report.networks import Network

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Py4J leaves its sockets to the garbage collector."""
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
CLIENTS = (
    "who string, zone string, wide string, software string, first_seen timestamp, last_seen timestamp, logins long, "
    "by_token boolean, own_address boolean"
)
PODS = {
    "User:alice": ["10.7.1.5", "10.7.2.9", "2001:db8:7:1::5", "2001:db8:7:2::5"],
    "User:bob": ["10.7.2.6", "10.7.3.6", "2001:db8:7:3::6", "2001:db8:7:1::6"],
    "User:carol": ["10.7.1.7", "10.7.3.8", "2001:db8:7:1::7", "2001:db8:7:1::8"],
}
"""A cluster: each owner is in several parts of its networks."""
FLOORS = {
    "User:dan": ["10.8.1.5", "10.8.1.6"],
    "User:eve": ["10.8.2.5"],
    "User:frank": ["10.8.3.5"],
    "User:grace": ["10.8.3.7", "10.8.2.9"],
}
"""An office: most people have a floor."""
LARGE = {
    "User:judy": ["10.33.1.5", "10.33.2.9", "10.34.1.5", "10.34.7.1"],
    "User:kim": ["10.33.2.6", "10.34.9.6", "10.34.8.6"],
    "User:leo": ["10.33.1.7", "10.33.3.8", "10.34.1.7"],
}
"""A cluster that is larger than a /16."""
FEW_NODES = {
    "User:judy": ["10.35.7.5"],
    "User:kim": ["10.35.7.6", "10.35.9.1"],
    "User:leo": ["10.35.7.7"],
}
"""More of it: a few nodes in another /16, each with a part of it."""
BESIDE = {
    "User:mia": ["10.40.1.5", "10.40.2.5", "10.34.4.4"],
    "User:nils": ["10.40.1.6", "10.40.2.6"],
    "User:olga": ["10.40.3.7", "10.40.2.7"],
}
"""Another cluster, in the same /12; one of its owners was in the large one."""
IN_PARTS = {
    "User:pat": ["10.9.32.5", "10.9.33.9"],
    "User:quinn": ["10.9.34.6", "10.9.33.6"],
    "User:ravi": ["10.9.34.7", "10.9.47.8"],
    "User:sara": ["10.9.1.5"],
    "User:tom": ["10.9.2.5"],
    "User:uma": ["10.9.3.5"],
    "User:vera": ["10.9.48.5"],
}
"""A cluster in a part of a /16, and hosts in other ones."""
TWO = {"User:heidi": ["198.51.100.1", "198.51.101.1"], "User:ivan": ["198.51.100.9", "198.51.101.9"]}


def places(spark: SparkSession, found: dict[str, list[str]]) -> DataFrame:
    rows = [(who, address) for who, addresses in found.items() for address in addresses]
    return spark.createDataFrame(rows, "who string, address string")


def zones_of(spark: SparkSession, networks: tuple[Network, ...] = ()) -> dict[str, tuple[str, str, str]]:
    cluster = {who: [*addresses, *FEW_NODES[who]] for who, addresses in LARGE.items()}
    company = places(spark, {**PODS, **FLOORS, **cluster, **BESIDE, **IN_PARTS, **TWO})
    strange = spark.createDataFrame([("10.7.200.1",), ("203.0.113.7",), ("unknown",)], "address string")
    zones = Zones.learned(company, strange, networks, lambda _name, frame: frame.localCheckpoint())
    frame = zones.of(company.select("address").unionByName(strange))
    return {row["address"]: (row["zone"], row["zone_kind"], row["wide"]) for row in frame.collect()}


def test_networks_are_learned_from_who_moves_in_them(spark: SparkSession) -> None:
    zone = {address: name for address, (name, _kind, _wide) in zones_of(spark).items()}
    assert {zone[address] for owner in PODS.values() for address in owner if ":" not in address} == {"10.7.0.0/16"}
    assert zone["10.7.200.1"] == "10.7.0.0/16", "a part that no login came from yet"
    assert zone["2001:db8:7:2::5"] == "2001:db8:7::/48"
    assert zone["10.8.1.6"] == "10.8.1.0/24", "an office is not one zone"
    assert zone["198.51.101.9"] == "198.51.101.0/24", "two principals show nothing"
    assert zone["203.0.113.7"] == "203.0.113.0/24"
    assert zone["unknown"] == "unknown"
    large = {address for owner in LARGE.values() for address in owner} | {"10.34.4.4", "10.35.7.6"}
    assert {zone[address] for address in large} == {"10.32.0.0/12"}
    assert zone["10.35.9.1"] == "10.35.9.0/24", "one principal shows nothing"
    assert zone["10.40.1.5"] == "10.40.0.0/16", "a cluster beside it"
    assert {zone[address] for who in ("pat", "quinn", "ravi") for address in IN_PARTS[f"User:{who}"]} == {
        "10.9.32.0/20"
    }
    assert zone["10.9.48.5"] == "10.9.48.0/24", "hosts outside the part that pods are in"


def test_a_file_names_zones_and_the_smallest_network_counts(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "networks.csv"
    path.write_text(
        "10.7.0.0/16, north, cluster\n10.7.2.0/25, egress, nat\n2001:db8:7::/48, north, cluster\n"
        "203.0.113.0/24, elsewhere, foreign\n198.51.100.0/24, campus, office\n",
        encoding="utf-8",
    )
    zones = zones_of(spark, load_networks(path))
    assert zones["10.7.1.5"] == ("north", "cluster", "10.7.0.0/16")
    assert zones["2001:db8:7:1::5"] == ("north", "cluster", "north"), "a public network of the company"
    assert zones["198.51.100.1"] == ("campus", "office", "campus")
    assert zones["198.51.101.1"] == ("198.51.101.0/24", "learned", "198.51.0.0/16")
    assert zones["10.7.2.9"] == ("egress", "nat", "10.7.0.0/16")
    assert zones["203.0.113.7"] == ("elsewhere", "foreign", "203.0.0.0/16")
    assert zones["10.8.1.5"] == ("10.8.1.0/24", "learned", "10.8.0.0/16")
    assert zones["unknown"] == ("unknown", "learned", "unknown")


def test_peers_tell_who_was_there_before_who_came_along_and_who_moved(spark: SparkSession) -> None:
    rows = [
        ("User:alice", "old", "java", 0.0, 20.0),
        ("User:bob", "old", "java", 0.1, 5.0),
        ("User:alice", "new", "java", 5.0, 9.0),
        ("User:bob", "new", "java", 5.5, 9.0),
        ("User:bob", "new", "kcat", 5.6, 9.0),
        ("User:dan", "old", "java", 2.0, 9.0),
        ("User:dan", "new", "kcat", 5.2, 5.2),
        ("User:carol", "new", "java", 8.0, 9.0),
    ]
    clients = spark.createDataFrame(
        [
            (who, zone, zone, software, BEGIN + timedelta(days=first), BEGIN + timedelta(days=last), 3, True, False)
            for who, zone, software, first, last in rows
        ],
        CLIENTS,
    )
    found = {
        (row["who"], row["zone"]): tuple(
            row[name] for name in ("owner_before", "others_before", "others_along", "others_moved", "moved")
        )
        for row in peers(clients, "zone").collect()
    }
    assert found == {
        ("User:alice", "old"): (0, 0, 1, 1, True),
        ("User:bob", "old"): (0, 0, 1, 1, True),
        ("User:dan", "old"): (0, 2, 0, 0, True),
        ("User:alice", "new"): (1, 0, 2, 1, True),
        ("User:bob", "new"): (1, 0, 2, 1, True),
        ("User:dan", "new"): (1, 0, 2, 2, False),
        ("User:carol", "new"): (0, 3, 0, 0, True),
    }


def test_owners_move_together_if_they_come_from_the_same_place(spark: SparkSession) -> None:
    rows = [
        *(("User:dan", "office", 0.0), ("User:eve", "office", 0.0), ("User:frank", "home", 0.0)),
        *(("User:etl", "cluster", 0.0), ("User:sync", "cluster", 0.0)),
        *(("User:grace", "vpn", 0.0), ("User:dan", "vpn", 5.0), ("User:eve", "vpn", 5.2), ("User:etl", "vpn", 5.1)),
        *(("User:etl", "north", 9.0), ("User:new", "north", 9.1), ("User:newer", "vpn", 5.3)),
    ]
    clients = spark.createDataFrame(
        [(who, zone, zone, "java", BEGIN + timedelta(days=first), BEGIN, 3, True, False) for who, zone, first in rows],
        CLIENTS,
    )
    found = {
        (row["who"], row["zone"]): (row["origin"], row["others_moved"]) for row in peers(clients, "zone").collect()
    }
    assert found["User:dan", "vpn"] == found["User:eve", "vpn"] == ("office", 1)
    assert found["User:etl", "vpn"] == ("cluster", 0), "people and a new owner explain no job where others were before"
    assert found["User:etl", "north"] == ("vpn", 1), "an owner began at a new place"


def test_people_who_come_as_a_group_have_machines_and_libraries_of_their_own(spark: SparkSession) -> None:
    rows = [
        *((f"User:{name}", "hub", "hub", "java", 0.0, True) for name in ("ann", "bob", "cem", "dan", "eve")),
        *(("User:ann", "floor 1", "guests", "kgo", 5.0, True), ("User:bob", "floor 1", "guests", "java", 5.1, True)),
        ("User:cem", "floor 2", "guests", "java", 5.2, True),
        ("User:dan", "floor 2", "guests", "java", 5.3, False),
        ("User:eve", "floor 1", "guests", "java", 7.0, True),
    ]
    clients = spark.createDataFrame(
        [
            (who, zone, wide, software, BEGIN + timedelta(days=first), BEGIN, 3, True, own)
            for who, zone, wide, software, first, own in rows
        ],
        CLIENTS,
    )
    arrivals = {(row["who"], row["zone"]): row for row in peers(clients, "zone").collect()}
    in_group = {place: row["people"] for place, row in arrivals.items() if row["people"] is not None}
    assert in_group == {("User:ann", "floor 1"): 3, ("User:bob", "floor 1"): 3, ("User:cem", "floor 2"): 3}
    assert arrivals["User:cem", "floor 2"]["others_moved"] == 2
    assert arrivals["User:ann", "floor 1"]["moved"], "with a group a new library is no thief's"
    assert arrivals["User:eve", "floor 1"]["neighbours_before"] == 2
