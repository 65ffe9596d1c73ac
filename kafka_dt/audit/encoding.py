"""An event as one line of JSON.

    line = encode(event)        # ends with a line feed

The line is ASCII, so that no reader of text finds a line's end inside it, whatever clients call themselves. Fields
that are None are left out; the others are in the order of the schema.

Clients choose names, and names may be long. So texts and lists are cut before they are encoded, and a line takes no
more bytes than a topic takes in a record. Only what a successful change did is written whole: the ACL, the user, the
token that was created.

Source: RFC 8259.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final

from kafka_dt.audit.event import AuditEvent, EventType, Outcome

LONGEST_TEXT: Final = 500
"""To how many characters a text is cut, the mark of the cut included."""
LONGEST_CLAIM: Final = 200
"""The same for what a client calls itself, and for the entries of a list."""
LONGEST_LIST: Final = 50
"""To how many entries a list is cut."""
LIST_BYTES: Final = 4096
"""What the entries of a list that is cut take in JSON, at most: a request of a hundred bytes may repeat it."""
LONGEST_LINE: Final = 768 * 1024
"""How many characters the event of a successful change may take before it is cut as the others are."""
CUT: Final = "…"
"""Stands at the end of a text that was cut."""

_NAMES: Final = tuple(each.name for each in fields(AuditEvent))
_VALUES: Final = attrgetter(*_NAMES)
_JSON: Final = json.JSONEncoder(separators=(",", ":"))
_CLAIMS: Final = frozenset({"client_id", "client_software", "client_software_version", "mechanism"})
_CHANGES: Final = frozenset(
    {
        EventType.TOKEN_CREATED,
        EventType.ACL_CREATED,
        EventType.ACL_DELETED,
        EventType.SCRAM_USER_CHANGED,
        EventType.KEYS_CHANGED,
    }
)
"""What is written whole when it has succeeded; the other events repeat what one of these has said."""


def encode(event: AuditEvent) -> bytes:
    """Write an event as a line."""
    found = {name: value for name, value in zip(_NAMES, _VALUES(event), strict=True) if value is not None}
    if event.outcome is Outcome.OK and event.type in _CHANGES and _characters(found) <= LONGEST_LINE:
        text = _JSON.encode({name: _cut(name, value) if name in _CLAIMS else value for name, value in found.items()})
        if len(text) <= LONGEST_LINE:
            return text.encode("ascii") + b"\n"
    return _JSON.encode({name: _cut(name, value) for name, value in found.items()}).encode("ascii") + b"\n"


def shortened(text: str, longest: int = LONGEST_TEXT) -> str:
    """Cut a text to a number of characters, the mark of the cut included."""
    return text if len(text) <= longest else text[: longest - len(CUT)] + CUT


def _cut(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return shortened(value, LONGEST_CLAIM if name in _CLAIMS else LONGEST_TEXT)
    if isinstance(value, tuple):
        return tuple(_first_entries(value))
    return value


def _first_entries(entries: tuple[str, ...]) -> Iterator[str]:
    left = LIST_BYTES
    for each in entries[:LONGEST_LIST]:
        entry = shortened(each, LONGEST_CLAIM)
        left -= len(_JSON.encode(entry))
        if left < 0:
            return
        yield entry


def _characters(found: dict[str, Any]) -> int:
    """Count the characters of the texts, also of those in lists."""
    return sum(
        len(value) if isinstance(value, str) else sum(map(len, value))
        for value in found.values()
        if isinstance(value, str | tuple)
    )
