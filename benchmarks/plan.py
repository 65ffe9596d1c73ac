"""How much is measured, how long and how often: `Plan`, and `QUICK`, which is roughly all of it in twenty minutes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and how often, and with how much."""

    rounds: int = 5
    first_warm_ms: int = 6_000
    """Of round 0: Java compiles a broker's code while it runs."""
    warm_ms: int = 700
    measure_ms: int = 2_500
    connections: tuple[int, ...] = (1, 16, 128)
    sizes: tuple[int, ...] = (1_000, 10_000, 100_000)
    """Numbers of tokens, for what depends on them."""
    grown_tokens: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    """Numbers of tokens, for how the cost of kafka-dt alone grows."""
    grown_connections: tuple[int, ...] = (10, 100, 1_000, 10_000)
    broker_start_size: int = 10_000
    """The broker is not started over and over with more."""
    memory_tokens: int = 11_000
    idle_connections: int = 10_000
    live_connections: int = 16_000
    """That log in again: at least as many as a server answers in a second."""
    steady_s: int = 300
    produce_mib: int = 512
    """What a producer sends in a round."""
    consume_mib: int = 1_536
    """What a consumer reads in a round."""
    followed: tuple[int, ...] = (1_000, 10_000, 30_000, 100_000)
    """Numbers of tokens of a Kafka 4 cluster, which makes about a hundred in a second."""
    event_sizes: tuple[int, ...] = (1_000_000, 3_000_000, 10_000_000)
    """Numbers of audit events."""
    judged_events: int = 340_000
    """Of each month on which detection is judged."""
    judged_seeds: int = 3
    """How many months of each kind."""
    stored_tokens: int = 1_000_000
    """In a ZooKeeper, for work on all of them."""
    fresh_nodes: bool = True
    """Whether each kind of request has a node of its own; else the memory that it needs may be there already."""
    pipeline_rounds: int = 1
    """Of what takes many minutes each time."""

    def with_rounds(self, rounds: int | None) -> Plan:
        """Give the same plan with another number of rounds, if one is given."""
        return self if rounds is None else replace(self, rounds=rounds, pipeline_rounds=rounds)

    @property
    def several_connections(self) -> tuple[int, ...]:
        """The numbers of connections but 1, for loads that one connection cannot make."""
        return tuple(each for each in self.connections if each > 1)

    @property
    def few(self) -> int:
        """The usual number of tokens."""
        return self.sizes[0]

    @property
    def many(self) -> int:
        """The largest number of tokens."""
        return self.sizes[-1]


QUICK: Final = Plan(
    rounds=1,
    first_warm_ms=1_000,
    warm_ms=200,
    measure_ms=800,
    connections=(16, 128),
    sizes=(500, 2_200),
    grown_tokens=(500, 2_200),
    grown_connections=(10, 100),
    broker_start_size=2_200,
    memory_tokens=500,
    idle_connections=500,
    steady_s=6,
    produce_mib=64,
    consume_mib=128,
    followed=(100, 300),
    event_sizes=(20_000,),
    judged_events=30_000,
    judged_seeds=1,
    stored_tokens=2_200,
    fresh_nodes=False,
)
"""One round on few tokens: a broker needs a minute and a half to start with as many as some rows are about."""
