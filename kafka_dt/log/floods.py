"""Which lines of a flood are logged, and how many were held back.

    floods = Floods(lines=100)
    if floods.passes(record, now): ...      # write it
    for held in floods.closed(now): ...     # write held.summary()

Lines are alike if the same statement of the program logs them, at the same level. In a window of a minute a number of
them passes, and of one client a tenth of that, so that an attacker with many addresses writes no more. The first line
opens the window. When it is over, one of the lines that were held back stands for them, with their number: for each
client that was limited, and for all the others together.

Limits: no more clients are remembered for a statement than lines of it pass. Clients of many addresses can hide the
lines of others that the same statement would have logged; audit events hold them all.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

WINDOW_S: Final = 60.0
PEERS_AT_LEAST: Final = 10
"""How many clients have to be noisy before they hide the lines of others."""


@dataclass(frozen=True, slots=True)
class Held:
    """Lines that were held back."""

    record: logging.LogRecord
    """The first of them."""
    count: int

    def summary(self) -> logging.LogRecord:
        """Make the line that stands for them, of now; a formatter puts `more` behind its message."""
        of = self.record
        args = (of.args,) if isinstance(of.args, Mapping) else of.args
        summary = logging.LogRecord(of.name, of.levelno, of.pathname, of.lineno, of.msg, args, None)
        if self.count > 1:
            summary.more = f" ... and {self.count - 1:,} more in {WINDOW_S:.0f} s"
        return summary


@dataclass(slots=True)
class _Lines:
    """Lines of one statement, about one client or all others."""

    passed: int = 0
    held: int = 0
    first_held: logging.LogRecord | None = None

    def hold(self, record: logging.LogRecord) -> None:
        self.held += 1
        if self.first_held is None:
            self.first_held = copy.copy(record)
            self.first_held.exc_info = None  # whose frames would be kept alive


@dataclass(slots=True)
class _Window:
    """The lines of one statement since `begun`."""

    begun: float
    lines: int
    """How many pass."""
    passed: int = 0
    holds: bool = False
    others: _Lines = field(default_factory=_Lines)
    peers: dict[str, _Lines] = field(default_factory=dict)

    def passes(self, record: logging.LogRecord) -> bool:
        lines = self._lines_of(getattr(record, "peer", None))
        of_peer = max(1, self.lines // PEERS_AT_LEAST)
        if self.passed >= self.lines or (lines is not self.others and lines.passed >= of_peer):
            lines.hold(record)
            self.holds = True
            return False
        self.passed += 1
        lines.passed += 1
        return True

    def held(self) -> Iterator[Held]:
        for lines in (*self.peers.values(), self.others):
            if lines.first_held is not None:
                yield Held(lines.first_held, lines.held)

    def _lines_of(self, peer: str | None) -> _Lines:
        if peer is None or (self.passed >= self.lines and peer not in self.peers):
            return self.others
        return self.peers.setdefault(peer, _Lines())


class Floods:
    """Decides which lines are logged; not for several threads at once.

    Args:
        lines: how many lines of one statement pass in a window, of all clients together.
    """

    def __init__(self, lines: int) -> None:
        self._lines = lines
        self._windows: dict[tuple[str, int, int], _Window] = {}

    def passes(self, record: logging.LogRecord, now: float) -> bool:
        """Tell whether a line is logged; a debug line always is.

        Args:
            record: the line.
            now: a clock in seconds, by which `closed` was asked already.
        """
        if record.levelno < logging.INFO:
            return True
        window = self._windows.setdefault((record.pathname, record.lineno, record.levelno), _Window(now, self._lines))
        return window.passes(record)

    def closed(self, now: float | None) -> list[Held]:
        """Close the windows that are over, and give the lines that they held back.

        Args:
            now: a clock in seconds; None closes every window.
        """
        over = [site for site, each in self._windows.items() if now is None or now >= each.begun + WINDOW_S]
        return [held for site in over for held in self._windows.pop(site).held()]

    def due(self) -> float | None:
        """Give the time at which the next window that holds lines is over; None if none does."""
        return min((each.begun + WINDOW_S for each in self._windows.values() if each.holds), default=None)
