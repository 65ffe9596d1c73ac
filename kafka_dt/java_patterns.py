"""Java's regular expressions as far as Python's `re` knows them: the rules that make principals of names are Java's.

Named groups are translated. A set of characters in another one (`[a-z[0-9]]`) and an intersection (`[a-z&&[^b]]`) are
refused: Python reads them as other sets, so a rule would fit other names.

Source: java.util.regex.Pattern, java.util.regex.Matcher.replaceAll.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_NAMED_GROUP: Final = re.compile(r"(?<!\\)\(\?<(?=[A-Za-z])")
# A set can be read in one way only: with two, each further set of a pattern would double the time.
_SET: Final = r"\[(?:\^|(?!\^))(?:\]|(?!\]))(?:\\.|[^\\\]\[&]|&(?!&))*"
_SET_OF_SETS: Final = re.compile(rf"(?:\\.|[^\\\[]|{_SET}\])*{_SET}(?:\[|&&)", re.DOTALL)


def compiled(java: str) -> re.Pattern[str]:
    r"""Compile a pattern; as in Java `\w` and its like are ASCII's.

    Raises:
        re.error: it cannot be read.
    """
    if _SET_OF_SETS.match(java):
        raise re.error("a set of characters in another one is not supported")
    try:
        return re.compile(_NAMED_GROUP.sub("(?P<", java), re.ASCII)
    except (ValueError, OverflowError) as error:  # Java's `(?u)`, which is against ASCII's letters; a huge number
        raise re.error(str(error)) from None


def replace_all(pattern: re.Pattern[str], text: str, replacement: Callable[[re.Match[str]], str]) -> str:
    """Replace every match; as in Java, and not in Python, the character behind an empty match stays."""
    pieces: list[str] = []
    end = start = 0
    while start <= len(text) and (match := pattern.search(text, start)):
        pieces += text[end : match.start()], replacement(match)
        end = match.end()
        start = end + (match.start() == end)
    return "".join((*pieces, text[end:]))
