"""The limits of one line: values, messages and tracebacks are cut, and control characters escaped."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from typing import Final

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


class ComposedText(str):
    """A text that this program has composed, in which foreign values are cut already."""

    __slots__ = ()


def with_cut_values(record: logging.LogRecord) -> logging.LogRecord:
    """Copy a record, and cut the values of its message."""
    guarded = copy.copy(record)
    if isinstance(record.args, tuple):
        guarded.args = tuple(map(_guarded, record.args))
    elif record.args:
        guarded.args = {name: _guarded(value) for name, value in record.args.items()}
    guarded.exc_text = None
    return guarded


def cut(text: str, longest: int = LONGEST_VALUE) -> str:
    """Cut a text to so many characters."""
    return text if len(text) <= longest else text[: longest - len(CUT)] + CUT


def cut_traceback(lines: Sequence[str]) -> list[str]:
    """Leave the last lines of a traceback, cut."""
    left_out = [CUT] if len(lines) > TRACEBACK_LINES else []
    return left_out + [cut(line, LONGEST_MESSAGE) for line in lines[-TRACEBACK_LINES:]]


def printable(text: str) -> str:
    """Escape what could move the cursor, end the line or turn its direction."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


class _Guarded:
    """Stands for a value whose texts are cut."""

    __slots__ = ("_longest", "_value")

    def __init__(self, value: object) -> None:
        self._value = value
        self._longest = LONGEST_WORDS if isinstance(value, BaseException | ComposedText) else LONGEST_VALUE

    def __str__(self) -> str:
        return cut(str(self._value), self._longest)

    def __repr__(self) -> str:
        if isinstance(self._value, str):
            return repr(cut(self._value, self._longest))  # so that it has both its quotes
        return cut(repr(self._value), self._longest)


def _guarded(value: object) -> object:
    return value if value is None or isinstance(value, int | float) else _Guarded(value)
