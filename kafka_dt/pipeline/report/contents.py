"""The contents of a report: small values on the driver, for the page and for the JSON document.

Long lists are cut: `Listing.total` says how many there are, the Parquet output has all of them.

Keys of the document are those of the values; instants are ISO 8601 in UTC, durations seconds. Findings have their id
and the commands of their sign beside them; cases name findings by their ids.

Nothing here needs Spark.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.pipeline.cases import finding_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_dt.pipeline.cases import Case
    from kafka_dt.pipeline.report.signs import Finding, Severity, Signs
    from kafka_dt.pipeline.report.suppressions import Suppressed, Suppression

ROWS: Final = 200
"""How many rows of a list are brought to the driver."""
TOP: Final = 7
"""How many names have a series of their own: readers can tell so many colours apart."""
OTHER: Final = "other"
"""The series of all others."""
VERSION: Final = 1
"""Grows when a key changes its meaning or goes away."""


@dataclass(frozen=True, slots=True)
class Series:
    """Numbers over time, by name."""

    instants: tuple[datetime, ...]
    values: Mapping[str, tuple[int, ...]]
    """A number for each instant; the names with the most first, `other` last."""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One token of a list."""

    token_id: str
    owner: str | None
    requester: str | None
    renewers: tuple[str, ...]
    created_at: datetime
    ended_at: datetime | None
    """When it ends unless it is renewed; None: the table does not tell."""
    max_time: datetime | None
    last_login: datetime | None
    logins: int
    renewals: int
    renewable: bool | None = None
    """Whether a renewal could move its end; None where the list does not ask."""
    alive: bool = True
    lived: float | None = None
    """The share of its longest life that is over."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Tokens that an operator should look at."""

    total: int
    rows: tuple[TokenRow, ...]
    """The first ones."""
    by_owner: tuple[tuple[str, int], ...]
    """The owners with the most of them."""


@dataclass(frozen=True, slots=True)
class Activity:
    """How many events there are of a type."""

    type: str
    outcome: str
    events: int


@dataclass(frozen=True, slots=True)
class Hop:
    """One step of the way to something: `relation` leads to it."""

    relation: str
    type: str
    node: str


@dataclass(frozen=True, slots=True)
class Reached:
    """One thing within a blast radius."""

    type: str
    node: str
    step: int
    exposed: bool
    path: tuple[Hop, ...]
    alive: bool | None = None
    """Whether a token lives; None: it is no token."""


@dataclass(frozen=True, slots=True)
class ReachableLogin:
    """Logins with what is exposed."""

    who: str | None
    token_id: str | None
    address: str
    software: str
    first_seen: datetime
    last_seen: datetime
    logins: int


@dataclass(frozen=True, slots=True)
class ReachedCount:
    """How many things of a type a step leads to."""

    step: int
    type: str
    exposed: bool
    count: int
    ended: int = 0
    """How many of them are tokens that have ended."""


@dataclass(frozen=True, slots=True)
class Blast:
    """What could be reached from an owner or an address."""

    type: str
    start: str
    steps: int
    """How far was looked."""
    counts: tuple[ReachedCount, ...]
    reached: tuple[Reached, ...]
    """The exposed first, of these what has not ended, and then the nearest."""
    logins: tuple[ReachableLogin, ...]
    """The latest first."""
    login_total: int
    """How many logins there are in all rows."""

    @property
    def exposed(self) -> dict[str, int]:
        """How much of each type is exposed and good for something; the start itself is not counted."""
        found: dict[str, int] = {}
        for each in self.counts:
            if each.exposed and each.step and each.count > each.ended:
                found[each.type] = found.get(each.type, 0) + each.count - each.ended
        return found


@dataclass(frozen=True, slots=True)
class Lines:
    """What "soon" and "long" mean."""

    expiring_within: timedelta = timedelta(hours=2)
    """A client that renews a day's token at four fifths of it has five hours left, at nine tenths more than two."""
    used_within: timedelta = timedelta(days=1)
    """How long ago the last login of a token in use may be."""
    unused_for: timedelta = timedelta(hours=6)
    """How long a living token may wait for its first login."""


@dataclass(frozen=True, slots=True)
class Contents:
    """A report."""

    at: datetime
    """The instant for which it holds."""
    since: datetime
    """The first event."""
    events: int
    activity: tuple[Activity, ...]
    quarantined: int
    """Lines that are no events."""
    tokens: int
    """How many there were."""
    alive_now: int
    alive: Mapping[str, Series]
    """By role: owner, requester, renewer."""
    logins: Series
    refusals: Series
    expiring: Listing
    never_used: Listing
    past_half: Listing
    findings: tuple[Finding, ...]
    """Without those that are suppressed."""
    finding_counts: Mapping[tuple[str, Severity], int]
    lines: Lines
    signs: Signs
    """The signs of theft that it looked for."""
    generated_at: datetime
    """When the report was made."""
    table: str
    """Where the events are, for the commands that are suggested."""
    cases: tuple[Case, ...] = ()
    """What the findings are together, the most urgent first."""
    suppressions: tuple[Suppression, ...] = ()
    """The entries of the file that suppresses findings, in its order."""
    suppressed: tuple[Suppressed, ...] = ()
    blast: Blast | None = None
    silences: tuple[tuple[datetime, datetime], ...] = ()
    """The times without any event, steps of the plots at least; audit events of them may be missing."""

    @property
    def finding_total(self) -> int:
        """How many findings there are."""
        return sum(self.finding_counts.values())


def document(contents: Contents) -> dict[str, Any]:
    """Give a report as JSON's types."""
    found = asdict(replace(contents, findings=(), cases=(), signs=(), suppressions=(), suppressed=()))
    for name in ("findings", "finding_counts", "signs", "cases", "suppressions", "suppressed"):
        del found[name]
    signs = {sign.kind: sign for sign in contents.signs}
    return {
        "version": VERSION,
        **_plain(found),
        "thresholds": {row.name: row.value for sign in contents.signs for row in sign.threshold_rows},
        "finding_counts": [
            {"kind": kind, "severity": severity.value, "count": count}
            for (kind, severity), count in sorted(contents.finding_counts.items())
        ],
        "cases": [case.as_document() for case in contents.cases],
        "findings": [
            {
                "id": finding_id(finding),
                **finding.as_document(),
                "responses": [each.as_document() for each in signs[finding.kind].responses(finding, contents.table)],
            }
            for finding in contents.findings
        ],
        "suppressions": [
            {
                "who": entry.who,
                "why": entry.why,
                "until": entry.until.isoformat(),
                "covers": entry.scope,
                "has_run_out": entry.has_run_out(contents.generated_at),
                "findings": [
                    {"id": finding_id(each.finding), **each.finding.as_document()}
                    for each in contents.suppressed
                    if each.by is entry
                ],
            }
            for entry in contents.suppressions
        ],
    }


def as_json(contents: Contents) -> str:
    """Write a report as JSON."""
    return json.dumps(document(contents), indent=2) + "\n"


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _plain(each) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case datetime():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case _:
            return value
