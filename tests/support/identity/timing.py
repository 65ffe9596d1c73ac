"""Whether two kinds of work can be told apart by the time that they take.

Absolute times say nothing on a machine that does other things as well. So attempts of all kinds take turns, and what is
compared is the chance that an attempt of one kind takes longer than one of another: one half if nothing tells them
apart, which neither a slow machine nor a burst of other work changes.

Source: Mann and Whitney, "On a test of whether one of two random variables is stochastically larger than the other".
"""

from __future__ import annotations

import gc
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import combinations

Took = Mapping[str, Sequence[float]]
"""How long attempts took, by kind."""


def chance_of_longer(one: Sequence[float], other: Sequence[float]) -> float:
    """Give the chance that a value of `one` is larger than one of `other`; an equal one counts half."""
    ordered = sorted(other)
    larger = sum(bisect_left(ordered, value) + bisect_right(ordered, value) for value in one)
    return larger / (2 * len(one) * len(ordered))


def told_apart(took: Took, *, beyond: float) -> Mapping[tuple[str, str], float]:
    """Give the pairs of kinds that can be told apart.

    Args:
        took: how long the attempts of each kind took, by name.
        beyond: how far from one half a chance has to be.

    Returns:
        The chance that an attempt of the first takes longer, for each such pair.
    """
    chances = {(one, other): chance_of_longer(took[one], took[other]) for one, other in combinations(took, 2)}
    return {pair: chance for pair, chance in chances.items() if abs(chance - 0.5) > beyond}


async def in_turns(kinds: Mapping[str, Callable[[], Awaitable[float]]], attempts: int) -> Took:
    """Let attempts of all kinds take turns.

    Args:
        kinds: makes one attempt of a kind and gives how long it took, by name.
        attempts: how many of each kind.
    """
    took: dict[str, list[float]] = {kind: [] for kind in kinds}
    order = list(kinds)
    gc.disable()  # a collection would slow the next attempt, of whatever kind
    try:
        for number in range(attempts):
            first = number % len(order)
            for kind in order[first:] + order[:first]:
                took[kind].append(await kinds[kind]())
    finally:
        gc.enable()
    return took
