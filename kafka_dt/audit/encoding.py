"""An event as one line of JSON.

    line = encode(event)        # ends with a line feed

ASCII alone, so that no reader of text can find a line's end inside a line, whatever clients call themselves. Fields
that are None are left out, the others are in the order of the schema.

What clients say may be long. A line that would be over `LONG_LINE_BYTES` has its texts and lists cut, so that no line
is longer than what a topic takes in a record.

Source: RFC 8259.
"""

from __future__ import annotations

import json
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final

from kafka_dt.audit.event import AuditEvent

LONG_LINE_BYTES: Final = 16 * 1024
LONGEST_TEXT: Final = 500
"""To how many characters a text of a long line is cut, the mark of the cut included."""
LONGEST_LIST: Final = 50
"""To how many entries a list of a long line is cut."""
CUT: Final = "…"
"""Stands at the end of a text that was cut."""

_NAMES: Final = tuple(each.name for each in fields(AuditEvent))
_VALUES: Final = attrgetter(*_NAMES)
_JSON: Final = json.JSONEncoder(separators=(",", ":"))


def encode(event: AuditEvent) -> bytes:
    """Write an event as a line."""
    found = {name: value for name, value in zip(_NAMES, _VALUES(event), strict=True) if value is not None}
    text = _JSON.encode(found)
    if len(text) >= LONG_LINE_BYTES:
        text = _JSON.encode({name: _cut(value) for name, value in found.items()})
    return text.encode("ascii") + b"\n"


def _cut(value: Any) -> Any:
    match value:
        case str() if len(value) > LONGEST_TEXT:
            return value[: LONGEST_TEXT - len(CUT)] + CUT
        case tuple():
            return tuple(_cut(each) for each in value[:LONGEST_LIST])
    return value
