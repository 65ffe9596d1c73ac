"""Which findings are one case.

Findings about the tokens of one owner are one case if no more than `quiet` lies between them; so are findings without
an owner that are about the same address. An address then joins cases of different owners: one machine has the
secrets of all of them, and that is how a thief looks. But many honest owners can share an address too, behind address
translation, a proxy or a jump host. There an address says nothing, and joining by it would make one case of a whole
company. So an address joins nothing if more than `BYSTANDERS` principals without a finding log in from there. And no
case has more than `MOST_OWNERS` owners: cases that an address would join beyond that name each other as related.

The first rule needs no limit, because all tokens of an owner have the same secret behind them and one person to ask.
A zone or a network joins nothing: many owners live there.

The work is small: there are at most some thousands of findings.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeVar

from kafka_dt.pipeline.cases.case import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from kafka_dt.pipeline.cases.sighting import Sighting

QUIET: Final = timedelta(days=3)
"""A thief that rests for a weekend is still the same one."""
BYSTANDERS: Final = 3
"""Principals without a finding that make an address a shared one."""
MOST_OWNERS: Final = 8

T = TypeVar("T")


def form_cases(
    sightings: Iterable[Sighting],
    principals_at: Mapping[str, int] | None = None,
    quiet: timedelta = QUIET,
    named: Mapping[str, str] | None = None,
) -> tuple[Case, ...]:
    """Form cases of findings, the most urgent first: by score, then those with a token to end, then the newest.

    Args:
        sightings: the findings; the order does not matter.
        principals_at: how many principals log in from an address, those with findings included; an address that it
            does not have counts as one of those with findings alone.
        quiet: the longest time between two findings of a case.
        named: id of a finding -> id of the case that it was in before; a case keeps that of its first finding with one.
    """
    found = sorted(sightings, key=_in_time)
    shared = _shared(found, principals_at or {})
    parts = [part for named in _by_name(found).values() for part in _parts(named, quiet)]
    formed = [Case(tuple(sorted(joined, key=_in_time))) for joined in _joined(parts, shared, quiet)]
    cases = list(_with_names(formed, named or {}))
    cases.sort(key=lambda case: (-case.score, not case.to_end, -case.last_seen.timestamp(), case.id))
    return tuple(_with_related(cases, shared))


def _with_names(cases: Iterable[Case], named: Mapping[str, str]) -> Iterator[Case]:
    """Let cases have the ids that they had; of two parts of an earlier case the first one has it."""
    taken: set[str] = set()
    for case in sorted(cases, key=lambda each: _in_time(each.sightings[0])):
        had = (named[each.id] for each in case.sightings if each.id in named)
        new = (case.id, *(f"{case.id}-{number}" for number in range(2, len(taken) + 3)))
        again = replace(case, name=next(name for name in chain(had, new) if name not in taken))
        taken.add(again.id)
        yield again


def _by_name(sightings: Iterable[Sighting]) -> Mapping[tuple[str, str], list[Sighting]]:
    """Group findings, in their order, by owner, else by address, else by what they are about."""
    named: dict[tuple[str, str], list[Sighting]] = defaultdict(list)
    for each in sightings:
        finding = each.finding
        if finding.owner:
            name = ("owner", finding.owner)
        elif each.address:
            name = ("address", each.address)
        else:
            name = (finding.subject_type, finding.subject)
        named[name].append(each)
    return named


def _parts(in_order: Sequence[Sighting], quiet: timedelta) -> Iterator[list[Sighting]]:
    """Cut where nothing was seen for longer than `quiet`."""
    part: list[Sighting] = []
    until = in_order[0].finding.first_seen
    for each in in_order:
        if each.finding.first_seen > until + quiet:
            yield part
            part = []
        part.append(each)
        until = max(until, each.finding.last_seen)
    yield part


@dataclass(slots=True)
class _Group:
    """A set of the union-find: what it has joined so far."""

    sightings: list[Sighting]
    owners: set[str]


def _joined(parts: Sequence[list[Sighting]], shared: Container[str], quiet: timedelta) -> Iterable[list[Sighting]]:
    """Join parts that have an address in common that is not shared."""
    groups = [_Group(part, {each.finding.owner for each in part if each.finding.owner}) for part in parts]
    of_part = list(range(len(groups)))

    def root(number: int) -> int:
        while of_part[number] != number:
            of_part[number] = number = of_part[of_part[number]]
        return number

    for _, first, second in sorted(_links(parts, shared, quiet)):
        one, other = root(first), root(second)
        if one == other or len(groups[one].owners | groups[other].owners) > MOST_OWNERS:
            continue
        groups[one].sightings.extend(groups[other].sightings)
        groups[one].owners |= groups[other].owners
        of_part[other] = one
    return [groups[number].sightings for number in range(len(groups)) if root(number) == number]


def _links(
    parts: Sequence[list[Sighting]], shared: Container[str], quiet: timedelta
) -> Iterator[tuple[tuple[datetime, str, str], int, int]]:
    """Give the pairs of parts that an address joins, each with its instant, its address and its finding."""
    numbered = [(each, number) for number, part in enumerate(parts) for each in part]
    for address, there in _at_addresses(numbered, lambda one: one[0]).items():
        if address in shared:
            continue
        there.sort(key=lambda one: _in_time(one[0]))
        latest, holder = there[0][0].finding.last_seen, there[0][1]
        for each, number in there[1:]:
            if each.finding.first_seen <= latest + quiet:
                yield (each.finding.first_seen, address, each.id), holder, number
            if each.finding.last_seen >= latest:
                latest, holder = each.finding.last_seen, number


def _shared(sightings: Sequence[Sighting], principals_at: Mapping[str, int]) -> frozenset[str]:
    """Find the addresses that many principals without a finding share."""
    suspected = {
        address: len({each.finding.owner for each in there if each.finding.owner})
        for address, there in _at_addresses(sightings, lambda one: one).items()
    }
    return frozenset(
        address for address, owners in suspected.items() if principals_at.get(address, 0) - owners > BYSTANDERS
    )


def _at_addresses(things: Iterable[T], sighting: Callable[[T], Sighting]) -> Mapping[str, list[T]]:
    there: dict[str, list[T]] = defaultdict(list)
    for thing in things:
        if address := sighting(thing).address:
            there[address].append(thing)
    return there


def _in_time(sighting: Sighting) -> tuple[datetime, str]:
    return sighting.finding.first_seen, sighting.id


def _with_related(cases: Sequence[Case], shared: Container[str]) -> Iterator[Case]:
    """Add to each case the other ones that name one of its owners, or one of its addresses that is not shared."""
    naming: dict[tuple[str, str], list[str]] = defaultdict(list)
    for case in cases:
        for name in _names(case, shared):
            naming[name].append(case.id)
    for case in cases:
        related = dict.fromkeys(other for name in _names(case, shared) for other in naming[name] if other != case.id)
        yield replace(case, related=tuple(related))


def _names(case: Case, shared: Container[str]) -> Iterator[tuple[str, str]]:
    yield from (("owner", name) for name in case.owners)
    yield from (("address", name) for name in case.addresses if name not in shared)
