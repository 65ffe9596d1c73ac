"""Whether a program prints what a page of the manual shows: the same lines, apart from values that differ in each run.

    fit = Shape("TOKENID  W23eVbJOQheJ-v0f6A8uRg\n...")
    fit.values("TOKENID    kkmtMmZ-RnCHxH7E7cA5Xw\nOWNER    User:alice")
    # {"W23eVbJOQheJ-v0f6A8uRg": "kkmtMmZ-RnCHxH7E7cA5Xw"}

Instants, ids, secrets, addresses, numbers and the widths of columns may differ. `...` stands for anything within a
line, and on a line of its own for any number of lines. Everything else has to be the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_KINDS: Mapping[str, tuple[str, str]] = {
    "instant": (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?Z?", r"\d{4}-\d\d-\d\d[T ][\d:.,]+Z?"),
    "secret": (r"[\w+/=-]{8,}\.\.\.", r"[\w+/=-]+"),
    "id": (r"(?<![\w-])(?=[\w-]*[a-z])(?=[\w-]*\d)[\w-]{15,24}(?![\w-])", r"[\w-]{15,24}"),
    "address": (r"(?<![\w.-])[a-z\d.-]+:\d{2,5}\b", r"[a-z\d.-]+:\d{2,5}"),
    "number": (r"\d(?:[\d,.]*\d)?", r"\d(?:[\d,.]*\d)?"),
    "anything": (r"\.\.\.|…", r".*?"),
    "rule": (r"[─═━]{3,}", r"[─═━]+"),
    "blanks": (r"[ \t]+", r"[ \t]+"),
}
"""What may differ: a name, how a page shows it, what a program may print in its place. The first that fits counts."""
_BOUND = frozenset({"secret", "id", "address"})
"""The kinds whose values a reader takes from the output for the next command."""
_SHOWN = re.compile("|".join(f"(?P<{name}>{shown})" for name, (shown, _) in _KINDS.items()))

_COUNTED = re.compile(r"(\d (?:live )?(?:fault|file|key|line|token|warning|worker))s\b")
"""What is counted; of one there is no plural."""
_ANY_LINES = "(?:.*\n)*?"


class OtherShape(AssertionError):
    """A program did not print what its page shows."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a page shows."""

    shown: str

    def values(self, printed: str) -> dict[str, str]:
        """Give what was printed in the place of each value that the page shows; raises OtherShape."""
        names: list[str] = []
        lines = "\n".join(self._line(line, names) for line in _COUNTED.sub(r"\1", self.shown).strip().splitlines())
        expression = lines.replace(f"{_ANY_LINES}\n", _ANY_LINES)
        text = "\n".join(line.rstrip() for line in _COUNTED.sub(r"\1", printed).strip().splitlines())
        match = re.fullmatch(expression, text) or re.fullmatch(expression, f"{text}\n")
        if match is None:
            raise OtherShape(f"the page shows:\n\n{self.shown}\nprinted was:\n\n{printed}")
        return dict(zip(names, match.groups(), strict=True))

    @staticmethod
    def _line(line: str, names: list[str]) -> str:
        if line.strip() in {"...", "…"}:
            return _ANY_LINES
        parts, end = [], 0
        for found in _SHOWN.finditer(line.rstrip()):
            assert found.lastgroup is not None
            parts.append(re.escape(line[end : found.start()]))
            printed = _KINDS[found.lastgroup][1]
            if found.lastgroup in _BOUND:
                names.append(found[0])
                printed = f"({printed})"
            parts.append(printed)
            end = found.end()
        return "".join(parts) + re.escape(line.rstrip()[end:])
