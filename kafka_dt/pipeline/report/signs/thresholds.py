"""What is usual, in numbers: where the signs of theft draw their lines.

Each has its reason beneath it. Other lines are another `Thresholds`; the report prints the ones it used.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Where the lines are."""

    history: timedelta = timedelta(days=1)
    """How long after its first login a token's uses are its history: what they show is usual. Jobs start all their
    parts within a day, and what runs daily has run once."""
    history_of_life: float = 1 / 7
    """... but no more than this share of the token's longest life: a day of Kafka's default of seven."""
    shortest_history: timedelta = timedelta(hours=1)
    """... and no less than this."""
    history_logins: int = 3
    """A token with fewer logins in its history has none that could be compared with."""
    overlap: timedelta = timedelta(hours=1)
    """How long the usual use goes on beside the new one: a roll-out or a move is over by then, a theft is not."""
    known_tokens: int = 5
    """An owner with fewer tokens is not known well enough to say how it lives."""
    networks_a_token: float = 0.25
    """An owner that is in more networks than this, for each of its tokens, is one who moves about."""
    parts: int = 3
    """A job of so many machines, that began within a `shortest_history`, does not move as one."""
    clock_skew: timedelta = timedelta(minutes=5)
    """How far apart the clocks of two nodes may be, and how long a client may take to hear of a revocation. Kerberos
    allows as much."""
    guessed_in_an_hour: int = 5
    """How many different unknown ids of an address are no typing errors: who has copied an id wrongly notices at the
    second or third try."""
    guessed_in_a_day: int = 8
    """... of one that takes its time."""
    guess_factor: float = 5.0
    """How many times what is usual for that address they have to be: a proxy with stale clients behind it always has
    some."""
    guess_history: timedelta = timedelta(days=7)
    """The time before in which that is counted."""
    earlier_renewals: int = 2
    """How many renewals by others make it clear who renews a token; of an owner whose tokens were renewed for longer
    than a `history`, one is enough."""
