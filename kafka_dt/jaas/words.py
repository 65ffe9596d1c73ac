"""The words of JAAS: Java's StreamTokenizer as Kafka and Java's own reader of login files set it up.

Source: java.io.StreamTokenizer; org.apache.kafka.common.security.JaasConfig.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator


class JaasError(ValueError):
    """A text is not JAAS, or not what Kafka accepts of it.

    Its text never quotes what was read: that may be a password.
    """

    def __init__(self, reason: str, position: int | None = None) -> None:
        self.reason = reason
        self.position = position
        """Characters before the place where reading stopped; None when the text as a whole is wrong."""
        place = "" if position is None else f" at character {position + 1}"
        super().__init__(f"JAAS configuration not understood{place}: {reason}")


# Java's tables: blanks are 0-32; letters are a-z, A-Z, from 160 on, and - _ $; in files also *.
_BLANKS_AND_COMMENTS: Final = re.compile(r"(?:[\x00-\x20]+|/\*.*?\*/|/(?!\*)[^\r\n]*)+", re.DOTALL)
_UNQUOTED: Final = re.compile("[a-zA-Z_$*\u00a0-\U0010ffff][a-zA-Z0-9_$*.\u00a0-\U0010ffff-]*")
_QUOTED: Final = re.compile(r"""(?P<quote>["'])(?P<body>(?:\\.|(?!(?P=quote))[^\\\r\n])*)(?P=quote)""", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:(?P<octal>[0-3][0-7]{0,2}|[4-7][0-7]?)|(?P<other>.))", re.DOTALL)
_ESCAPED_CONTROLS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Words:
    """The words of a JAAS text, taken one by one."""

    def __init__(self, text: str) -> None:
        self._end = len(text)
        self._rest = _split(text)
        self._next = next(self._rest, None)

    @property
    def at_end(self) -> bool:
        """Whether every word was taken."""
        return self._next is None

    @property
    def position(self) -> int:
        """Characters before the next word."""
        return self._end if self._next is None else self._next.position

    def take_text(self, expected: str) -> str:
        """Take a word or quoted text; `expected` names it in the JaasError that is raised when there is none."""
        word = self._next
        if word is None or word.is_symbol:
            raise JaasError(f"expected {expected}", self.position)
        self._next = next(self._rest, None)
        return word.text

    def take_symbol(self, symbol: str) -> None:
        """Take a symbol, one character; raises JaasError when something else comes."""
        if not self.skip_symbol(symbol):
            raise JaasError(f"expected '{symbol}'", self.position)

    def skip_symbol(self, symbol: str) -> bool:
        """Take a symbol if it is next, and say whether it was."""
        word = self._next
        if word is None or not word.is_symbol or word.text != symbol:
            return False
        self._next = next(self._rest, None)
        return True


def quoted_if_needed(text: str) -> str:
    """Return a text as it is if it is a plain word, else in quotes."""
    return text if _UNQUOTED.fullmatch(text) and "*" not in text else quoted(text)


def quoted(text: str) -> str:
    """Return a text in double quotes, on one line whatever it holds."""
    escaped = text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n").replace("\r", r"\r")
    return f'"{escaped}"'


@dataclass(frozen=True, slots=True)
class _Word:
    position: int
    text: str = field(repr=False)
    is_symbol: bool


def _split(text: str) -> Iterator[_Word]:
    position = 0
    while True:
        if blank := _BLANKS_AND_COMMENTS.match(text, position):
            position = blank.end()
        if position == len(text):
            return
        if word := _UNQUOTED.match(text, position):
            yield _Word(position, word.group(), is_symbol=False)
            position = word.end()
        elif quoted := _QUOTED.match(text, position):
            yield _Word(position, _ESCAPE.sub(_unescape, quoted["body"]), is_symbol=False)
            position = quoted.end()
        else:
            yield _symbol(text, position)
            position += 1


def _symbol(text: str, position: int) -> _Word:
    symbol = text[position]
    if symbol in "\"'":
        raise JaasError("a quoted text does not end on its line", position)
    if symbol == "/":
        raise JaasError("a comment does not end", position)
    if symbol.isdigit() or symbol in ".-":
        raise JaasError("a value that starts with a digit, '.' or '-' needs double quotes", position)
    return _Word(position, symbol, is_symbol=True)


def _unescape(match: re.Match[str]) -> str:
    if octal := match["octal"]:
        return chr(int(octal, 8))
    return _ESCAPED_CONTROLS.get(match["other"], match["other"])
