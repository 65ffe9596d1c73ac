"""The networks of a company, as a file names them: `kafka-dt pipeline report --networks FILE`.

    networks = load_networks(Path("networks.csv"))

A line of the file is a network in CIDR notation, a name and a kind, with commas between them:

    # network, name, kind
    10.20.0.0/16, hadoop-north, cluster
    2001:db8:7::/48, hadoop-north, cluster
    198.51.100.7/32, egress, nat

Networks of the same name are one zone. Where networks overlap, the smallest one counts. Empty lines, and lines that
begin with `#`, say nothing.

Nothing here needs Spark.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Final

from kafka_dt.pipeline.errors import BadNetworks

if TYPE_CHECKING:
    from pathlib import Path

_COLUMNS: Final = 3
_MAPPED: Final = 0xFFFF << 32
"""What stands before an IPv4 address among those of IPv6."""


class ZoneKind(StrEnum):
    """What a zone is."""

    CLUSTER = "cluster"
    """Machines or pods that run programs of many owners."""
    VPN = "vpn"
    """Notebooks of people, from wherever they are."""
    OFFICE = "office"
    """Notebooks of people, at work."""
    NAT = "nat"
    """Addresses that stand for many machines."""
    FOREIGN = "foreign"
    """Not of the company."""
    LEARNED = "learned"
    """No file names it."""


@dataclass(frozen=True, slots=True)
class Network:
    """One line of the file."""

    first: int
    """Its first address, as a number of 128 bits; an IPv4 address stands behind ::ffff:0:0/96."""
    last: int
    name: str
    kind: ZoneKind


def load_networks(path: Path) -> tuple[Network, ...]:
    """Read a file of networks, the smallest first.

    Raises:
        BadNetworks: a line is no network with a name and a kind, or the file cannot be read.
    """
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.reader(lines, skipinitialspace=True))
    except (OSError, UnicodeDecodeError) as error:
        raise BadNetworks(str(path), str(error)) from error
    networks = []
    for number, row in enumerate(rows, start=1):
        if row and not row[0].startswith("#"):
            try:
                networks.append(_network([cell.strip() for cell in row]))
            except ValueError as error:
                raise BadNetworks(f"{path}, line {number}", str(error)) from error
    return tuple(sorted(networks, key=lambda each: each.last - each.first))


def range_of(network: IPv4Network | IPv6Network) -> tuple[int, int]:
    """Give the first and the last address of a network as numbers of 128 bits, IPv4 behind ::ffff:0:0/96."""
    before = _MAPPED if isinstance(network, IPv4Network) else 0
    return before + int(network.network_address), before + int(network.broadcast_address)


def address_number(address: str | None) -> int | None:
    """Give an address in the same way; None if it is none."""
    try:
        found = ip_address((address or "").partition("%")[0])
    except ValueError:
        return None
    return (_MAPPED if isinstance(found, IPv4Address) else 0) + int(found)


def _network(row: list[str]) -> Network:
    if len(row) != _COLUMNS or not row[1]:
        raise ValueError(f"{', '.join(row)} is not a network, a name and a kind")
    first, last = range_of(ip_network(row[0]))
    kinds = [kind for kind in ZoneKind if kind is not ZoneKind.LEARNED]
    if row[2] not in kinds:
        raise ValueError(f"{row[2]!r} is no kind of network; write one of {', '.join(kinds)}")
    return Network(first, last, row[1], ZoneKind(row[2]))
