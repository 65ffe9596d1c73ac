"""The code in the project's Markdown: fenced blocks, by language, each with the comments above it.

for block in blocks("README.md", "python"): ...

Pages are read by markdown-it-py, as MyST reads them for the manual: a block in a list is a block, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[3]
LAST_RELEASE = "30a5da12c8f476da33dfbe8902f358b90c6e8185"
"""The commit of 0.1.0, from which docs/how-to/upgrade.md leads to this version."""
_COMMENT = re.compile(r"<!-- (?P<key>[\w -]+?)(?:: (?P<value>.*?))? -->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    document: str
    """Path from the project's root."""
    line: int
    """Of its first line of code."""
    text: str
    language: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    """The comments right above it: `<!-- key: value -->`."""

    def __str__(self) -> str:
        """Name it for people."""
        return f"{self.document}:{self.line}"


def documents() -> list[str]:
    """Every page that people wrote, as a path from the project's root."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(str(page.relative_to(ROOT)) for page in pages if "_build" not in page.parts)


def read(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


@cache
def all_blocks(document: str) -> tuple[Block, ...]:
    """The blocks of a page in their order."""
    return tuple(_blocks(document))


def blocks(document: str, language: str) -> list[Block]:
    """The blocks of a language in a page."""
    return [block for block in all_blocks(document) if block.language == language]


def marked(document: str, mark: str) -> list[str]:
    """The blocks of a page that stand right below `<!-- mark -->`, one at least."""
    found = [block.text for block in all_blocks(document) if mark in block.notes]
    assert found, f"{document} has no block below <!-- {mark} -->"
    return found


def _blocks(document: str) -> Iterator[Block]:
    notes: dict[str, str] = {}
    for token in MarkdownIt().parse(read(document)):
        if token.type == "html_block":
            found = _COMMENT.finditer(token.content)
            notes |= {match["key"]: " ".join((match["value"] or "").split()) for match in found}
            continue
        if token.type == "fence" and token.map is not None:
            language = token.info.partition(" ")[0]
            yield Block(document, token.map[0] + 2, token.content, language, notes)
        notes = {}
