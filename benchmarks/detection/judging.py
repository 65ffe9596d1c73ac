"""Compares what a report found with what is true: precision, recall, and what the wrong findings are about.

    judgement = judge(findings_of(report_folder), load_stories(folder / TRUTH))
    judgement.precision, judgement.recall, judgement.high_precision

A finding is right if it is about an incident: about one of its tokens; or, if the finding names no token, about an
address from which it was done; or, if it names neither, about an owner or principal of it; and at a time that the two
have in common. An incident about many tokens, such as guessing, may touch the token of a finding by chance, so there
the address has to be one of the incident too. Several right findings about one incident count as one. Each other
finding is wrong, whatever it is about, and counts on its own; `look_alike` says which honest story explains it, if one
does.

Precision is the share of the right ones. Recall is the share of the visible incidents that at least one finding is
about. An incident that is not visible counts for neither the one nor the other if it is missed, and as a right finding
if it is found.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.detection.stories import Story

DAILY_WORK: Final = "daily work"
"""What a wrong finding is about that no honest story explains."""
HIGH: Final = "high"
FEW_TOKENS: Final = 5
"""Up to so many tokens of an incident, a finding about one of them is about the incident."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a finding says."""

    kind: str
    severity: str
    token_id: str | None
    owner: str | None
    address: str | None
    first_ms: int
    last_ms: int

    def is_about(self, story: Story) -> bool:
        """Say whether a finding is about a story: the same token, address or owner, and a time in common."""
        if story.first_ms is None or story.last_ms is None:
            return False
        if self.first_ms > story.last_ms or story.first_ms > self.last_ms:
            return False
        if self.token_id is not None:
            by_chance = len(story.token_ids) > FEW_TOKENS and self.address not in {None, *story.addresses}
            return self.token_id in story.token_ids and not by_chance
        if self.address is not None:
            return self.address in story.addresses
        return self.owner in story.owners | story.principals


@dataclass(frozen=True, slots=True)
class Wrong:
    """A finding that is about no incident."""

    kind: str
    severity: str
    look_alike: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """How good the findings of one report are."""

    incidents: tuple[Story, ...]
    found: frozenset[str]
    """The names of the incidents that findings are about."""
    found_high: frozenset[str]
    """Those that findings of severity high are about."""
    right: Counter[str]
    """How many findings of each kind are about an incident."""
    wrong: tuple[Wrong, ...]
    found_by: Mapping[str, frozenset[str]]
    """Kind of findings -> the names of the incidents that they are about."""

    @property
    def precision(self) -> float | None:
        """The share of right findings; None if there is no finding."""
        return _share(len(self.found), len(self.found) + len(self.wrong))

    @property
    def high_precision(self) -> float | None:
        """The same of the findings of severity high."""
        wrong = sum(each.severity == HIGH for each in self.wrong)
        return _share(len(self.found_high), len(self.found_high) + wrong)

    @property
    def recall(self) -> float | None:
        """The share of visible incidents that were found; None if there is none."""
        visible = [each for each in self.incidents if each.visible]
        return _share(sum(each.name in self.found for each in visible), len(visible))

    def by_kind(self) -> dict[str, tuple[int, int]]:
        """Give for each kind of incident how many are visible, and how many of these were found."""
        visible = [each for each in self.incidents if each.visible]
        return {
            kind: (
                sum(each.kind == kind for each in visible),
                sum(each.kind == kind and each.name in self.found for each in visible),
            )
            for kind in sorted({each.kind for each in visible})
        }

    def by_rule(self) -> dict[str, tuple[int, int, int]]:
        """Give for each kind of findings how many incidents it found, how many of these are visible, and its errors."""
        visible = {each.name for each in self.incidents if each.visible}
        wrong = Counter(each.kind for each in self.wrong)
        return {
            kind: (len(found), len(found & visible), wrong[kind])
            for kind in sorted({*self.found_by, *wrong})
            for found in (self.found_by.get(kind, frozenset()),)
        }

    def wrong_by_rule(self) -> dict[str, Counter[str]]:
        """Count for each kind of finding what its wrong ones are about."""
        counted: dict[str, Counter[str]] = {}
        for each in self.wrong:
            counted.setdefault(each.kind, Counter())[each.look_alike] += 1
        return counted

    def as_json(self) -> dict[str, Any]:
        """Give everything as JSON's types; `missed` says which visible incidents nothing was found about."""
        return {
            "precision": self.precision,
            "recall": self.recall,
            "high_precision": self.high_precision,
            "incidents": len(self.incidents),
            "by_kind": {kind: {"visible": many, "found": found} for kind, (many, found) in self.by_kind().items()},
            "right_by_rule": dict(self.right),
            "found_by_rule": {kind: sorted(names) for kind, names in sorted(self.found_by.items())},
            "wrong_by_rule": {kind: dict(counted) for kind, counted in self.wrong_by_rule().items()},
            "wrong_high": sum(each.severity == HIGH for each in self.wrong),
            "missed": [
                {"name": each.name, "differs": sorted(each.differs), "events": len(each.event_ids)}
                for each in self.incidents
                if each.visible and each.name not in self.found
            ],
        }


def judge(findings: Iterable[Found], stories: Sequence[Story]) -> Judgement:
    """Compare findings with what is true."""
    incidents = tuple(each for each in stories if each.incident)
    honest = [each for each in stories if not each.incident]
    found: set[str] = set()
    found_high: set[str] = set()
    right: Counter[str] = Counter()
    wrong: list[Wrong] = []
    found_by: dict[str, frozenset[str]] = {}
    for finding in findings:
        about = {each.name for each in incidents if finding.is_about(each)}
        if not about:
            look_alike = next((each.kind for each in honest if finding.is_about(each)), DAILY_WORK)
            wrong.append(Wrong(finding.kind, finding.severity, look_alike))
            continue
        right[finding.kind] += 1
        found |= about
        found_by[finding.kind] = found_by.get(finding.kind, frozenset()) | about
        if finding.severity == HIGH:
            found_high |= about
    return Judgement(incidents, frozenset(found), frozenset(found_high), right, tuple(wrong), found_by)


def findings_of(report: Path) -> list[Found]:
    """Read the findings of a report as its users do, from its JSON; the Parquet output has each sign's own."""
    rows = json.loads((report / "report.json").read_text(encoding="utf-8"))["findings"]
    return [
        Found(
            kind=row["kind"],
            severity=row["severity"],
            token_id=row["token_id"],
            owner=row["owner"],
            address=row["address"],
            first_ms=_ms(datetime.fromisoformat(row["first_seen"])),
            last_ms=_ms(datetime.fromisoformat(row["last_seen"])),
        )
        for row in rows
    ]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)
