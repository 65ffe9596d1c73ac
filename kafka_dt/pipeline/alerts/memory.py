"""What was told to which destination: a small file of JSON, written after each message.

It has findings, not cases: when a case grows, or its findings are arranged otherwise, only what is new is told. A
finding that no report has had for a year is forgotten.

A report and a watch may share it: each write adds to what the file has, under a lock, which is the file `*.lock` beside
it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Self

from kafka_dt.files import locked, replace_file
from kafka_dt.pipeline.alerts.destination import AlertError

_VERSION: Final = 1
_KEPT: Final = timedelta(days=366)


class Memory:
    """What was told; `Memory.of` reads it."""

    def __init__(self, path: Path, told: dict[str, dict[str, datetime]]) -> None:
        self._path = path
        self._told = told

    @classmethod
    def of(cls, path: Path) -> Self:
        """Read the file of a path; without one nothing was told.

        Raises:
            AlertError: it is something else.
            OSError: it cannot be read.
        """
        return cls(path, _read(path))

    def knows(self, key: str, finding: str) -> bool:
        """Say whether a finding was told to a destination."""
        return finding in self._told.get(key, {})

    def add(self, key: str, findings: Iterable[str], now: datetime) -> None:
        """Note that findings were told to a destination, also should the machine stop now.

        Raises:
            AlertError: the file has become something else.
            OSError: it cannot be written.
        """
        self._told.setdefault(key, {}).update(dict.fromkeys(findings, now))
        file = self._path.resolve()  # of a link, that of its target: the lock has to be the same for each name
        with locked(file.with_name(f"{file.name}.lock")):
            for other, told in _read(self._path).items():
                own = self._told.setdefault(other, {})
                own |= {finding: max(at, own.get(finding, at)) for finding, at in told.items() if now - at < _KEPT}
            self._write()

    def keep(self, present: Iterable[str], now: datetime) -> None:
        """Note which findings there still are, and forget old ones; the next `add` writes it."""
        still = set(present)
        self._told = {
            key: {
                finding: now if finding in still else at
                for finding, at in told.items()
                if finding in still or now - at < _KEPT
            }
            for key, told in self._told.items()
        }

    def _write(self) -> None:
        told = {key: {name: at.isoformat() for name, at in found.items()} for key, found in self._told.items()}
        replace_file(self._path, json.dumps({"version": _VERSION, "told": told}, indent=1) + "\n")


def _read(path: Path) -> dict[str, dict[str, datetime]]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return {
            key: {finding: datetime.fromisoformat(at).astimezone(UTC) for finding, at in findings.items()}
            for key, findings in document["told"].items()
        }
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise AlertError(f"{path} is no memory of alerts; move it away, and all of them are sent again") from error
