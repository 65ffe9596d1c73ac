"""How often something may happen, counted without a queue: connections of a listener, failed logins of an address.

Both classes keep one instant, to which each occurrence adds the interval that it is worth (`_paid_at`).

Source: the generic cell rate algorithm (ITU-T I.371); Kafka's `connection.failed.authentication.delay.ms` (KIP-306).
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


class Rate:
    """So many a second, and as many at once after a second of rest."""

    def __init__(self, per_second: float, clock: Callable[[], float]) -> None:
        self._interval_s = 1 / per_second
        self._burst_s = max(0.0, 1 - self._interval_s)
        self._clock = clock
        self._next = clock()

    def count(self) -> float:
        """Count one; returns for how many seconds no other may follow, 0 or less for none."""
        now = self._clock()
        self._next = _paid_at(self._next, now, self._interval_s)
        return self._next - self._burst_s - now


class FailedLogins:
    """The failed logins of one worker: their answers are held back, longer for an address from which many fail.

    An address may have `FREE` failures with the usual delay; the answers to further ones follow each other at
    `SLOWDOWN` times the delay, and are late by `LONGEST_S` at most. What an address owes passes with time.

    A login that succeeds is never held back: many clients may share an address with the one that guesses. So this makes
    guessing slow and does not lock users out. A client that does not wait for the answer can tell a failure by the
    silence; `max.connection.creation.rate` bounds its number of attempts.

    What it took to see that a login fails is part of the delay: the answer leaves a whole number of delays after the
    message that failed, and so does not tell whether there was a token to be looked for. A login that cannot be decided
    now is no failure and counts for nothing: its client comes again.

    Limits: each worker counts for itself, for at most `ADDRESSES` addresses; beyond that the one whose failures are the
    longest ago is forgotten.

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
        """Count a failed login that took so many seconds; returns for how many more its answer is held back."""
        now = self._clock()
        free_s = FREE * self._interval_s
        paid_at = _paid_at(self._paid_at.pop(address, now), now, self._interval_s)
        # What lies beyond the longest delay would only make the address pay for longer.
        self._paid_at[address] = min(paid_at, now + free_s + LONGEST_S)
        if len(self._paid_at) > ADDRESSES:
            self._paid_at.popitem(last=False)
        return _left_s(max(self._delay_s, min(paid_at - now - free_s, LONGEST_S)), took_s)

    def undecided_s(self, took_s: float) -> float:
        """Return for how many seconds the end of a login is held back that cannot be decided."""
        return _left_s(self._delay_s, took_s)


def _paid_at(before: float, now: float, interval_s: float) -> float:
    """Say when one more occurrence is paid for, where those before it are so at an instant."""
    return max(before, now) + interval_s


def _left_s(delay_s: float, took_s: float) -> float:
    return delay_s - took_s % delay_s if delay_s else 0.0
