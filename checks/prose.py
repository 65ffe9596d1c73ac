"""Phrases that readers must decode, in every sentence of the tree: `python -m checks.prose`, part of `make lint`.

`phrases.toml` holds the phrases, each with its better form. The check reads Markdown without its code blocks, and the
comments and strings of Python, and whole other files. A wire text that clients compare with a broker's stays as it
is: `phrases.toml` lists it under `[kept]`.

Exit status: 0 no phrase found; 1 phrases, each with its place and its better form.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

ROOT: Final = Path(__file__).resolve().parent.parent
PHRASES: Final = Path(__file__).with_name("phrases.toml")
_FENCE: Final = re.compile(r"^\s*(```|~~~)")
_PROSE_TOKENS: Final = frozenset(
    {
        tokenize.COMMENT,
        tokenize.STRING,
        *(getattr(tokenize, name) for name in ("FSTRING_MIDDLE",) if hasattr(tokenize, name)),
    }
)


@dataclass(frozen=True, slots=True)
class Rule:
    """Phrases to avoid: a pattern, and the advice that replaces them."""

    pattern: re.Pattern[str]
    better: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One phrase in one line of one file."""

    path: str
    line: int
    phrase: str
    better: str

    def __str__(self) -> str:
        """Say where the phrase is and what to write instead."""
        return f"{self.path}:{self.line}: {self.phrase!r}: {self.better}"


def rules(document: str) -> tuple[list[Rule], list[str]]:
    """Read `phrases.toml`.

    Returns:
        The rules, and the texts that stay as they are.

    """
    table = tomllib.loads(document)
    phrases: Mapping[str, str] = table["phrases"]
    found = [Rule(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), better) for pattern, better in phrases.items()]
    return found, list(table.get("kept", {}).get("texts", []))


def findings(path: str, text: str, judged: Iterable[Rule], kept: Iterable[str] = ()) -> Iterator[Finding]:
    """Find the phrases of one file.

    Args:
        path: its path; the suffix says how to read it
        text: its content
        judged: the rules
        kept: texts to leave out

    """
    exempt = list(kept)
    judged = list(judged)
    for line, words in _prose(path, text):
        for each in exempt:
            words = words.replace(each, "")  # noqa: PLW2901  # the line without the texts that stay
        for rule in judged:
            for match in rule.pattern.finditer(words):
                yield Finding(path, line, match[0], rule.better)


def _prose(path: str, text: str) -> Iterator[tuple[int, str]]:
    if path.endswith(".py"):
        return _of_python(text)
    if path.endswith(".md"):
        return _of_markdown(text)
    return enumerate(text.splitlines(), 1)


def _of_markdown(text: str) -> Iterator[tuple[int, str]]:
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            yield number, line


def _of_python(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _PROSE_TOKENS:
            yield from enumerate(token.string.splitlines(), token.start[0])


def main(say: Callable[[str], object], paths: Iterable[str]) -> int:
    """Check files of the tree; returns the exit status."""
    judged, kept = rules(PHRASES.read_text(encoding="utf-8"))
    found = [
        finding for path in paths for finding in findings(path, (ROOT / path).read_text(encoding="utf-8"), judged, kept)
    ]
    for finding in found:
        say(str(finding))
    say(f"{len(found)} phrases to replace" if found else "No phrase of checks/phrases.toml is in the tree.")
    return 1 if found else 0


def read_files() -> list[str]:
    """Return the paths of the files that people read, relative to the root: those that git knows or would add."""
    command = [
        "git",
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "*.md",
        "*.py",
        "*.toml",
        "Makefile",
        ".ci/run",
    ]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    own = {"checks/phrases.toml", "tests/unit/checks/test_prose.py"}
    return [path for path in listed if path not in own and (ROOT / path).is_file()]


if __name__ == "__main__":
    sys.exit(main(print, read_files()))
