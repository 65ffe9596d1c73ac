"""The names of audit files: which worker wrote a file, and where it stands among the files of that worker.

    audit-<node>-<worker>-20261121T174416Z-0.jsonl.open      being written
    audit-<node>-<worker>-20261121T174416Z-0.jsonl           complete
    audit-<node>-<worker>-20261121T174416Z-0.jsonl.digest    what the node says about the complete file

    name = FileName("kdt1", 0, second(now_ms))
    path = directory / str(name)
    files_in(directory)             # the names of all files that are there, without digests

The names of one worker's files sort in the order in which they were written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

OPEN: Final = ".open"
"""The end of the name of a file that is being written."""
DIGEST: Final = ".digest"
"""What the name of a digest has behind the name of its file."""
_NUMBER: Final = r"(?:0|[1-9]\d*)"
_FORM: Final = re.compile(
    rf"audit-(?P<node>.+)-(?P<worker>{_NUMBER})-(?P<started>\d{{8}}T\d{{6}}Z)-(?P<number>{_NUMBER})"
    rf"\.jsonl(?P<open>{re.escape(OPEN)})?"
)


@dataclass(frozen=True, slots=True, order=True)
class FileName:
    """The name of an audit file."""

    node: str
    worker: int
    started: str
    """When it was begun: a `second`."""
    number: int = 0
    """Tells files apart that were begun in the same second."""
    complete: bool = True
    """False while it is being written."""

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Read a name; None if it is not that of an audit file."""
        found = _FORM.fullmatch(name)
        if found is None:
            return None
        return cls(found["node"], int(found["worker"]), found["started"], int(found["number"]), found["open"] is None)

    @property
    def series(self) -> str:
        """What the names of all files of its worker begin with."""
        return f"audit-{self.node}-{self.worker}"

    def __str__(self) -> str:
        return f"{self.series}-{self.started}-{self.number}.jsonl{'' if self.complete else OPEN}"


def second(time_ms: int) -> str:
    """Write an instant as names have it: to the second, in UTC."""
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y%m%dT%H%M%SZ}"


def files_in(directory: Path) -> list[FileName]:
    """Find the audit files in a folder, those of one worker in the order in which they were written.

    Raises:
        OSError: the folder cannot be read.
    """
    return sorted(filter(None, (FileName.parse(path.name) for path in directory.iterdir())))


def digest_path(path: Path) -> Path:
    """Say where the digest of a complete file is."""
    return path.with_name(path.name + DIGEST)
