"""What is sent: a case, and which of its findings are new to the destination.

The JSON has `id`, the same for each try to send the same alert, so that receivers can drop a second copy; `case.id`
stays when a case grows, so that receivers can join its alerts; and `text`, which chats such as Slack show.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kafka_dt.pipeline.cases import Case, Sighting

VERSION: Final = 1
"""Grows when a key changes its meaning or goes away."""
_ID_LENGTH: Final = 16
_NAMES: Final = 3
"""How many owners and addresses of a case a title has."""
_LONGEST: Final = 200
"""How long a line of the text may be; clients choose some of it."""


@dataclass(frozen=True, slots=True)
class Alert:
    """Tells of a case."""

    case: Case
    new: tuple[Sighting, ...]
    """The findings that were not told before."""

    @property
    def id(self) -> str:
        """Its name: 16 hex digits, the same for the same case with the same new findings."""
        about = json.dumps([self.case.id, sorted(each.id for each in self.new)])
        return hashlib.sha256(about.encode()).hexdigest()[:_ID_LENGTH]

    @property
    def title(self) -> str:
        """One line: the severity, who, and from where."""
        case = self.case
        who = ", ".join(case.owners[:_NAMES]) or "no owner"
        where = f" from {', '.join(case.addresses[:_NAMES])}" if case.addresses else ""
        return _line(f"[{case.severity}] {who}{where}")

    @property
    def text(self) -> str:
        """A few lines for people."""
        case = self.case
        when = f"{case.first_seen:%Y-%m-%d %H:%M} to {case.last_seen:%Y-%m-%d %H:%M} UTC, {case.id}"
        return "\n".join(
            [self.title, when, *map(_line, case.why), *filter(None, (case.ending.why, case.ending.command))]
        )

    def as_document(self) -> dict[str, Any]:
        """Give it as JSON's types."""
        return {
            "version": VERSION,
            "id": self.id,
            "text": self.text,
            "new_findings": [each.id for each in self.new],
            "case": self.case.as_document(),
        }

    def as_json(self) -> str:
        """Write it as one line of JSON, in ASCII."""
        return json.dumps(self.as_document(), separators=(",", ":"))


def _line(text: str) -> str:
    shown = "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
