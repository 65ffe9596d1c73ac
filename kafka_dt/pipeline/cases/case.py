"""A case: findings that belong together, the gravest severity that they reach, and what ends it.

Source: kafka_dt/pipeline/cases/forming.py
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_dt.pipeline.cases.severity import score_of, severity_of, weight
from kafka_dt.pipeline.shell import word

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from kafka_dt.pipeline.cases.sighting import Sighting

_ENDED_BY_ID: Final = 5
"""How many tokens a command names; for more it names their owners."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do."""

    why: str
    command: str = ""
    """For a POSIX shell; empty where there is none."""


@dataclass(frozen=True, slots=True)
class Case:
    """Findings that belong together."""

    sightings: tuple[Sighting, ...]
    """One at least, in the order of their first events: the timeline."""
    related: tuple[str, ...] = ()
    """The ids of other cases that name one of its addresses or owners."""
    name: str = ""
    """The id that it had before; empty if it is new."""

    @property
    def id(self) -> str:
        """Its name: the one that it had, else that of its first finding, so that it stays when the case grows."""
        return self.name or f"case-{self.sightings[0].id}"

    @property
    def score(self) -> int:
        """What its signs are together; a higher one is more urgent."""
        return score_of((each.finding.kind, each.finding.severity) for each in self.sightings)

    @property
    def severity(self) -> str:
        """The severity that its signs reach together."""
        return severity_of(self.score)

    @property
    def worst(self) -> Sighting:
        """The gravest finding; of several the newest."""
        return max(self.sightings, key=lambda each: (weight(each.finding.severity), each.finding.last_seen, each.id))

    @property
    def owners(self) -> tuple[str, ...]:
        """Whose tokens are concerned, those with the most findings first."""
        return _by_number(each.finding.owner for each in self.sightings)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The ids of the tokens that are concerned."""
        return _by_number(each.finding.token_id for each in self.sightings)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where it came from."""
        return _by_number(each.address for each in self.sightings)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its findings."""
        return _by_number(each.finding.kind for each in self.sightings)

    @property
    def first_seen(self) -> datetime:
        """Its first event."""
        return self.sightings[0].finding.first_seen

    @property
    def last_seen(self) -> datetime:
        """Its last event."""
        return max(each.finding.last_seen for each in self.sightings)

    @property
    def why(self) -> tuple[str, ...]:
        """A reason for each sign, the gravest first: its title and its first fact."""
        shown: dict[str, str] = {}
        for each in sorted(self.sightings, key=lambda one: -weight(one.finding.severity)):
            fact = next((f": {fact.label} {fact.text}" for fact in each.finding.evidence), "")
            shown.setdefault(each.finding.kind, f"{each.title}{fact}")
        return tuple(shown.values())

    @property
    def to_end(self) -> tuple[str, ...]:
        """The ids of the tokens that may still live, and should not."""
        return _by_number(each.finding.token_id for each in self.sightings if each.ends_token)

    @property
    def ending(self) -> Advice:
        """What ends it: tokens to revoke, else the first advice of its worst sign."""
        tokens = _words(self.to_end)
        owners = _words(_by_number(each.finding.owner for each in self.sightings if each.ends_token))
        if tokens and len(tokens) <= _ENDED_BY_ID:
            command = f"kafka-dt token revoke --command-config admin.properties -- {' '.join(tokens)}"
            return Advice(f"End {'the token' if len(tokens) == 1 else 'the tokens'}:", command)
        if tokens and owners:
            chosen = " ".join(f"--owner={owner}" for owner in owners)
            command = f"kafka-dt token revoke --config server.properties {chosen} --dry-run"
            return Advice("See what would end, then again without --dry-run:", command)
        return next((Advice(**response) for response in self.worst.responses), Advice(self.worst.meaning))

    def as_document(self) -> dict[str, object]:
        """Give it as JSON's types; instants are ISO 8601 in UTC."""
        ending = self.ending
        return {
            "id": self.id,
            "severity": self.severity,
            "score": self.score,
            "owners": list(self.owners),
            "tokens": list(self.tokens),
            "addresses": list(self.addresses),
            "first_seen": self.first_seen.isoformat(),
            "last_seen": self.last_seen.isoformat(),
            "why": list(self.why),
            "end": {"why": ending.why, **({"command": ending.command} if ending.command else {})},
            "timeline": [_entry(each) for each in self.sightings],
            "related": list(self.related),
        }


def _entry(sighting: Sighting) -> dict[str, object]:
    finding = sighting.finding
    return {
        "finding": sighting.id,
        "kind": finding.kind,
        "severity": str(finding.severity),
        "title": sighting.title,
        "subject": finding.subject,
        "first_seen": finding.first_seen.isoformat(),
        "last_seen": finding.last_seen.isoformat(),
        "events": finding.events,
    }


def _by_number(names: Iterable[str | None]) -> tuple[str, ...]:
    """Give different names, the frequent ones first, then by name."""
    counted = Counter(name for name in names if name)
    return tuple(sorted(counted, key=lambda name: (-counted[name], name)))


def _words(names: Iterable[str]) -> list[str]:
    return [quoted for name in names if (quoted := word(name)) is not None]
