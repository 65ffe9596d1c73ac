"""Plants incidents: which token of which owner, when, and the drafts of a stranger that has a token, or guesses one.

    planted = plant(scenario, workloads)
    truth = Truth(scenario.document(), tuple(each.incident for each in planted))

Strengths take turns, and so do the kinds of work, so that a few incidents have something of everything. No token is
taken twice. Nothing happens in the first quarter, at most a week: before there is a history, nothing can be unlike it.

Each kind has a function that gets a token's life (a burst of ids needs none) and a strength, and gives drafts; none
where that life has no room for it. A blatant incident comes from the internet, with a tool of its own, dozens of times.
A subtle one comes two or three times, from the very subnet with another client, or with the very client from another
team's subnet; or it is one renewal by a principal that the list allows, from where it always works.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kafka_dt.audit import EventType, RefusalReason
from kafka_dt.pipeline.generator import clients
from kafka_dt.pipeline.generator.clients import Place, Software, Subnet, strangers_tool
from kafka_dt.pipeline.generator.drafts import Desk, Draft, refused, token_login, unknown_id
from kafka_dt.pipeline.generator.lives import TokenLife, TokenSession, port, token_id
from kafka_dt.pipeline.generator.owners import Owner, Work
from kafka_dt.pipeline.generator.scenario import DAY_MS, EXPIRY_MS, HOUR_MS, MINUTE_MS, Scenario, utc
from kafka_dt.pipeline.generator.truth import Incident, IncidentKind, Strength

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

    from kafka_dt.pipeline.generator.workloads import Workloads

_ATTEMPTS: Final = 80
_STRENGTHS: Final = (Strength.PLAIN, Strength.SUBTLE, Strength.BLATANT)
_HISTORY_MS: Final = 15 * MINUTE_MS
"""How long a token has been in use before it is stolen, at least."""
_TIMES: Final = {Strength.BLATANT: (30, 120), Strength.PLAIN: (6, 15), Strength.SUBTLE: (2, 4)}
_WITHIN_MS: Final = {Strength.BLATANT: 6 * HOUR_MS, Strength.PLAIN: 3 * HOUR_MS, Strength.SUBTLE: HOUR_MS}
_TRIES: Final = {Strength.BLATANT: (20, 60), Strength.PLAIN: (4, 10), Strength.SUBTLE: (1, 3)}
_LATER_MS: Final = {
    Strength.BLATANT: (6 * HOUR_MS, 3 * DAY_MS),
    Strength.PLAIN: (2 * HOUR_MS, 30 * HOUR_MS),
    Strength.SUBTLE: (20 * MINUTE_MS, 2 * HOUR_MS),
}
_IDS: Final = {Strength.BLATANT: (200, 600), Strength.PLAIN: (30, 80), Strength.SUBTLE: (8, 14)}
_IDS_WITHIN_MS: Final = {
    Strength.BLATANT: (3 * MINUTE_MS, 15 * MINUTE_MS),
    Strength.PLAIN: (30 * MINUTE_MS, 90 * MINUTE_MS),
    Strength.SUBTLE: (2 * HOUR_MS, 5 * HOUR_MS),
}
_RENEWALS: Final = {Strength.BLATANT: (3, 5), Strength.PLAIN: (1, 2), Strength.SUBTLE: (1, 1)}


@dataclass(frozen=True, slots=True)
class Planted:
    """An incident and its events."""

    incident: Incident
    drafts: Sequence[Draft]
    owner: Owner | None
    """Whose token is concerned."""


def plant(scenario: Scenario, workloads: Workloads) -> list[Planted]:
    """Plan all incidents; fewer than asked for where there is no room for more."""
    taken: set[str] = set()
    found = []
    for number in range(scenario.incidents):
        for kind in IncidentKind:
            made = _plant(scenario, workloads, kind, number, taken)
            if made is not None:
                taken.add(made.incident.subject)
                found.append(made)
    return found


def _plant(
    scenario: Scenario, workloads: Workloads, kind: IncidentKind, number: int, taken: set[str]
) -> Planted | None:
    chance = scenario.chance("incident", kind, number)
    strength = _STRENGTHS[number % len(_STRENGTHS)]
    for attempt in range(_ATTEMPTS):
        desk = Desk(scenario, "incident", kind, number, attempt)
        if kind is IncidentKind.UNKNOWN_ID_BURST:
            place = _somewhere(workloads.owners, strength, chance)
            begin_ms = chance.randrange(_first_ms(scenario), scenario.end_ms - 6 * HOUR_MS)
            made = _planted(kind, strength, _guesses(place, begin_ms, strength, desk), place)
        else:
            plan, works = _OF_TOKENS[kind]
            # After some attempts any work will do.
            work = works[(number + attempt // 20) % len(works)]
            victim = _victim(scenario, workloads, work, chance)
            if victim is None or victim.life.token_id in taken:
                continue
            made = _planted(kind, strength, plan(victim, strength, desk), victim)
        if made and made.incident.subject not in taken and _fits(scenario, made):
            return made
    return None


def _victim(scenario: Scenario, workloads: Workloads, work: Work, chance: random.Random) -> _Victim | None:
    mine = [each for each in workloads.owners if each.work is work]
    owner = chance.choice(mine)
    day = chance.randrange(_first_day(scenario), scenario.days)
    # A token that ended before the first event has no history in the events.
    lives = [each for each in workloads.lives(owner, day) if each.end_ms > scenario.start_ms]
    others = chance.choice([each.home[0] for each in workloads.owners if each.home[0] not in owner.home])
    return _Victim(owner, chance.choice(lives), others) if lives else None


def _somewhere(owners: Sequence[Owner], strength: Strength, chance: random.Random) -> clients.Place:
    match strength:
        case Strength.BLATANT:
            return chance.choice(clients.INTERNET).any_host(chance)
        case Strength.PLAIN:
            return chance.choice(clients.ELSEWHERE).any_host(chance)
        case Strength.SUBTLE:
            return chance.choice([each.home[0] for each in owners if each.work is Work.NOTEBOOK]).any_host(chance)


def _planted(
    kind: IncidentKind, strength: Strength, drafts: Sequence[Draft], subject: _Victim | Place
) -> Planted | None:
    if not drafts:
        return None
    victim = subject if isinstance(subject, _Victim) else None
    incident = Incident(
        kind=kind,
        strength=strength,
        begin=utc(min(each.time_ms for each in drafts)),
        end=utc(max(each.time_ms for each in drafts)),
        events=len(drafts),
        token_id=victim.life.token_id if victim else None,
        owner=victim.owner.principal if victim else None,
        address=subject.address if isinstance(subject, Place) else None,
    )
    return Planted(incident, drafts, victim.owner if victim else None)


def _fits(scenario: Scenario, planted: Planted) -> bool:
    return all(_first_ms(scenario) <= each.time_ms < scenario.end_ms for each in planted.drafts)


def _first_day(scenario: Scenario) -> int:
    return max(1, min(7, scenario.days // 4))


def _first_ms(scenario: Scenario) -> int:
    return scenario.begin_ms(_first_day(scenario))


@dataclass(frozen=True, slots=True)
class _Victim:
    owner: Owner
    life: TokenLife
    others: Subnet
    """Where another team works."""


def _steals(victim: _Victim, strength: Strength, desk: Desk) -> list[Draft]:
    """Log in with a token that is in use."""
    life, chance = victim.life, desk.chance
    if not life.sessions:
        return []
    first_ms = min(each.begin_ms for each in life.sessions) + _HISTORY_MS
    if first_ms >= life.end_ms - 2 * _HISTORY_MS:
        return []
    begin_ms = chance.randrange(first_ms, life.end_ms - _HISTORY_MS)
    until_ms = min(begin_ms + _WITHIN_MS[strength], life.end_ms - 1)
    thieves = [token_login(victim.owner, life, each) for each in _thieves(victim, strength, begin_ms, chance)]
    count = chance.randint(*_TIMES[strength])
    instants = sorted(chance.randrange(begin_ms, until_ms) for _ in range(count))
    # Each of them at least once.
    return [
        desk.login(at_ms, thieves[number] if number < len(thieves) else chance.choice(thieves))
        for number, at_ms in enumerate(instants)
    ]


def _uses_after_revocation(victim: _Victim, strength: Strength, desk: Desk) -> list[Draft]:
    """Try a token that a request has ended."""
    life, chance = victim.life, desk.chance
    if life.cancelled is None or not life.sessions:
        return []
    at_ms = life.cancelled.at_ms + chance.randrange(*_LATER_MS[strength])
    if strength is Strength.SUBTLE:
        last = life.sessions[-1]
        place = victim.owner.home[0].any_host(chance)
        who: Sequence[TokenSession] = [_session(place, last.client_id, last.software, at_ms, chance)]
    else:
        who = _thieves(victim, strength, at_ms, chance)[:2]
    drafts = []
    for _ in range(chance.randint(*_TRIES[strength])):
        login = token_login(victim.owner, life, chance.choice(who))
        drafts.append(desk.login(at_ms, refused(login, RefusalReason.UNKNOWN_TOKEN)))
        at_ms += chance.randrange(2 * MINUTE_MS, 30 * MINUTE_MS)
    return drafts


def _renews(victim: _Victim, strength: Strength, desk: Desk) -> list[Draft]:
    """Renew a token that another account renews.

    There is a later renewal or a request that ends the token, so that it ends as if nothing had happened.
    """
    owner, life, chance = victim.owner, victim.life, desk.chance
    usual = owner.renewer(life.issued_ms)
    who = owner.spare or (owner.account if usual.principal != owner.principal else None)
    if who is None or not life.renewals:
        return []
    first_ms = life.renewals[0].at_ms + _HISTORY_MS
    last_ms = life.cancelled.at_ms if life.cancelled else life.renewals[-1].at_ms
    if first_ms >= last_ms - _HISTORY_MS:
        return []
    if strength is not Strength.SUBTLE:
        places = clients.INTERNET if strength is Strength.BLATANT else clients.ELSEWHERE
        who = replace(who, place=chance.choice(places).any_host(chance), client_id="adminclient-7")
    count = chance.randint(*_RENEWALS[strength])
    begin_ms = chance.randrange(first_ms, last_ms - _HISTORY_MS // 2)
    until_ms = min(begin_ms + 4 * HOUR_MS, last_ms)
    drafts: list[Draft] = []
    for at_ms in sorted({begin_ms, *(chance.randrange(begin_ms, until_ms) for _ in range(count - 1))}):
        login, renewal = desk.token_acts(EventType.TOKEN_RENEWED, owner, life, who, at_ms)
        expiry_ms = min(at_ms + EXPIRY_MS, life.max_ms)
        drafts += (login, renewal._replace(shared={**renewal.shared, "expiry_time": expiry_ms}))
    return drafts


def _guesses(place: Place, begin_ms: int, strength: Strength, desk: Desk) -> list[Draft]:
    """Try ids that no token has."""
    chance = desk.chance
    tool = strangers_tool(chance)
    lasts_ms = chance.randrange(*_IDS_WITHIN_MS[strength])
    count = chance.randint(*_IDS[strength])
    return [
        desk.login(at_ms, unknown_id(place, tool, "SCRAM-SHA-256", token_id(chance)))
        for at_ms in sorted(begin_ms + chance.randrange(lasts_ms) for _ in range(count))
    ]


def _thieves(victim: _Victim, strength: Strength, begin_ms: int, chance: random.Random) -> Sequence[TokenSession]:
    """Draw the processes of a stranger that has the token."""
    theirs = chance.choice(victim.life.sessions)
    while (tool := strangers_tool(chance)).name == theirs.software.name:
        pass
    if strength is Strength.BLATANT:
        subnet = chance.choice(clients.INTERNET)
        places = {subnet.any_host(chance) for _ in range(chance.randint(3, 6))}
        return [_session(each, "client-1", tool, begin_ms, chance) for each in sorted(places, key=lambda p: p.address)]
    if strength is Strength.PLAIN:
        place = chance.choice(clients.ELSEWHERE).any_host(chance)
        software = chance.choice((tool, theirs.software))
        return [_session(place, f"console-consumer-{chance.randrange(90_000)}", software, begin_ms, chance)]
    if chance.random() < 0.5:  # noqa: PLR2004 - the one or the other
        return [_session(victim.others.any_host(chance), theirs.client_id, theirs.software, begin_ms, chance)]
    return [_session(victim.owner.home[0].any_host(chance), "rdkafka", tool, begin_ms, chance)]


def _session(place: Place, client_id: str, software: Software, begin_ms: int, chance: random.Random) -> TokenSession:
    return TokenSession(place, client_id, software, begin_ms, begin_ms, port(chance))


_OF_TOKENS: Final[Mapping[IncidentKind, tuple[Callable[[_Victim, Strength, Desk], list[Draft]], Sequence[Work]]]] = {
    IncidentKind.STOLEN_TOKEN: (_steals, (Work.SERVICE, Work.BATCH, Work.STREAMING, Work.BATCH, Work.NOTEBOOK)),
    IncidentKind.USE_AFTER_REVOCATION: (
        _uses_after_revocation,
        (Work.BATCH, Work.NOTEBOOK, Work.STREAMING, Work.SERVICE),
    ),
    IncidentKind.FOREIGN_RENEWAL: (_renews, (Work.SERVICE, Work.STREAMING, Work.BATCH)),
}
"""Incidents about a token: what makes the drafts, and the kinds of work that take turns."""
