"""What really happened, as a generator knows it: incidents, and honest events that look like one.

    stories = load_stories(folder / TRUTH)

A `Story` gathers the ids of its events while they are written. `visible` says whether the events of an incident differ
at all from what the owner of the token and owners of its kind do; `differs` says in what. A story with `incident` false
is honest: a finding about it is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kafka_dt.audit import AuditEvent

EVENTS: Final = "events"
"""The folder of the events."""
TRUTH: Final = "truth.jsonl"
"""The file with the stories, beside that folder."""


@dataclass(slots=True)
class Story:
    """One incident, or one series of honest events that looks like one."""

    name: str
    kind: str
    incident: bool
    owners: set[str] = field(default_factory=set)
    """The owners of the tokens that it is about."""
    principals: set[str] = field(default_factory=set)
    """The principals in whose name it was done."""
    token_ids: set[str] = field(default_factory=set)
    addresses: set[str] = field(default_factory=set)
    differs: set[str] = field(default_factory=set)
    """In what its events differ from what the owners and their kind do: zone, software, hour, ..."""
    until_ms: int | None = None
    """From when on the work of those who are in it is daily work again."""
    event_ids: list[str] = field(default_factory=list)
    first_ms: int | None = None
    last_ms: int | None = None

    @property
    def visible(self) -> bool:
        """Whether an observer of the events could tell it from honest work."""
        return bool(self.differs)

    def saw(self, event: AuditEvent) -> None:
        """Take an event of the story, as it is written."""
        if self.until_ms is not None and event.time > self.until_ms:
            return
        self.event_ids.append(event.id)
        self.first_ms = event.time if self.first_ms is None else min(self.first_ms, event.time)
        self.last_ms = event.time if self.last_ms is None else max(self.last_ms, event.time)
        for value, found in (
            (event.token_id, self.token_ids),
            (event.client_address, self.addresses),
            (event.owner, self.owners),
            (event.principal, self.principals),
        ):
            if value is not None:
                found.add(value)

    def as_json(self) -> dict[str, Any]:
        """Give what a file of truths has of it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "incident": self.incident,
            "visible": self.visible,
            "differs": sorted(self.differs),
            "owners": sorted(self.owners),
            "principals": sorted(self.principals),
            "token_ids": sorted(self.token_ids),
            "addresses": sorted(self.addresses),
            "first_ms": self.first_ms,
            "last_ms": self.last_ms,
            "event_ids": self.event_ids,
        }


def save_stories(path: Path, stories: Iterable[Story]) -> None:
    """Write a line of JSON for each story."""
    with path.open("w", encoding="ascii") as file:
        file.writelines(json.dumps(each.as_json()) + "\n" for each in stories)


def load_stories(path: Path) -> list[Story]:
    """Read what `save_stories` wrote."""
    return [_story(json.loads(line)) for line in path.read_text(encoding="ascii").splitlines()]


def _story(row: dict[str, Any]) -> Story:
    return Story(
        name=row["name"],
        kind=row["kind"],
        incident=row["incident"],
        owners=set(row["owners"]),
        principals=set(row["principals"]),
        token_ids=set(row["token_ids"]),
        addresses=set(row["addresses"]),
        differs=set(row["differs"]),
        event_ids=row["event_ids"],
        first_ms=row["first_ms"],
        last_ms=row["last_ms"],
    )
