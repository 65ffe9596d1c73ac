"""How work on every token is shared out: how many partitions at a time, and how large each is.

    shares = share_out(len(names), at_once=8, changes_a_second=2_000)
    shares.lanes, shares.tokens_a_partition

A partition is large enough that starting a task and a session is little beside its work, and small enough that progress
is seen and a stop comes soon. A slow rate is shared out to few lanes for that: what more of them could do, it does not
allow.
"""

from __future__ import annotations

from math import ceil, inf
from typing import Final, NamedTuple

TOKENS_A_PARTITION: Final = 5_000
"""Some seconds' work, beside which starting a task and a session is little."""
SECONDS_A_PARTITION: Final = 10.0
"""How long one takes at most where a rate is kept."""
FEWEST_A_PARTITION: Final = 100
"""Unless there are fewer tokens than that for each lane."""


class Shares(NamedTuple):
    """How work is shared out."""

    lanes: int
    """How many partitions are worked on at the same time; each may use as much of the rate."""
    tokens_a_partition: int
    """At most."""


def share_out(
    tokens: int, *, at_once: int, changes_a_second: float = inf, tokens_a_partition: int | None = None
) -> Shares:
    """Share out work.

    Args:
        tokens: how many there are.
        at_once: how many partitions can be worked on at the same time.
        changes_a_second: of all together at most.
        tokens_a_partition: how many are worked on together; None = as suits the rate.
    """
    in_time = changes_a_second * SECONDS_A_PARTITION
    lanes = int(max(1, min(at_once, in_time / FEWEST_A_PARTITION)))
    if tokens_a_partition is None:
        shared = max(FEWEST_A_PARTITION, ceil(tokens / lanes))  # few tokens are shared out to all lanes
        tokens_a_partition = int(min(TOKENS_A_PARTITION, shared, max(FEWEST_A_PARTITION, in_time / lanes)))
    partitions = ceil(tokens / tokens_a_partition)
    return Shares(max(1, min(lanes, partitions)), tokens_a_partition)
