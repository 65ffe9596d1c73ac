"""Where clients are and what they are: the subnets of a company and those from outside, and the libraries.

An owner's processes live in one or two subnets that are its own or that it shares. Which address of them a process has
changes with every start, as with pods and DHCP. Strangers come from elsewhere: from documentation ranges (RFC 5737) or
from subnets where that owner never works.

Java's client, librdkafka's and newer kafka-python say their name and version in ApiVersions (KIP-511); aiokafka and
older kafka-python do not, so an event of theirs has neither. A team moves to a newer version now and then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_dt.pipeline.generator.scenario import HOUR_MS

if TYPE_CHECKING:
    import random

    from kafka_dt.pipeline.generator.scenario import Scenario

INSIDE: Final = "INTERNAL"
OUTSIDE: Final = "EXTERNAL"
_FIRST_HOST: Final = 4
_HOSTS: Final = 248
_SUBNETS: Final = 200
_JAVA_VERSIONS: Final = ("2.8.2", "3.3.2", "3.5.1", "3.6.2", "3.7.1", "3.8.1", "3.9.0")
_RDKAFKA_VERSIONS: Final = ("2.3.0", "2.4.0", "2.5.3", "2.6.1")
_MOVES: Final = 0.3
"""How many teams change the version within a month."""
_MONTH_DAYS: Final = 30


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
"""Inside, but no owner's place of work: a bastion, a development cluster, build machines."""


def pods(cluster: int, number: int) -> Subnet:
    """Give the subnet of a team's pods, `10.<cluster>.<number>`; many teams fill more than one cluster."""
    return Subnet(f"10.{cluster + number // _SUBNETS}.{number % _SUBNETS}")


@dataclass(frozen=True, slots=True)
class Software:
    """A library, as its clients call it."""

    name: str | None
    version: str | None


SILENT: Final = Software(None, None)
"""A library that does not say."""


@dataclass(frozen=True, slots=True)
class Versions:
    """What a team runs, and what it moves to."""

    before: Software
    after: Software
    moves_ms: int
    """When the new one is rolled out; far away if it is not."""

    def at(self, instant_ms: int) -> Software:
        """Say what a process has that starts at an instant."""
        return self.after if instant_ms >= self.moves_ms else self.before


def java(chance: random.Random, scenario: Scenario) -> Versions:
    """Draw a version of Java's client, and a later one."""
    return _versions("apache-kafka-java", _JAVA_VERSIONS, chance, scenario)


def python(chance: random.Random, scenario: Scenario) -> Versions:
    """Draw one of the clients that Python has."""
    which = chance.random()
    if which < 0.6:  # noqa: PLR2004 - most
        return _versions("confluent-kafka-python", _RDKAFKA_VERSIONS, chance, scenario)
    if which < 0.8:  # noqa: PLR2004 - of the others one half
        return _versions("kafka-python", ("2.1.5", "2.2.15"), chance, scenario)
    return Versions(SILENT, SILENT, scenario.end_ms)


def strangers_tool(chance: random.Random) -> Software:
    """Draw the tool of a stranger that has found a token."""
    tools = (Software("librdkafka", "2.6.1"), Software("kgo", "v1.18.0"), Software("kafka-python", "2.2.15"), SILENT)
    return chance.choice(tools)


def _versions(name: str, versions: tuple[str, ...], chance: random.Random, scenario: Scenario) -> Versions:
    number = chance.randrange(len(versions) - 1)
    # A longer scenario has more of them.
    moves = chance.random() < min(1.0, _MOVES * scenario.days / _MONTH_DAYS)
    at_ms = scenario.begin_ms(chance.randrange(scenario.days)) if moves else scenario.end_ms
    after = versions[chance.randrange(number + 1, len(versions))]
    return Versions(Software(name, versions[number]), Software(name, after), at_ms + 10 * HOUR_MS)
