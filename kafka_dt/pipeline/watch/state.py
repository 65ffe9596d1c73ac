"""What the watch keeps over restarts: counts of the last days, and the findings of cases that are open.

    state = State.of(path)
    tally = state.tally("refused_changes", "User:mallory", row)
    state.save(path)

A tally counts different things that one subject did on one day (UTC). Tallies, findings and the homes of tokens are
forgotten `KEPT` after their last event. The file is written whole or not at all, with the number of the last batch that
is in it: a batch that Spark runs again is not counted again.
"""

from __future__ import annotations

import heapq
import json
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.files import replace_file
from kafka_dt.pipeline.cases import finding_id
from kafka_dt.pipeline.errors import TableBroken
from kafka_dt.pipeline.report.expressions import EPOCH
from kafka_dt.pipeline.report.signs.finding import Evidence, Finding, Severity, SubjectType

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_dt.pipeline.watch.seen import Seen

KEPT: Final = timedelta(days=3)
"""Longer than findings of a case lie apart."""
MOST_ITEMS: Final = 2_000
"""How many things a tally tells apart; a client chooses how many ids it tries."""
MOST_TALLIES: Final = 20_000
"""How many tallies are kept, those with the most things; a client of IPv6 chooses from how many addresses it tries."""
MOST_FINDINGS: Final = 2_000
"""How many findings are kept, the most severe and then the oldest ones. A team reads no more, and a client that is not
logged in makes as many as it has addresses."""
_VERSION: Final = 1


@dataclass(slots=True)
class Tally:
    """What one subject did on one day."""

    first_seen: datetime
    last_seen: datetime
    events: int = 0
    items: dict[str, int] = field(default_factory=dict)
    """Thing -> how often."""
    addresses: dict[str, int] = field(default_factory=dict)
    programs: dict[str, int] = field(default_factory=dict)

    @property
    def weight(self) -> tuple[int, datetime]:
        """What makes it more worth keeping than another one."""
        return len(self.items), self.last_seen

    def add(self, item: str, row: Seen) -> None:
        """Count a row."""
        self.first_seen = min(self.first_seen, row.first_seen)
        self.last_seen = max(self.last_seen, row.last_seen)
        self.events += row.events
        for counts, name in ((self.items, item), (self.addresses, row.address), (self.programs, row.software)):
            if name in counts or len(counts) < MOST_ITEMS:
                counts[name] = counts.get(name, 0) + row.events


@dataclass(frozen=True, slots=True)
class Home:
    """Where a token was used first."""

    network: str
    """The large network of its first login; empty if it had none."""
    last_seen: datetime
    """Its last event."""


