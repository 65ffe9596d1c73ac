"""What the watch keeps over restarts: counts of the last days, and the findings of cases that are open.

    state = State.of(path)
    tally = state.tally("refused_changes", "User:mallory", row)
    state.save(path)

A tally counts different things that one subject did on one day (UTC). Tallies, findings and the homes of tokens are
forgotten `KEPT` after their last event. The file is written whole or not at all, with the number of the last batch that
is in it: a batch that Spark runs again is not counted again.

A client that is not logged in chooses what it tries, and an IPv6 client from how many addresses. So a tally keeps short
hashes of things, and each sign has its own share of tallies, of things and of findings: none displaces another's.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from collections import defaultdict
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka_dt.files import replace_file
from kafka_dt.pipeline.cases import finding_id
from kafka_dt.pipeline.errors import TableBroken
from kafka_dt.pipeline.report.expressions import EPOCH
from kafka_dt.pipeline.report.signs.finding import Evidence, Finding, Severity, SubjectType
from kafka_dt.pipeline.watch.habits import HISTORY, Revoked

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable
    from pathlib import Path

    from kafka_dt.pipeline.watch.seen import Seen

K = TypeVar("K")
V = TypeVar("V")
KEPT: Final = timedelta(days=3)
"""Longer than findings of a case lie apart."""
MOST_ITEMS: Final = 2_000
"""How many things a tally tells apart."""
MOST_ITEMS_OF_KIND: Final = 50_000
"""How many things all tallies of a sign keep between batches; the largest tallies stop telling things apart first."""
MOST_TALLIES: Final = 2_000
"""How many tallies of a sign are kept, those with the most things."""
MOST_FINDINGS: Final = 500
"""How many findings of a sign are kept, the most severe and then the oldest ones. A team reads no more."""
MOST_STRANGE: Final = 10_000
"""How many strange things are kept, the newest ones; who has a token makes up names of programs."""
_MOST_NAMES: Final = 10
"""How many names a tally keeps as examples, and of addresses and programs."""
_LONGEST: Final = 120
"""Characters of such a name."""
_HASH_BYTES: Final = 8
_STRANGE_KEPT: Final = HISTORY + timedelta(days=1)
"""The table tells it no longer."""
_VERSION: Final = 2
_WITH_ITEMS: Final = 1
"""The version before; its tallies had the things themselves, and it had no cases."""


@dataclass(slots=True)
class Tally:
    """What one subject did on one day."""

    first_seen: datetime
    last_seen: datetime
    events: int = 0
    different: dict[str, int] = field(default_factory=dict)
    """Group -> how many different things it has; a thing may be in several groups, such as an hour and the day."""
    few: int = 0
    """How many things came as seldom as `add` was told."""
    items: dict[str, int] = field(default_factory=dict)
    """Hash of a thing in a group -> how often it came."""
    examples: list[str] = field(default_factory=list)
    addresses: dict[str, int] = field(default_factory=dict)
    programs: dict[str, int] = field(default_factory=dict)
    is_full: bool = False
    """Whether it tells no more things apart."""

    @property
    def most(self) -> int:
        """The different things of the largest group."""
        return max(self.different.values(), default=0)

    def add(self, row: Seen, thing: str, groups: Iterable[str] = ("",), *, seldom: int = 0) -> None:
        """Count a row.

        Args:
            row: what came.
            thing: what is counted.
            groups: those that the thing is counted in.
            seldom: how often a thing may come to be one of `few`.
        """
        self.first_seen = min(self.first_seen, row.first_seen)
        self.last_seen = max(self.last_seen, row.last_seen)
        self.events += row.events
        for group in groups:
            self._tell_apart(_hash(group, thing), group, row.events, seldom)
        if len(self.examples) < _MOST_NAMES and (name := thing[:_LONGEST]) not in self.examples:
            self.examples.append(name)
        for counts, name in ((self.addresses, row.address[:_LONGEST]), (self.programs, row.software[:_LONGEST])):
            if name in counts or len(counts) < _MOST_NAMES:
                counts[name] = counts.get(name, 0) + row.events

    def _tell_apart(self, item: str, group: str, times: int, seldom: int) -> None:
        before = self.items.get(item, 0)
        if not before:
            if self.is_full or len(self.items) >= MOST_ITEMS:
                return
            self.different[group] = self.different.get(group, 0) + 1
        now = self.items[item] = before + times
        self.few += (now <= seldom) - (0 < before <= seldom)

    def stop(self) -> None:
        """Tell no more things apart; what was counted stays."""
        self.items, self.is_full = {}, True


@dataclass(frozen=True, slots=True)
class Home:
    """Where a token was used first, and whose it is."""

    network: str
    """The large network of its first login; empty if it had none."""
    last_seen: datetime
    """Its last event."""
    whose: frozenset[str | None] = frozenset()
    """Its owner and its requester."""


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
    cases: dict[str, str] = field(default_factory=dict)
    """Id of a finding -> id of its case, which stays although the case's first finding is forgotten."""
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
    revoked: dict[str, Revoked] = field(default_factory=dict)
    """By the ids of tokens that a request has ended; not in the file either."""

    def tally(self, kind: str, subject: str, row: Seen) -> Tally:
        """Give the count of what a subject did on the day of a row."""
        key = _of_day(kind, subject, row)
        if (tally := self.tallies.get(key)) is None:
            tally = self.tallies[key] = Tally(row.first_seen, row.last_seen)
        return tally

    def has_tally(self, kind: str, subject: str, row: Seen) -> bool:
        """Whether something of a subject was counted on the day of a row."""
        return _of_day(kind, subject, row) in self.tallies

    def put(self, finding: Finding) -> bool:
        """Keep a finding, in the place of an earlier one about the same; False if it says nothing new."""
        name = finding_id(finding)
        before = self.findings.get(name)
        if before is not None:
            finding = _merged(before, finding)
        self.findings[name] = finding
        return finding != before

    def forget(self, newest: datetime, untold: Container[str] = ()) -> None:
        """Forget what is older than `KEPT`, and what is too much.

        Args:
            newest: the time, in UTC.
            untold: ids of findings that are kept for `HISTORY`, and first of all.
        """
        oldest, oldest_untold = newest - KEPT, newest - HISTORY
        tallies = ((key, each) for key, each in self.tallies.items() if each.last_seen >= oldest)
        self.tallies = _of_each_kind(tallies, lambda key, _: key[0], MOST_TALLIES, lambda _, each: _importance(each))
        self._bound_items()
        self.homes = {token_id: home for token_id, home in self.homes.items() if home.last_seen >= oldest}
        self.revoked = {token_id: each for token_id, each in self.revoked.items() if each.at >= oldest}
        findings = (
            (name, each)
            for name, each in self.findings.items()
            if each.last_seen >= (oldest_untold if name in untold else oldest)
        )
        self.findings = _of_each_kind(
            findings, lambda _, each: each.kind, MOST_FINDINGS, lambda name, each: (name not in untold, *_urgency(each))
        )
        strange = ((what, at) for what, at in self.strange.items() if at >= newest - _STRANGE_KEPT)
        self.strange = dict(heapq.nlargest(MOST_STRANGE, strange, lambda each: each[1]))
        self.grants = {
            name: kept for name, all_ in self.grants.items() if (kept := [one for one in all_ if one >= oldest])
        }

    def _bound_items(self) -> None:
        """Let the largest tallies of a sign tell no more things apart until all of them have few enough."""
        of_kind: dict[str, list[Tally]] = defaultdict(list)
        for (kind, _, _), tally in self.tallies.items():
            of_kind[kind].append(tally)
        for tallies in of_kind.values():
            left = sum(len(each.items) for each in tallies)
            tallies.sort(key=lambda each: len(each.items))
            while left > MOST_ITEMS_OF_KIND:
                left -= len(tallies[-1].items)
                tallies.pop().stop()

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


