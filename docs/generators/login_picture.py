"""The states of a login as a picture (SVG), drawn from the table of protocol/kafka_dt_protocol/login/authentication.py.

Only the places of the boxes are chosen here; boxes, arrows and their texts come from the table. A state without a place
is an error, as is an arrow without a way.

Source: protocol/kafka_dt_protocol/login/authentication.py; the picture of h11's states, made by its
`docs/source/make-state-diagrams.py`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from docs.generators.login_states import ACTIONS, REQUESTS
from kafka_dt_protocol.login.authentication import TRANSITIONS, VIOLATION, State

_WIDTH, _HEIGHT = 1490, 400
_BOX_WIDTH, _LINE = 215, 17
_PLACES: Final = {
    State.INITIAL: (15, 165),
    State.VERSIONS_KNOWN: (325, 165),
    State.EXCHANGE: (635, 20),
    State.BARE_EXCHANGE: (635, 310),
    State.READY: (945, 150),
    State.REAUTHENTICATING: (1260, 20),
    State.BARE_REAUTHENTICATING: (1260, 310),
}
"""The upper left corner of each box; CLOSING is what the last line of the others says."""

_LOGINS: Final = (
    (State.EXCHANGE, State.READY),
    (State.BARE_EXCHANGE, State.READY),
    (State.REAUTHENTICATING, State.READY),
    (State.BARE_REAUTHENTICATING, State.READY),
)
"""Where the success of a mechanism leads, which is not a request of its own."""

_STYLE: Final = """\
<style>
text { font: 12px sans-serif; fill: #1b1f24; }
.name { font-weight: bold; }
.else { fill: #8b2500; }
.box { fill: #eef3fa; stroke: #41668f; }
.ready { fill: #e5f4e5; stroke: #3c7a3c; }
.arrow { fill: none; stroke: #41668f; stroke-width: 1.4; marker-end: url(#head); }
.login { stroke: #3c7a3c; stroke-dasharray: 6 4; }
.label { paint-order: stroke; stroke: #fff; stroke-width: 4px; text-anchor: middle; }
</style>
<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0L10 5L0 10z" fill="#555"/></marker></defs>
"""


@dataclass(frozen=True, slots=True)
class _Box:
    """A state and what it says."""

    state: State
    lines: tuple[str, ...]

    @property
    def left(self) -> int:
        return _PLACES[self.state][0]

    @property
    def top(self) -> int:
        return _PLACES[self.state][1]

    @property
    def height(self) -> int:
        return _LINE * (len(self.lines) + 1) + 12

    def draw(self) -> str:
        """Write the box with its lines."""
        kind = "box ready" if self.state is State.READY else "box"
        size = f'width="{_BOX_WIDTH}" height="{self.height}"'
        texts = [_text(self.left + 10, self.top + 19, self.state.name, "name")]
        for number, line in enumerate(self.lines, start=1):
            style = "else" if number == len(self.lines) else ""
            texts.append(_text(self.left + 10, self.top + 19 + number * _LINE, line, style))
        return f'<rect class="{kind}" x="{self.left}" y="{self.top}" {size} rx="6"/>\n' + "".join(texts)


def page() -> str:
    """Return the picture as SVG."""
    boxes = {state: _Box(state, tuple(_lines(state))) for state in _PLACES}
    arrows = "".join(_arrow(boxes[a], boxes[b], label) for (a, b), label in _moves().items())
    logins = "".join(_arrow(boxes[a], boxes[b], "mechanism succeeds", login=True) for a, b in _LOGINS)
    drawn = "".join(box.draw() for box in boxes.values())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">\n'
        f"<title>The states of a login</title>\n{_STYLE}"
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>\n{arrows}{logins}{drawn}</svg>\n'
    )


def _moves() -> dict[tuple[State, State], str]:
    """Give the arrows: from, to, and the requests that take it."""
    found: dict[tuple[State, State], list[str]] = defaultdict(list)
    for (state, request), (_, following) in TRANSITIONS.items():
        if following is not state:
            found[state, following].append(REQUESTS[request])
    return {ends: ", ".join(requests) for ends, requests in found.items()}


def _lines(state: State) -> list[str]:
    """Say what a state takes without leaving it, and what everything else costs."""
    stays = [
        f"{REQUESTS[request]}: {ACTIONS[action]}"
        for (at, request), (action, following) in TRANSITIONS.items()
        if at is state is following
    ]
    return [*stays, f"else: {ACTIONS[VIOLATION[state][0]]}"]


def _arrow(start: _Box, end: _Box, label: str, *, login: bool = False) -> str:
    """Draw a curve between two boxes; the way back of a login runs beside the way there."""
    forward = start.left < end.left
    up = end.top < start.top
    shift = 16 * (1 if up else -1) if login and not forward else 0
    y1, y2 = _side(start, end), _side(end, start)
    x1, x2 = (start.left + _BOX_WIDTH, end.left) if forward else (start.left, end.left + _BOX_WIDTH)
    if abs(end.left - start.left) > 2 * _BOX_WIDTH:  # over the box between
        x1, y1 = start.left + _BOX_WIDTH // 2, start.top if up else start.top + start.height
        x2, y2 = end.left, end.top + 20 if up else end.top + end.height - 20
        curve = f"M{x1} {y1}C{x1} {y2} {x1} {y2} {x2} {y2}"
        where = ((x1 + x2) // 2, y2 - 6 if up else y2 + 16)
    else:
        y1, y2 = y1 + shift, y2 + shift
        middle = (x1 + x2) // 2
        curve = f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"
        where = (middle, y1 - 6 if y1 == y2 else (y1 + y2) // 2)
    style = "arrow login" if login else "arrow"
    return f'<path class="{style}" d="{curve}"/>\n' + _text(*where, label, "label")


def _side(box: _Box, other: _Box) -> int:
    """Where an arrow touches a box's side: nearer to where the other box is."""
    lean = (other.top > box.top) - (other.top < box.top)
    return box.top + box.height // 2 + lean * box.height // 4


def _text(x: int, y: int, text: str, style: str = "") -> str:
    return f'<text x="{x}" y="{y}" class="{style}">{text}</text>\n'
