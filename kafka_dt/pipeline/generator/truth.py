"""The planted incidents, to compare findings with them: `truth.json` beside the events.

    truth = Truth.load(folder / TRUTH_FILE)
    found = {finding.token_id for finding in findings if finding.kind == IncidentKind.STOLEN_TOKEN}
    planted = {each.token_id for each in truth.of(IncidentKind.STOLEN_TOKEN)}

An incident about a token names the token and its owner; a burst of unknown ids names the address.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Self

from kafka_dt.files import naming
from kafka_dt.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TRUTH_FILE: Final = "truth.json"
_VERSION: Final = 1


class TruthError(PipelineError):
    """A file is not what `Truth.save` writes."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} does not say what was planted: {reason}")
        self.path = path
        self.reason = reason


class IncidentKind(StrEnum):
    """The kinds of incidents: the kinds of the signs of theft that the generator knows."""

    STOLEN_TOKEN = "stolen_token"  # noqa: S105 - the name of an incident
    """Another client uses the token, too."""
    USE_AFTER_REVOCATION = "use_after_revocation"
    """A client goes on trying a token after a request has ended it."""
    UNKNOWN_ID_BURST = "unknown_id_burst"
    """An address tries many token ids that no token ever had."""
    FOREIGN_RENEWAL = "foreign_renewal"
    """A principal renews a token that it never renewed, while another one does."""


class Strength(StrEnum):
    """How much an incident stands out."""

    BLATANT = "blatant"
    """From the internet, with another client, many times."""
    PLAIN = "plain"
    """From a place inside where the owner does not work, some times."""
    SUBTLE = "subtle"
    """A few times, and in all but one respect as the owner does it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Something that was planted."""

    kind: IncidentKind
    strength: Strength
    begin: datetime
    """When its first event is, in UTC."""
    end: datetime
    """When its last event is."""
    events: int
    """How many there are."""
    token_id: str | None = None
    owner: str | None = None
    """Of that token."""
    address: str | None = None

    @property
    def subject(self) -> str:
        """What a finding about it is about: a token id or an address."""
        return self.token_id or self.address or ""


@dataclass(frozen=True, slots=True)
class Truth:
    """Everything that was planted into a scenario."""

    scenario: Mapping[str, Any]
    """As JSON's types."""
    incidents: tuple[Incident, ...]

    def of(self, kind: IncidentKind) -> list[Incident]:
        """Give the incidents of a kind."""
        return [each for each in self.incidents if each.kind is kind]

    def save(self, path: Path) -> None:
        """Write the file."""
        rows = [
            {**asdict(each), "begin": each.begin.isoformat(), "end": each.end.isoformat()} for each in self.incidents
        ]
        document = {"version": _VERSION, "scenario": self.scenario, "incidents": rows}
        with naming(path):
            path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file.

        Raises:
            OSError: it cannot be read.
            TruthError: it is something else.
        """
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            if document["version"] != _VERSION:
                raise TruthError(path, f"its version is {document['version']}, not {_VERSION}")
            return cls(document["scenario"], tuple(map(_incident, document["incidents"])))
        except (ValueError, KeyError, TypeError) as error:
            raise TruthError(path, f"{type(error).__name__}: {error}") from error


def _incident(row: Mapping[str, Any]) -> Incident:
    known = {
        "kind": IncidentKind(row["kind"]),
        "strength": Strength(row["strength"]),
        "begin": datetime.fromisoformat(row["begin"]),
        "end": datetime.fromisoformat(row["end"]),
    }
    return Incident(**{**row, **known})
