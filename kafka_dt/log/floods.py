"""Floods of alike lines: the first ones are logged, and the number of the others."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Timer
from typing import Final, TextIO

from kafka_dt.log.about import FIELDS, PEER

WINDOW_S: Final = 60.0
PEERS_AT_LEAST: Final = 10
"""How many clients have to be noisy before they hide the lines of others."""
_HELD_BACK: Final = "held_back"


def held_back(record: logging.LogRecord) -> int:
    """Say for how many further lines a line stands, which were not logged."""
    return getattr(record, _HELD_BACK, 0)


class GuardedHandler(logging.StreamHandler[TextIO]):
    """Writes lines to a stream, but not all of a flood; it tells what it has held back when the window closes.

    Args:
        stream: the stream.
        floods: decides which lines pass.
        monotonic: a clock in seconds.
        call_later: calls a function after some seconds, on any thread.
    """

    def __init__(
        self,
        stream: TextIO,
        floods: Floods,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        call_later: Callable[[float, Callable[[], None]], None] | None = None,
    ) -> None:
        super().__init__(stream)
        self._floods = floods
        self._monotonic = monotonic
        self._call_later = call_later or _call_later
        self._timed = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record if it may pass."""
        now = self._monotonic()
        self._tell(self._floods.closed(now))
        if self._floods.passes(record, now):
            super().emit(record)
        else:
            self._set_timer(now)

    def close(self) -> None:
        """Log the lines that were held back, and end."""
        self.acquire()
        try:
            self._tell(self._floods.closed(None))
        finally:
            self.release()
        super().close()

    def _set_timer(self, now: float) -> None:
        due = self._floods.due()
        if due is not None and not self._timed:
            self._timed = True
            self._call_later(max(0.0, due - now), self._window_is_over)

    def _window_is_over(self) -> None:
        self.acquire()
        try:
            now = self._monotonic()
            self._tell(self._floods.closed(now))
            self._timed = False
            self._set_timer(now)
        finally:
            self.release()

    def _tell(self, summaries: Sequence[logging.LogRecord]) -> None:
        for each in summaries:
            super().emit(each)


class Floods:
    """Decides which lines of a flood are logged; not for several threads at once.

    Lines are alike if the same statement of the program logs them, at the same level. In a window of a minute `lines`
    of them pass, and of one client a tenth of that. The first line opens the window. When it is over, one of the lines
    that were held back stands for them, with their number: for each client that was limited, and for all the others
    together.

    Limits: it remembers no more clients for a statement than lines of it pass. Clients of many addresses can hide the
    lines of others that the same statement would have logged.
    """

    def __init__(self, lines: int) -> None:
        self._lines = lines
        self._windows: dict[tuple[str, int, int], _Window] = {}

    def passes(self, record: logging.LogRecord, now: float) -> bool:
        """Tell whether a line is logged; a debug line always is.

        Args:
            record: the line.
            now: a clock in seconds; call `closed` with the same time first.
        """
        if record.levelno < logging.INFO:
            return True
        window = self._windows.setdefault((record.pathname, record.lineno, record.levelno), _Window(now, self._lines))
        return window.passes(record)

    def closed(self, now: float | None) -> list[logging.LogRecord]:
        """Close the windows that are over, and return a line for the lines that each held back.

        Args:
            now: a clock in seconds; None closes every window.
        """
        over = [site for site, each in self._windows.items() if now is None or now >= each.begun + WINDOW_S]
        return [summary for site in over for summary in self._windows.pop(site).summaries()]

    def due(self) -> float | None:
        """Return the time at which the next window that holds lines is over; None if none does."""
        return min((each.begun + WINDOW_S for each in self._windows.values() if each.holds), default=None)


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

    def summary(self, of: logging.LogRecord) -> logging.LogRecord:
        """Make the line of now that stands for the lines held back; a formatter puts their number behind it."""
        args = (of.args,) if isinstance(of.args, Mapping) else of.args
        summary = logging.LogRecord(of.name, of.levelno, of.pathname, of.lineno, of.msg, args, None)
        setattr(summary, FIELDS, getattr(of, FIELDS, {}))
        setattr(summary, _HELD_BACK, self.held - 1)
        return summary


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
        lines = self._lines_of(getattr(record, PEER, None))
        of_peer = max(1, self.lines // PEERS_AT_LEAST)
        if self.passed >= self.lines or (lines is not self.others and lines.passed >= of_peer):
            lines.hold(record)
            self.holds = True
            return False
        self.passed += 1
        lines.passed += 1
        return True

    def summaries(self) -> Iterator[logging.LogRecord]:
        for lines in (*self.peers.values(), self.others):
            if lines.first_held is not None:
                yield lines.summary(lines.first_held)

    def _lines_of(self, peer: str | None) -> _Lines:
        if peer is None or (self.passed >= self.lines and peer not in self.peers):
            return self.others
        return self.peers.setdefault(peer, _Lines())


def _call_later(seconds: float, function: Callable[[], None]) -> None:
    timer = Timer(seconds, function)
    timer.daemon = True
    timer.start()