@dataclass(slots=True)
class State:
    """All of it."""

    series: str = ""
    """Names the checkpoint whose batches are counted."""
    batch: int = -1
    """The last one that is in it."""
    tallies: dict[tuple[str, str, str], Tally] = field(default_factory=dict)
    """Kind of sign, subject, day -> what was counted."""
    findings: dict[str, Finding] = field(default_factory=dict)
    """Id -> finding, of cases that are open."""
    strange: dict[tuple[str, str, str], datetime] = field(default_factory=dict)
    """Owner, field of its habits, network or program -> when a finding was made about it: never usual, though the table
    has it."""
    grants: dict[str, list[datetime]] = field(default_factory=dict)
    """Principal -> when ACLs allowed it to create tokens for others."""
    rotated: datetime = EPOCH
    """When secret keys were changed last."""
    judged: datetime = EPOCH
    """The newest event that was judged."""
    homes: dict[str, Home] = field(default_factory=dict)
    """By the ids of tokens; not in the file, for the table tells it after a restart."""

    def tally(self, kind: str, subject: str, item: str, row: Seen) -> Tally:
        """Count what a subject did, and give the count of its day."""
        key = (kind, subject, f"{row.first_seen:%Y-%m-%d}")
        tally = self.tallies.setdefault(key, Tally(row.first_seen, row.last_seen))
        tally.add(item, row)
        return tally

    def put(self, finding: Finding) -> bool:
        """Keep a finding, in the place of an earlier one about the same; False if it says nothing new."""
        name = finding_id(finding)
        before = self.findings.get(name)
        if before is not None:
            finding = _merged(before, finding)
        self.findings[name] = finding
        return finding != before

    def forget(self, newest: datetime) -> None:
        """Forget what is older than `KEPT`."""
        oldest = newest - KEPT
        self.tallies = {key: each for key, each in self.tallies.items() if each.last_seen >= oldest}
        if len(self.tallies) > MOST_TALLIES:
            self.tallies = dict(heapq.nlargest(MOST_TALLIES, self.tallies.items(), lambda each: each[1].weight))
        self.homes = {token_id: home for token_id, home in self.homes.items() if home.last_seen >= oldest}
        self.findings = {name: each for name, each in self.findings.items() if each.last_seen >= oldest}
        if len(self.findings) > MOST_FINDINGS:
            self.findings = dict(heapq.nsmallest(MOST_FINDINGS, self.findings.items(), lambda each: _urgency(each[1])))
        self.grants = {
            name: kept for name, all_ in self.grants.items() if (kept := [one for one in all_ if one >= oldest])
        }

    @classmethod
    def of(cls, path: Path) -> State:
        """Read the file of a path; without one nothing was seen.

        Raises:
            TableBroken: it is something else.
        """
        try:
            return _state(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return cls()
        except (ValueError, TypeError, KeyError) as error:
            raise TableBroken(str(path), "it is no state of a watch; move it away to begin anew") from error

    def save(self, path: Path) -> None:
        """Write the file."""
        replace_file(path, json.dumps(_document(self), default=_text) + "\n")


def _urgency(finding: Finding) -> tuple[int, datetime]:
    return list(Severity).index(finding.severity), finding.first_seen


def _merged(before: Finding, now: Finding) -> Finding:
    """Let a finding reach from its first to its last event, in any order; its severity does not fall."""
    return replace(
        max(before, now, key=lambda each: each.last_seen),
        first_seen=min(before.first_seen, now.first_seen),
        severity=min(before.severity, now.severity, key=list(Severity).index),
        events=max(before.events, now.events),
    )


def _document(state: State) -> dict[str, Any]:
    return {
        "version": _VERSION,
        "series": state.series,
        "batch": state.batch,
        "tallies": [[*key, asdict(each)] for key, each in state.tallies.items()],
        "findings": [asdict(each) for each in state.findings.values()],
        "strange": [[*what, at] for what, at in state.strange.items()],
        "grants": state.grants,
        "rotated": state.rotated,
        "judged": state.judged,
    }


def _state(document: dict[str, Any]) -> State:
    if document["version"] != _VERSION:
        raise ValueError(document["version"])
    findings = [_finding(each) for each in document["findings"]]
    return State(
        series=document["series"],
        batch=document["batch"],
        tallies={(kind, subject, day): _tally(each) for kind, subject, day, each in document["tallies"]},
        findings={finding_id(each): each for each in findings},
        strange={(owner, what, name): _instant(at) for owner, what, name, at in document["strange"]},
        grants={name: [_instant(each) for each in instants] for name, instants in document["grants"].items()},
        rotated=_instant(document["rotated"]),
        judged=_instant(document["judged"]),
    )


def _tally(document: dict[str, Any]) -> Tally:
    instants = {name: _instant(document[name]) for name in ("first_seen", "last_seen")}
    return Tally(**{**document, **instants})


def _finding(document: dict[str, Any]) -> Finding:
    made = {name: _instant(document[name]) for name in ("first_seen", "last_seen")}
    return Finding(
        **{
            **document,
            **made,
            "severity": Severity(document["severity"]),
            "subject_type": SubjectType(document["subject_type"]),
            "evidence": tuple(Evidence(**each) for each in document["evidence"]),
        }
    )


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(value)
