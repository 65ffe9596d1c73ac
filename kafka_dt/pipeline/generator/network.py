"""Where clients are: the subnets of a company, and those from outside.

An owner's processes live in one or two subnets that are its own or that it shares; which address of them a process has
changes with every start, as with pods and DHCP. Strangers come from elsewhere: from documentation ranges (RFC 5737) or
from subnets where that owner never works.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random

INSIDE: Final = "INTERNAL"
OUTSIDE: Final = "EXTERNAL"
_FIRST_HOST: Final = 4
_HOSTS: Final = 248
_SUBNETS: Final = 200


@dataclass(frozen=True, slots=True)
class Subnet:
    """A /24."""

    prefix: str
    """Three numbers: `10.42.7`."""
    listener: str = INSIDE
    """By which the server is reached from there."""

    def host(self, number: int) -> Place:
        """Give an address; a number always has the same one."""
        return Place(f"{self.prefix}.{_FIRST_HOST + number % _HOSTS}", self.listener)

    def any_host(self, chance: random.Random) -> Place:
        """Give some address."""
        return self.host(chance.randrange(_HOSTS))


@dataclass(frozen=True, slots=True)
class Place:
    """Where one process is."""

    address: str
    listener: str = INSIDE


EDGE: Final = Subnet("10.30.0")
"""Hosts on which jobs are submitted."""
SCHEDULERS: Final = Subnet("10.30.1")
RENEWERS: Final = Subnet("10.30.2")
ADMINISTRATION: Final = Subnet("10.31.0")
YARN: Final = (Subnet("10.20.4"), Subnet("10.20.5"))
"""The hosts of a Hadoop cluster, which many owners share."""
NOTEBOOKS: Final = Subnet("10.61.8")
"""Of a JupyterHub."""
OFFICE: Final = tuple(Subnet(f"10.90.{number}", OUTSIDE) for number in range(6))
VPN: Final = tuple(Subnet(f"10.99.{number}", OUTSIDE) for number in range(3))
BASTION: Final = Subnet("10.8.0")
SCANNER: Final = Subnet("10.8.9").host(5)
"""Of the security team, which looks at every port once a week."""

INTERNET: Final = tuple(Subnet(prefix, OUTSIDE) for prefix in ("203.0.113", "198.51.100", "192.0.2"))
ELSEWHERE: Final = (BASTION, *(Subnet(f"10.77.{number}") for number in range(8)), Subnet("10.66.1"), Subnet("10.66.2"))
"""Inside, but nobody's place of work: a bastion, a development cluster, build machines."""


def pods(cluster: int, number: int) -> Subnet:
    """Give the subnet of a team's pods.

    Args:
        cluster: its second number.
        number: of the team; many teams fill more than one cluster.
    """
    return Subnet(f"10.{cluster + number // _SUBNETS}.{number % _SUBNETS}")
