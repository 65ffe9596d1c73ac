"""The folders of the code as a picture (SVG), drawn from the graph of their imports.

A box is a folder, or a file that stands directly in `kafka_dt/`. Its words are the first line of the docstring of its
`__init__.py` and the names of its own folders. An arrow says that a folder imports another one. Each folder stands in
a row above all that it imports. The picture leaves an arrow out if a path of other arrows connects the two folders.
Any folder may import `LEAVES`, so these have no arrows.

Source: the imports of `kafka_dt` and `kafka_dt_protocol`, as grimp (import-linter's graph) finds them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import Final

import grimp

ROOT: Final = Path(__file__).parents[2]
PROTOCOL: Final = "kafka_dt_protocol"
SERVER: Final = "kafka_dt"

LEAVES: Final = (
    "config",
    "jaas",
    "tls",
    "log",
    "lanes",
    "idle",
    "files",
    "clock",
    "extras",
    "security_protocol",
    "config_providers",
    "java_patterns",
    "properties_file",
)
"""Folders and files that any other one may import; they import only each other."""

_WIDTH: Final = 1000
_MARGIN: Final = 35
"""Left and right of all boxes: long arrows run there."""
_BOX_WIDTH: Final = 450
_LEFTS: Final = (_MARGIN, _WIDTH - _BOX_WIDTH - _MARGIN)
"""Where the boxes of a full row begin."""
_LINE, _GAP = 16, 34
_CHARACTERS, _MONOSPACED = 68, 62
"""How much stands in a line of a box."""

_STYLE: Final = """\
<style>
text { font: 12px sans-serif; fill: #1b1f24; }
.name { font: bold 13px monospace; }
.inside { font: 11px monospace; fill: #5a6572; }
.box { fill: #eef3fa; stroke: #41668f; }
.pure { fill: #e5f4e5; stroke: #3c7a3c; }
.leaf { fill: #f6f6f4; stroke: #8a8a80; }
.arrow { fill: none; stroke: #41668f; stroke-width: 1.4; stroke-linejoin: round; marker-end: url(#head); }
</style>
<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0L10 5L0 10z" fill="#41668f"/></marker></defs>
"""

_PURE: Final = frozenset({PROTOCOL, "tokens"})
"""Folders without I/O."""

Graph = Mapping[str, frozenset[str]]
"""A folder, and the folders that it imports."""


@dataclass(frozen=True, slots=True)
class _Box:
    """A folder at its place."""

    name: str
    words: list[str]
    inside: list[str]
    left: int
    top: int
    height: int

    @property
    def middle(self) -> int:
        return self.left + _BOX_WIDTH // 2

    def draw(self) -> str:
        """Write the box with its lines."""
        style = "leaf" if self.name in LEAVES else "pure" if self.name in _PURE else "box"
        lines = [("name", _path(self.name)), *(("", line) for line in self.words)]
        lines += [("inside", line) for line in self.inside]
        texts = (
            f'<text x="{self.left + 10}" y="{self.top + 18 + n * _LINE}" class="{kind}">{escape(line)}</text>\n'
            for n, (kind, line) in enumerate(lines)
        )
        size = f'width="{_BOX_WIDTH}" height="{self.height}"'
        return f'<rect class="{style}" x="{self.left}" y="{self.top}" {size} rx="6"/>\n{"".join(texts)}'


def page() -> str:
    """Return the picture as SVG."""
    graph = folders()
    boxes = _placed(rows(graph))
    leaves, height = _placed_leaves(max(box.top + box.height for box in boxes.values()) + _GAP)
    arrows = "".join(_arrow(boxes[a], boxes[b], boxes.values()) for a, b in sorted(arrows_of(graph)))
    drawn = "".join(box.draw() for box in (*boxes.values(), *leaves))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">\n'
        f"<title>The folders of kafka-dt and what they import</title>\n{_STYLE}"
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>\n{arrows}{drawn}</svg>\n'
    )


@cache
def folders() -> Graph:
    """Give the folders with what they import of each other, leaves left out.

    Raises:
        ValueError: a leaf imports a folder that is none.
    """
    graph = grimp.build_graph(PROTOCOL, SERVER, cache_dir=None)
    found: dict[str, set[str]] = {}
    for module in graph.modules - {SERVER}:
        imported = {_folder(other) for other in graph.find_modules_directly_imported_by(module) if other != SERVER}
        found.setdefault(_folder(module), set()).update(imported)
    for leaf in LEAVES:
        if upward := found.pop(leaf) - {*LEAVES}:
            raise ValueError(f"{leaf} is a leaf and imports {sorted(upward)}")
    return {name: frozenset(imported - {name, *LEAVES}) for name, imported in sorted(found.items())}


def rows(graph: Graph) -> list[list[str]]:
    """Give the rows of the picture, from the top: each folder is above everything that it imports.

    Raises:
        ValueError: folders import each other in a circle.
    """
    levels: dict[str, int] = {}
    while len(levels) < len(graph):
        known = [name for name in graph if name not in levels and graph[name] <= levels.keys()]
        if not known:
            raise ValueError(f"a circle of imports: {sorted(graph.keys() - levels.keys())}")
        levels |= {name: 1 + max((levels[each] for each in graph[name]), default=-1) for name in known}
    found: list[list[str]] = []
    for level in range(max(levels.values()), -1, -1):
        row = _in_order([name for name in graph if levels[name] == level], graph, found)
        found += (row[n : n + len(_LEFTS)] for n in range(0, len(row), len(_LEFTS)))
    return found


def arrows_of(graph: Graph) -> set[tuple[str, str]]:
    """Give the imports that no path of other imports stands for."""
    below = {name: _reached(graph, name) for name in graph}
    return {
        (name, other)
        for name, imported in graph.items()
        for other in imported
        if not any(other in below[between] for between in imported - {other})
    }


def _in_order(row: list[str], graph: Graph, above: list[list[str]]) -> list[str]:
    """Order a row so that few arrows cross: each folder below those with an arrow to it."""
    columns = {name: n if len(others) > 1 else 0.5 for others in above for n, name in enumerate(others)}
    arrows = arrows_of(graph)

    def column(name: str) -> float:
        users = [columns[user] for user, used in arrows if used == name]
        return sum(users) / len(users) if users else 0.5

    return sorted(row, key=column)


def _reached(graph: Graph, name: str) -> frozenset[str]:
    return graph[name].union(*(_reached(graph, each) for each in graph[name]))


def _folder(module: str) -> str:
    """Give the folder of a module: the part below `kafka_dt`, or the whole of the protocol."""
    first, *rest = module.split(".")
    return first if first == PROTOCOL else rest[0]


def _place(name: str) -> Path:
    if name == PROTOCOL:
        return ROOT / "protocol" / PROTOCOL
    folder = ROOT / SERVER / name
    return folder if folder.is_dir() else folder.with_suffix(".py")


def _path(name: str) -> str:
    place = _place(name)
    return f"{place.relative_to(ROOT)}{'/' if place.is_dir() else ''}"


def _words(name: str) -> list[str]:
    """Give the first line of a folder's docstring, in lines of a box; without the advice what to read."""
    place = _place(name)
    file = place / "__init__.py" if place.is_dir() else place
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return wrap(docstring.partition("\n")[0].partition(" Read `")[0].replace("`", ""), _CHARACTERS)


def _folders_inside(name: str) -> list[str]:
    place = _place(name)
    inside = (each.parent.name for each in place.glob("*/__init__.py")) if place.is_dir() else ()
    return wrap(" ".join(f"{each}/" for each in sorted(inside)), _MONOSPACED)


def _box(name: str, left: int, top: int) -> _Box:
    words, inside = _words(name), _folders_inside(name)
    return _Box(name, words, inside, left, top, 12 + _LINE * (1 + len(words) + len(inside)))


def _placed(names: list[list[str]]) -> dict[str, _Box]:
    boxes: dict[str, _Box] = {}
    top = 15
    for row in names:
        lefts = [(_WIDTH - _BOX_WIDTH) // 2] if len(row) == 1 else _LEFTS
        made = [_box(name, left, top) for name, left in zip(row, lefts, strict=True)]
        boxes |= {box.name: box for box in made}
        top += max(box.height for box in made) + _GAP
    return boxes


def _placed_leaves(top: int) -> tuple[list[_Box], int]:
    """Place the leaves in two columns; give them, and the height of the whole picture."""
    boxes: list[_Box] = []
    tops = dict.fromkeys(_LEFTS, top)
    for name in LEAVES:
        left = min(tops, key=lambda column: (tops[column], column))
        boxes.append(_box(name, left, tops[left]))
        tops[left] += boxes[-1].height + 8
    return boxes, max(tops.values()) + 8


def _arrow(start: _Box, end: _Box, boxes: Iterable[_Box]) -> str:
    """Draw an arrow from a box down to another one, past the boxes between."""
    x1, y1, x2, y2 = start.middle, start.top + start.height, end.middle, end.top
    lean = 30 * ((x2 > x1) - (x2 < x1))
    between = [
        box for box in boxes if y1 < box.top < y2 - _GAP and box.left < max(x1, x2) and _right(box) > min(x1, x2)
    ]
    if not between:
        return f'<path class="arrow" d="M{x1 + lean} {y1}L{x2 - lean} {y2}"/>\n'
    right = x1 + x2 >= _WIDTH
    outside = _WIDTH - _MARGIN // 2 if right else _MARGIN // 2
    x1, x2 = (_right(start), _right(end)) if right else (start.left, end.left)
    y1, y2 = start.top + start.height // 2, end.top + end.height // 2
    return f'<path class="arrow" d="M{x1} {y1}H{outside}V{y2}H{x2}"/>\n'


def _right(box: _Box) -> int:
    return box.left + _BOX_WIDTH
