"""The libraries with which clients connect, and what each kind of work is written in."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final


@dataclass(frozen=True, slots=True)
class Software:
    """A library and its version; both are None if the library does not name itself."""

    name: str | None
    version: str | None


NAMELESS: Final = Software(None, None)
"""Old libraries, and those that do not send what KIP-511 asks for."""

RELEASES: Final[dict[str, tuple[str, ...]]] = {
    "apache-kafka-java": ("2.8.2", "3.3.2", "3.5.1", "3.6.2", "3.7.2", "3.9.1", "4.0.0", "4.1.0"),
    "librdkafka": ("1.9.2", "2.0.2", "2.3.0", "2.6.1", "2.8.0"),
    "confluent-kafka-python": ("2.0.2", "2.3.0", "2.6.1", "2.8.2"),
    "kafka-python": ("2.0.2", "2.0.6", "2.2.3"),
    "sarama": ("1.38.1", "1.42.1", "1.45.0"),
    "kgo": ("1.15.4", "1.18.0", "1.19.1"),
    "aiokafka": ("0.8.1", "0.10.0", "0.12.0"),
}
"""Versions in the order of their releases."""

WRITTEN_IN: Final[dict[str, tuple[str, ...]]] = {
    "batch": ("apache-kafka-java",) * 6 + ("confluent-kafka-python",),
    "streaming": ("apache-kafka-java",) * 5 + ("librdkafka", "kgo"),
    "service": ("apache-kafka-java",) * 3 + ("sarama", "kgo", "librdkafka", "aiokafka"),
    "analyst": ("confluent-kafka-python",) * 3 + ("kafka-python", "aiokafka", "librdkafka", "apache-kafka-java"),
    "builds": ("apache-kafka-java",) * 2 + ("confluent-kafka-python", "librdkafka"),
    "plain": ("apache-kafka-java", "sarama", "librdkafka"),
    "tools": ("apache-kafka-java",),
}
"""The libraries of a kind of work; one that is more usual stands there more often."""

THIEVES: Final = ("kafka-python", "librdkafka", "confluent-kafka-python", "apache-kafka-java", "sarama", "aiokafka")
"""What a thief may have at hand."""


def draw_software(rng: Random, work: str) -> Software:
    """Draw what an owner's work is written in; a twelfth of all clients does not name itself."""
    if rng.random() < 1 / 12:
        return NAMELESS
    name = rng.choice(WRITTEN_IN[work])
    versions = RELEASES[name]
    return Software(name, versions[min(int(rng.triangular(0, len(versions), len(versions) * 0.7)), len(versions) - 1)])


def next_release(software: Software) -> Software:
    """Give the same library in the version of an upgrade."""
    if software.name is None:
        return Software("apache-kafka-java", RELEASES["apache-kafka-java"][-1])
    versions = RELEASES[software.name]
    index = versions.index(software.version) if software.version in versions else 0
    return Software(software.name, versions[min(index + 1, len(versions) - 1)])


def other_software(rng: Random, than: Software) -> Software:
    """Draw what a thief has at hand that an owner does not use."""
    name = rng.choice([each for each in THIEVES if each != than.name])
    return Software(name, rng.choice(RELEASES[name]))
