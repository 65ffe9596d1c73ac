"""The code in the project's Markdown: fenced blocks, by language.

for block in blocks("README.md", "python"): ...
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
_FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    document: str
    """Path from the project's root."""
    line: int
    """Of its first line of code."""
    text: str

    def __str__(self) -> str:
        """Name it for people."""
        return f"{self.document}:{self.line}"


def documents() -> list[str]:
    """Every page that people wrote, as a path from the project's root."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(str(page.relative_to(ROOT)) for page in pages if "_build" not in page.parts)


def read(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def blocks(document: str, language: str) -> list[Block]:
    """The blocks of a language in a page."""
    text = read(document)
    return [
        Block(document, text.count("\n", 0, match.start("text")) + 1, match["text"])
        for match in _FENCE.finditer(text)
        if match["language"] == language
    ]


def marked(document: str, mark: str) -> list[str]:
    """The blocks of a page that stand right below `<!-- mark -->`, one at least."""
    found = re.findall(rf"^<!-- {mark} -->\n```\w+\n(.*?)^```$", read(document), re.MULTILINE | re.DOTALL)
    assert found, f"{document} has no block below <!-- {mark} -->"
    return found