def _of_each_kind(
    things: Iterable[tuple[K, V]], kind: Callable[[K, V], str], most: int, order: Callable[[K, V], Any]
) -> dict[K, V]:
    """Keep some things of each kind, the first ones in an order."""
    of_kind: dict[str, list[tuple[K, V]]] = defaultdict(list)
    for each in things:
        of_kind[kind(*each)].append(each)
    few = (
        each if len(each) <= most else heapq.nsmallest(most, each, key=lambda one: order(*one))
        for each in of_kind.values()
    )
    return dict(chain.from_iterable(few))


def _of_day(kind: str, subject: str, row: Seen) -> tuple[str, str, str]:
    return kind, subject, f"{row.first_seen:%Y-%m-%d}"


def _hash(group: str, thing: str) -> str:
    return hashlib.blake2b(f"{group} {thing}".encode(), digest_size=_HASH_BYTES).hexdigest()


def _importance(tally: Tally) -> tuple[int, float]:
    """Order tallies, those with the most things and then the newest first."""
    return -tally.most, -tally.last_seen.timestamp()


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
        "cases": state.cases,
        "strange": [[*what, at] for what, at in state.strange.items()],
        "grants": state.grants,
        "rotated": state.rotated,
        "judged": state.judged,
    }


def _state(document: dict[str, Any]) -> State:
    version = document["version"]
    if version not in {_VERSION, _WITH_ITEMS}:
        raise ValueError(version)
    is_earlier = version == _WITH_ITEMS
    tallies = () if is_earlier else document["tallies"]
    findings = [_finding(each) for each in document["findings"]]
    return State(
        series=document["series"],
        batch=document["batch"],
        tallies={(kind, subject, day): _tally(each) for kind, subject, day, each in tallies},
        findings={finding_id(each): each for each in findings},
        cases={} if is_earlier else document["cases"],
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
