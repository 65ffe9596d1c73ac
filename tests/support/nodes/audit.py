"""Audit events in tests: kept in a list, or read from the files of a node.

log = RecordedEvents()
shell = Shell(recorder=log.recorder)
log.told()                              # [{"type": "login", ...}], what would be in a file

trail = AuditFolder(folder)             # {**properties, **trail.properties()} for a node
trail.wait_for(1, type="login", outcome="ok", principal="User:alice")
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka_dt.audit import AuditEvent
from kafka_dt.audit.chained_files import ChainedFiles
from kafka_dt.audit.delivery import SinkFailed
from kafka_dt.audit.durability import Place
from kafka_dt.audit.encoding import encode
from kafka_dt.audit.line_file import whole_lines
from kafka_dt.audit.recorder import Recorder
from tests.support.processes.waiting import eventually

NODE = "kdt1-0"
INSTANCE = "0123456789abcdef"
NOW = 1_700_000_000_000
WITHIN_S = 10.0

Event = dict[str, Any]
"""An event as JSON has it."""


def write_durably(files: ChainedFiles, lines: Sequence[bytes]) -> None:
    """Write a batch as a node's delivery does, and take it back if that fails."""
    try:
        if not files.has_room(lines):
            files.make_room(lines)
        os.fdatasync(files.write(lines))
        files.confirm()
    except SinkFailed:
        files.take_back()
        raise


@dataclass
class RecordedEvents:
    """A log that keeps its events."""

    events: list[AuditEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.recorder = Recorder(self, node=NODE, instance=INSTANCE, now_ms=lambda: NOW)

    def record(self, event: AuditEvent) -> Place:
        """Keep an event."""
        self.events.append(event)
        return ()

    def told(self) -> list[Event]:
        """What was recorded since the last call, without what is the same for all."""
        made = [json.loads(encode(event)) for event in self.events]
        self.events.clear()
        for event in made:
            assert event.pop("version") == 1
            assert event.pop("id").startswith(f"{INSTANCE}-")
            assert (event.pop("time"), event.pop("node")) == (NOW, NODE)
        return made


@dataclass
class AuditFolder:
    """The folder that nodes write their events to."""

    path: Path

    def properties(self, **more: object) -> dict[str, object]:
        """Settings of a node; `more` are settings below `kafka.dt.audit.`, with `_` for each `.`."""
        own = {"log.dir": self.path, "node.name": "kdt1"}
        others = {key.replace("_", "."): value for key, value in more.items()}
        return {f"kafka.dt.audit.{key}": value for key, value in (own | others).items()}

    def text(self) -> str:
        """All whole lines of the files, complete ones or not: of an open one a node may be writing the last line."""
        files = [*self.path.glob("*.jsonl"), *self.path.glob("*.jsonl.open")]
        return b"".join(whole_lines(path.read_bytes()) for path in sorted(files)).decode("ascii")

    def events(self, **wanted: object) -> list[Event]:
        """The events so far that have these values, in the order in which each worker wrote them."""
        found = map(json.loads, self.text().splitlines())
        return [event for event in found if all(event.get(key) == value for key, value in wanted.items())]

    def wait_for(self, count: int = 1, **wanted: object) -> list[Event]:
        """Wait until `count` events have these values; gives them. Fails if more than `count` have them."""
        eventually(lambda: len(self.events(**wanted)) >= count, WITHIN_S)
        found = self.events(**wanted)
        assert len(found) == count, found
        return found
