"""Plants incidents: which token of whom, when, and how much of it there is to see.

    planted = plant(scenario, shares)
    truth = Truth(scenario.document(), tuple(each.incident for each in planted))

Strengths take turns, and so do the kinds of work, so that a few incidents have something of everything. No token is
taken twice. Nothing happens in the first quarter, at most a week: before there is a history, nothing can be unlike it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_dt.pipeline.generator import network
from kafka_dt.pipeline.generator.drafts import Desk, Draft
from kafka_dt.pipeline.generator.owners import Owner, Work
from kafka_dt.pipeline.generator.scenario import HOUR_MS, Scenario, utc
from kafka_dt.pipeline.generator.strangers import Victim, guesses, renews, steals, uses_after_revocation
from kafka_dt.pipeline.generator.truth import Incident, IncidentKind, Strength

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

    from kafka_dt.pipeline.generator.shares import Shares

_TRIES: Final = 80
_STRENGTHS: Final = (Strength.PLAIN, Strength.SUBTLE, Strength.BLATANT)
_OF_TOKENS: Final[Mapping[IncidentKind, Callable[[Victim, Strength, Desk], list[Draft]]]] = {
    IncidentKind.STOLEN_TOKEN: steals,
    IncidentKind.USE_AFTER_REVOCATION: uses_after_revocation,
    IncidentKind.FOREIGN_RENEWAL: renews,
}
_WORKS: Final[Mapping[IncidentKind, Sequence[Work]]] = {
    IncidentKind.STOLEN_TOKEN: (Work.SERVICE, Work.BATCH, Work.STREAMING, Work.BATCH, Work.NOTEBOOK),
    IncidentKind.USE_AFTER_REVOCATION: (Work.BATCH, Work.NOTEBOOK, Work.STREAMING, Work.SERVICE),
    IncidentKind.FOREIGN_RENEWAL: (Work.SERVICE, Work.STREAMING, Work.BATCH),
}


@dataclass(frozen=True, slots=True)
class Planted:
    """An incident and its events."""

    incident: Incident
    drafts: Sequence[Draft]
    owner: Owner | None
    """Whose token is concerned."""


def plant(scenario: Scenario, shares: Shares) -> list[Planted]:
    """Plan all incidents; fewer than asked for where there is no room for more."""
    taken: set[str] = set()
    found = []
    for number in range(scenario.incidents):
        for kind in IncidentKind:
            made = _plant(scenario, shares, (kind, number), taken)
            if made is not None:
                taken.add(made.incident.subject)
                found.append(made)
    return found


def _plant(scenario: Scenario, shares: Shares, named: tuple[IncidentKind, int], taken: set[str]) -> Planted | None:
    kind, number = named
    chance = scenario.chance("incident", kind, number)
    strength = _STRENGTHS[number % len(_STRENGTHS)]
    for attempt in range(_TRIES):
        desk = Desk(scenario, "incident", kind, number, attempt)
        if kind is IncidentKind.UNKNOWN_ID_BURST:
            place = _somewhere(shares.owners, strength, chance)
            begin_ms = chance.randrange(_first_ms(scenario), scenario.end_ms - 6 * HOUR_MS)
            made = _planted(kind, strength, guesses(place, begin_ms, strength, desk), address=place.address)
        else:
            works = _WORKS[kind]
            # After some attempts any work will do.
            work = works[(number + attempt // 20) % len(works)]
            victim = _victim(scenario, shares, work, chance)
            if victim is None or victim.life.token_id in taken:
                continue
            made = _planted(kind, strength, _OF_TOKENS[kind](victim, strength, desk), victim=victim)
        if made and made.incident.subject not in taken and _fits(scenario, made):
            return made
    return None


def _victim(scenario: Scenario, shares: Shares, work: Work, chance: random.Random) -> Victim | None:
    mine = [each for each in shares.owners if each.work is work]
    owner = chance.choice(mine)
    day = chance.randrange(_first_day(scenario), scenario.days)
    # A token that has ended before the first event is one of which nothing is known.
    lives = [each for each in shares.lives(owner, day) if each.end_ms > scenario.start_ms]
    others = chance.choice([each.home[0] for each in shares.owners if each.home[0] not in owner.home])
    return Victim(owner, chance.choice(lives), others) if lives else None


def _somewhere(owners: Sequence[Owner], strength: Strength, chance: random.Random) -> network.Place:
    match strength:
        case Strength.BLATANT:
            return chance.choice(network.INTERNET).any_host(chance)
        case Strength.PLAIN:
            return chance.choice(network.ELSEWHERE).any_host(chance)
        case Strength.SUBTLE:
            return chance.choice([each.home[0] for each in owners if each.work is Work.NOTEBOOK]).any_host(chance)


def _planted(
    kind: IncidentKind,
    strength: Strength,
    drafts: Sequence[Draft],
    *,
    victim: Victim | None = None,
    address: str | None = None,
) -> Planted | None:
    if not drafts:
        return None
    incident = Incident(
        kind=kind,
        strength=strength,
        begin=utc(min(each.time_ms for each in drafts)),
        end=utc(max(each.time_ms for each in drafts)),
        events=len(drafts),
        token_id=victim.life.token_id if victim else None,
        owner=victim.owner.principal if victim else None,
        address=address,
    )
    return Planted(incident, drafts, victim.owner if victim else None)


def _fits(scenario: Scenario, planted: Planted) -> bool:
    first_ms, last_ms = (reduce(each.time_ms for each in planted.drafts) for reduce in (min, max))
    return first_ms >= _first_ms(scenario) and last_ms < scenario.end_ms


def _first_day(scenario: Scenario) -> int:
    return max(1, min(7, scenario.days // 4))


def _first_ms(scenario: Scenario) -> int:
    return scenario.begin_ms(_first_day(scenario))
