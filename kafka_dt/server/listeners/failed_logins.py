"""Hold back the answers to failed logins, longer for an address from which many fail.

Every failed login is answered after `connection.failed.authentication.delay.ms`. An address may have `FREE` failures
with no more than this; the answers to further ones follow each other at `SLOWDOWN` times the delay, and are late by
`LONGEST_S` at most. What an address owes passes with time.

A login that succeeds is never held back: many clients may share an address with the one that guesses. So this makes
guessing slow and does not lock anyone out. A client that does not wait for the answer can tell a failure by the
silence; what bounds its number of attempts is `max.connection.creation.rate`.

What it took to see that a login fails is part of the delay: the answer leaves a whole number of delays after the
message that failed, and so does not tell whether there was a token to be looked for. A login that cannot be decided now
is no failure and counts for nothing: its client comes again.

Limits: each worker counts for itself, for at most `ADDRESSES` addresses; beyond that the one whose failures are the
longest ago is forgotten.

Source: Kafka's `connection.failed.authentication.delay.ms` (KIP-306).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

FREE: Final = 100
"""How many failures of an address have the usual delay."""
SLOWDOWN: Final = 10
"""How many usual delays lie between two answers after that."""
LONGEST_S: Final = 5.0
"""How late an answer is at most, in seconds: less than clients wait for it."""
ADDRESSES: Final = 10_000


class FailedLogins:
    """The failed logins of one worker.

    Args:
        delay_ms: `connection.failed.authentication.delay.ms`; 0 holds nothing back.
        clock: seconds; never goes back.
    """

    def __init__(self, delay_ms: int, clock: Callable[[], float]) -> None:
        self._delay_s = delay_ms / 1000
        self._interval_s = SLOWDOWN * self._delay_s
        self._clock = clock
        self._paid_at: OrderedDict[str, float] = OrderedDict()
        """When the failures of an address are forgotten, the latest failure last."""

    def __len__(self) -> int:
        return len(self._paid_at)

    def delay_s(self, address: str, took_s: float = 0.0) -> float:
        """Count a failed login; returns for how many seconds its answer is held back from now on.

        Args:
            address: of the client.
            took_s: how long ago the client sent what failed.
        """
        now = self._clock()
        free_s = FREE * self._interval_s
        paid_at = max(self._paid_at.pop(address, now), now) + self._interval_s
        # What lies beyond the longest delay would only make the address pay for longer.
        self._paid_at[address] = min(paid_at, now + free_s + LONGEST_S)
        if len(self._paid_at) > ADDRESSES:
            self._paid_at.popitem(last=False)
        return _left_s(max(self._delay_s, min(paid_at - now - free_s, LONGEST_S)), took_s)

    def undecided_s(self, took_s: float) -> float:
        """Return for how many seconds the end of a login is held back that cannot be decided.

        Args:
            took_s: how long ago the client sent what cannot be decided.
        """
        return _left_s(self._delay_s, took_s)


def _left_s(delay_s: float, took_s: float) -> float:
    return delay_s - took_s % delay_s if delay_s else 0.0
