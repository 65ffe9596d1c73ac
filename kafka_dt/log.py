"""Logging: one line an event, to standard error.

    set_up_logging("worker 0", logging.INFO, lines_per_minute=100)
    _LOG.info("Denied: %r from %s", name, host, extra=of_peer(host))

Clients choose the names of users, clients and tokens. Whatever they hold, an event stays one line: control characters
are escaped here, and the lines of a traceback are indented.

A guarded process, which serves clients, writes no more than an operator can read: it cuts each value to
`LONGEST_VALUE` characters, and holds back floods of alike lines (see `Floods`). Audit events have no such limits.
"""

from __future__ import annotations

import copy
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Timer
from typing import Any, Final, TextIO

LONGEST_VALUE: Final = 200
"""To how many characters a value in a message is cut."""
LONGEST_WORDS: Final = 1000
"""The same for an error and for `ComposedText`."""
LONGEST_MESSAGE: Final = 2000
"""To how many characters a message is cut, and a line of a traceback."""
TRACEBACK_LINES: Final = 100
"""How many lines of a traceback are written: the last ones."""
CUT: Final = "…"
"""Stands at the end of what was cut."""
_INDENT: Final = "    "
WINDOW_S: Final = 60.0
PEERS_AT_LEAST: Final = 10
"""How many clients have to be noisy before they hide the lines of others."""


class ComposedText(str):
    """A text that this program has composed, in which foreign values are cut already."""

    __slots__ = ()


def of_peer(host: str) -> Mapping[str, str]:
    """Mark a line as one about a client, for `extra`.

    Args:
        host: its address without the port, which a client changes at will.
    """
    return {"peer": host}


def set_up_logging(process: str, level: int = logging.INFO, *, lines_per_minute: int | None = None) -> None:
    """Log from a level on.

    Args:
        process: what this process is in the node, for every line.
        level: of logging.
        lines_per_minute: how often one statement logs, of a process that serves clients: its values are cut, and
            floods are held back; None for other processes.
    """
    layout = f"%(asctime)s %(levelname)s [{process}] %(message)s"
    handler: logging.Handler
    if lines_per_minute is not None:
        handler = GuardedHandler(sys.stderr, Floods(lines_per_minute))
        handler.setFormatter(GuardedFormatter(layout))
    else:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(OneLineFormatter(layout))
    logging.basicConfig(handlers=[handler], level=level)


class OneLineFormatter(logging.Formatter):
    """Writes a message as one line, whatever is in it."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Format the message, without the traceback that may follow."""
        record.message = _printable(record.message) + getattr(record, "more", "")
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        """Format a traceback, a line of it in a line."""
        # A line break is what `split` says it is: others, such as U+2028, are escaped.
        lines = super().formatException(ei).split("\n")
        return "\n".join(_INDENT + _printable(line) for line in lines)


class GuardedFormatter(OneLineFormatter):
    """Cuts what may be foreign before it makes a line of it."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record, which stays as it is."""
        guarded = copy.copy(record)
        if isinstance(record.args, tuple):
            guarded.args = tuple(map(_guarded, record.args))
        elif record.args:
            guarded.args = {name: _guarded(value) for name, value in record.args.items()}
        guarded.exc_text = None
        return super().format(guarded)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Format the message, cut."""
        record.message = _cut(record.message, LONGEST_MESSAGE)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        """Format a traceback, cut to its last lines."""
        lines = super().formatException(ei).split("\n")
        left_out = [f"{_INDENT}{CUT}"] if len(lines) > TRACEBACK_LINES else []
        return "\n".join(left_out + [_cut(line, LONGEST_MESSAGE) for line in lines[-TRACEBACK_LINES:]])


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
        """Make the line of now that stands for the lines held back; a formatter puts `more` behind its message."""
        args = (of.args,) if isinstance(of.args, Mapping) else of.args
        summary = logging.LogRecord(of.name, of.levelno, of.pathname, of.lineno, of.msg, args, None)
        if self.held > 1:
            summary.more = f" ... and {self.held - 1:,} more in {WINDOW_S:.0f} s"
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
        lines = self._lines_of(getattr(record, "peer", None))
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


class _Guarded:
    """Stands for a value whose texts are cut."""

    __slots__ = ("_longest", "_value")

    def __init__(self, value: object) -> None:
        self._value = value
        self._longest = LONGEST_WORDS if isinstance(value, BaseException | ComposedText) else LONGEST_VALUE

    def __str__(self) -> str:
        return _cut(str(self._value), self._longest)

    def __repr__(self) -> str:
        if isinstance(self._value, str):
            return repr(_cut(self._value, self._longest))  # so that it has both its quotes
        return _cut(repr(self._value), self._longest)


def _guarded(value: object) -> object:
    return value if value is None or isinstance(value, int | float) else _Guarded(value)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - len(CUT)] + CUT


def _printable(text: str) -> str:
    """Escape what could move the cursor, end the line or turn its direction."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def _call_later(seconds: float, function: Callable[[], None]) -> None:
    timer = Timer(seconds, function)
    timer.daemon = True
    timer.start()
