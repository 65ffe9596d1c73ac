"""Writes the events of a part as the server writes them: JSON lines, in files of whole lines that are named alike.

    audit-kafka-dt-1-0-20261001T000012Z-0.jsonl

A file is written under another name first. Its time of modification is that of its last event, for a reader takes
files in this order, and a month that was made in a minute has to be read in the order in which it happened. Files roll
at midnight and by size, not every few minutes.

Source: kafka_dt/audit/files.py
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from kafka_dt.audit.encoding import encode
from kafka_dt.audit.line_file import OPEN
from kafka_dt.pipeline.errors import PipelineError
from kafka_dt.pipeline.generator.scenario import SECOND_MS, utc

if TYPE_CHECKING:
    from kafka_dt.audit import AuditEvent
    from kafka_dt.pipeline.generator.parts import Part

FILE_BYTES: Final = 64 * 1024 * 1024
"""When a file is full."""


class FolderInUse(PipelineError):
    """There are events already, of something else."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder} has audit events of something else; name a folder that is empty or does not exist")
        self.folder = folder


@dataclass(frozen=True, slots=True)
class Written:
    """How much there is."""

    events: int = 0
    files: int = 0
    size_bytes: int = 0

    def __add__(self, other: Written) -> Written:
        return Written(self.events + other.events, self.files + other.files, self.size_bytes + other.size_bytes)


def write_part(part: Part, folder: Path, file_bytes: int = FILE_BYTES) -> Written:
    """Write the events of a part; written again, its files take the place of the older ones.

    Raises:
        OSError: it cannot be written.
    """
    written = Written()
    for node, events in part.events():
        names = count()
        first = next(events, None)
        while first is not None:
            path = folder / f"audit-{node}-{part.worker}-{utc(first.time):%Y%m%dT%H%M%SZ}-{next(names)}.jsonl"
            partial = path.with_name(path.name + OPEN)
            with partial.open("wb") as file:
                number, last_ms, following = _fill(file, first, events, file_bytes)
            os.utime(partial, (last_ms / SECOND_MS, last_ms / SECOND_MS))
            partial.rename(path)
            written += Written(number, 1, path.stat().st_size)
            first = following
    return written


def _fill(
    file: IO[bytes], first: AuditEvent, events: Iterator[AuditEvent], file_bytes: int
) -> tuple[int, int, AuditEvent | None]:
    """Write events until a file is full; gives how many, when the last was, and the first that found no place."""
    number, size, last_ms = 0, 0, first.time
    event: AuditEvent | None = first
    while event is not None:
        line = encode(event)
        if number and size + len(line) > file_bytes:
            break
        file.write(line)
        number, size, last_ms = number + 1, size + len(line), event.time
        event = next(events, None)
    return number, last_ms, event
