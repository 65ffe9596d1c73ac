"""The places from which clients connect: racks, pods, offices, VPNs, build machines, homes, and the rest of the world.

A place gives addresses in the way of its kind: a rack has a fixed set of hosts, a network of pods gives every new pod a
new address out of a large range, an office shows one or two addresses to the outside, and a person at home has the
address of a provider. What the network calls the zone of a client is the name of its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address
from random import Random


class PlaceKind(StrEnum):
    """What a place is."""

    RACK = "rack"
    PODS = "pods"
    OFFICE = "office"
    VPN = "vpn"
    BUILDS = "builds"
    ADMIN = "admin"
    HOME = "home"
    ROAD = "road"
    """Hotels, trains and telephones."""
    OUTSIDE = "outside"
    """Machines that are not the company's."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place from which clients connect."""

    name: str
    kind: PlaceKind
    address: Callable[[Random], str]
    """Draws the address of a client."""


def v4_range(first: str, size: int) -> Callable[[Random], str]:
    """Draw any address of a range of IPv4."""
    base = int(IPv4Address(first))
    return lambda rng: str(IPv4Address(base + 1 + rng.randrange(size - 2)))


def v6_range(prefix: int, host_bits: int = 64) -> Callable[[Random], str]:
    """Draw any address of a range of IPv6."""
    return lambda rng: str(IPv6Address((prefix << host_bits) | rng.getrandbits(host_bits)))


def one_of(addresses: list[str]) -> Callable[[Random], str]:
    """Draw one of a few addresses."""
    return lambda rng: rng.choice(addresses)


def hosts(rng: Random, first: str, size: int, number: int) -> Callable[[Random], str]:
    """Draw one of the hosts that a range has."""
    draw = v4_range(first, size)
    return one_of([draw(rng) for _ in range(number)])


def provider(rng: Random) -> str:
    """Draw a public address that belongs to no company: any of IPv4, and one of seven times of IPv6."""
    if rng.random() < 1 / 7:
        return str(IPv6Address((0x2A00 + rng.randrange(16)) << 112 | rng.getrandbits(100)))
    return f"{rng.choice(_FIRST_BYTES)}.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}"


_FIRST_BYTES = tuple(each for each in range(2, 223) if each not in {10, 100, 127, 169, 172, 192, 198, 203})


@dataclass(frozen=True, slots=True)
class Networks:
    """All places of a company."""

    clusters: tuple[Place, ...]
    """Where jobs run: racks and networks of pods."""
    offices: tuple[Place, ...]
    vpn: Place
    builds: Place
    admin: Place
    home: Place
    road: Place
    outside: Place

    def where_people_are(self) -> tuple[Place, ...]:
        """Give the places from which people work."""
        return (*self.offices, self.vpn)


def draw_networks(rng: Random) -> Networks:
    """Draw the networks of a company: how many sites it has, and how each numbers its machines."""
    clusters = [_cluster(rng, number) for number in range(rng.randint(2, 6))]
    offices = [
        Place(f"office-{number}", PlaceKind.OFFICE, one_of([provider(rng) for _ in range(rng.randint(1, 2))]))
        for number in range(rng.randint(1, 4))
    ]
    builds_draw = one_of([provider(rng) for _ in range(rng.randint(2, 4))])  # the NAT of a cloud
    if rng.random() < 0.5:
        builds_draw = v4_range(f"10.{rng.randrange(200, 220)}.{rng.randrange(0, 240, 16)}.0", 1 << rng.randint(8, 12))
    return Networks(
        clusters=tuple(clusters),
        offices=tuple(offices),
        vpn=Place("vpn", PlaceKind.VPN, v4_range(f"172.{rng.randrange(16, 32)}.0.0", 1 << rng.randint(8, 13))),
        builds=Place("builds", PlaceKind.BUILDS, builds_draw),
        admin=Place("admin", PlaceKind.ADMIN, hosts(rng, f"10.{rng.randrange(240, 250)}.0.0", 64, rng.randint(2, 5))),
        home=Place("home", PlaceKind.HOME, provider),
        road=Place("road", PlaceKind.ROAD, provider),
        outside=Place("outside", PlaceKind.OUTSIDE, provider),
    )


def _cluster(rng: Random, number: int) -> Place:
    """Draw one of a company's clusters; their numbers of networks lie apart."""
    second = 16 * (number + 1) + rng.randrange(16)
    style = rng.random()
    if style < 0.4:
        return Place(
            f"rack-{number}",
            PlaceKind.RACK,
            hosts(rng, f"10.{second}.{rng.randrange(200)}.0", 1 << 11, rng.randint(12, 250)),
        )
    if style < 0.85:
        third = rng.randrange(0, 128, 32)
        return Place(f"pods-{number}", PlaceKind.PODS, v4_range(f"10.{second}.{third}.0", 1 << rng.randint(10, 15)))
    return Place(
        f"pods6-{number}", PlaceKind.PODS, v6_range(0xFD00_0000_0000_0000 | second << 16 | rng.randrange(1 << 16))
    )
