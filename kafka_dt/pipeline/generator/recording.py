"""Make the events of an owner's day from the lives of its tokens.

The lives say when tokens are created, renewed and ended. The rest of the owner's part of the scenario's events
(`Share`) is logins: each process has some when it begins, because a client opens a connection to every node that it
talks to, and the rest is shared among processes by the time that they run. Half of that rest re-authenticates the
connection that a process keeps; the other half opens new connections. When a node restarts, its clients come back
elsewhere within seconds, and a node tells some of them first that it cannot check a login at present.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.audit import EventType, RefusalReason
from kafka_dt.pipeline.generator.drafts import Desk, Draft, refused, token_login
from kafka_dt.pipeline.generator.scenario import HOUR_MS, SECOND_MS, Scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kafka_dt.pipeline.generator.lives import TokenLife, TokenSession
    from kafka_dt.pipeline.generator.owners import Owner

_FIRST_MS: Final = 3 * SECOND_MS
"""In which a new process opens its connections."""
_COMES_BACK_MS: Final = 9 * SECOND_MS
_TOLD_LATER: Final = 0.03
_AT_RESTARTED_NODE: Final = 0.5


class Day:
    """A day that is recorded."""

    def __init__(self, scenario: Scenario, number: int) -> None:
        self.scenario = scenario
        self.number = number
        self.begin_ms = scenario.begin_ms(number)
        self.end_ms = scenario.begin_ms(number + 1)
        """The first millisecond of the next one."""
        self.restarts = [(at_ms, node) for at_ms, node in _restarts(scenario) if self.has(at_ms)]
        """When which nodes go and come back."""

    def has(self, instant_ms: int) -> bool:
        """Whether an instant is in it."""
        return self.begin_ms <= instant_ms < self.end_ms


def _restarts(scenario: Scenario) -> Iterator[tuple[int, int]]:
    """Give all restarts: a rolling one every two weeks, and once a crash."""
    chance = scenario.chance("restarts")
    for fortnight in range(0, scenario.days, 14):
        first_ms = scenario.begin_ms(min(scenario.days - 1, fortnight + chance.randrange(14))) + 10 * HOUR_MS
        for node in range(scenario.nodes):
            yield first_ms + node * 5 * 60 * SECOND_MS, node
    crashed_ms = scenario.start_ms + int(chance.random() * (scenario.end_ms - scenario.start_ms))
    yield crashed_ms, chance.randrange(scenario.nodes)


def record(day: Day, owner: Owner, lives: Sequence[TokenLife], events: float, desk: Desk) -> Iterator[Draft]:
    """Make the drafts of an owner's day: about `events` of them, with the tokens whose lives touch the day."""
    done = [draft for life in lives for draft in (*_changes(day, owner, life, desk), *_retries(day, owner, life, desk))]
    yield from done
    yield from _logins(day, owner, lives, events - len(done), desk)


def _changes(day: Day, owner: Owner, life: TokenLife, desk: Desk) -> Iterator[Draft]:
    planned = [
        (EventType.TOKEN_CREATED, life.issued_ms, life.requester),
        *((EventType.TOKEN_RENEWED, each.at_ms, each.by) for each in life.renewals),
        *([(EventType.TOKEN_EXPIRED, life.cancelled.at_ms, life.cancelled.by)] if life.cancelled else []),
    ]
    for kind, at_ms, who in planned:
        if day.has(at_ms):
            yield from desk.token_acts(kind, owner, life, who, at_ms)
    if life.removed_ms is not None:
        late_ms = desk.chance.randrange(2 * SECOND_MS)
        if day.has(life.removed_ms):
            yield desk.removal(owner, life, life.removed_ms + late_ms)


def _retries(day: Day, owner: Owner, life: TokenLife, desk: Desk) -> Iterator[Draft]:
    for retries in life.retries:
        login = token_login(owner, life, retries.session)
        expired, unknown = refused(login, RefusalReason.EXPIRED_TOKEN), refused(login, RefusalReason.UNKNOWN_TOKEN)
        for instant_ms in filter(day.has, retries.instants_ms):
            gone = life.removed_ms is None or instant_ms > life.removed_ms
            yield desk.login(instant_ms + desk.chance.randrange(700), unknown if gone else expired)


@dataclass(frozen=True, slots=True)
class _Presence:
    """A process during the day."""

    life: TokenLife
    session: TokenSession
    begin_ms: int
    end_ms: int
    begins: bool
    """Whether it begins on this day."""

    @property
    def hours(self) -> float:
        return (self.end_ms - self.begin_ms) / HOUR_MS


def _logins(day: Day, owner: Owner, lives: Sequence[TokenLife], events: float, desk: Desk) -> Iterator[Draft]:
    there = [each for life in lives for each in _presences(day, life)]
    if not there:
        return
    first = sum(each.begins for each in there)
    # A client has a connection to each node and one to find them; where there is too little for all, it has fewer.
    opens = max(1, min(1 + desk.nodes, int(0.8 * events / first))) if first else 0
    hours = sum(each.hours for each in there)
    an_hour = max(0.0, events - opens * first) / (hours or 1.0)
    for each in there:
        login = token_login(owner, each.life, each.session)
        if each.begins:
            yield from _opening(each, login, opens, desk)
        more = an_hour * each.hours
        yield from _further(each, login, int(more) + (desk.chance.random() < more % 1), desk)
        yield from _back(day, each, login, desk)


def _presences(day: Day, life: TokenLife) -> Iterator[_Presence]:
    for session in life.sessions:
        begin_ms, end_ms = max(session.begin_ms, day.begin_ms), min(session.end_ms, day.end_ms)
        if begin_ms < end_ms:
            yield _Presence(life, session, begin_ms, end_ms, begins=session.begin_ms >= day.begin_ms)


def _opening(presence: _Presence, login: Mapping[str, Any], count: int, desk: Desk) -> Iterator[Draft]:
    """Connect to one node, and then to each."""
    chance = desk.chance
    first = presence.session.port % desk.nodes
    within_ms = min(_FIRST_MS, presence.end_ms - presence.begin_ms)
    yield Draft(presence.begin_ms, first, login, _kept(presence), presence.session.port)
    for number in range(1, count):
        yield desk.login(presence.begin_ms + chance.randrange(within_ms), login, (first + number) % desk.nodes)


def _further(presence: _Presence, login: Mapping[str, Any], count: int, desk: Desk) -> Iterator[Draft]:
    """Log in during the day: half on the connection that is kept, half on others."""
    chance = desk.chance
    lasts_ms = presence.end_ms - presence.begin_ms
    kept_node = presence.session.port % desk.nodes
    for number in range(count):
        if presence.session.bursty:
            yield desk.login(presence.begin_ms + int(lasts_ms * chance.random() ** 3), login)
        elif number % 2:
            yield desk.login(presence.begin_ms + int(lasts_ms * chance.random()), login)
        else:
            at_ms = presence.begin_ms + int(lasts_ms * (number + chance.random()) / count)
            yield Draft(min(at_ms, presence.end_ms - 1), kept_node, login, _kept(presence), presence.session.port)


def _back(day: Day, presence: _Presence, login: Mapping[str, Any], desk: Desk) -> Iterator[Draft]:
    """Come back elsewhere when a node has gone."""
    chance = desk.chance
    for restart_ms, restarted in day.restarts:
        if not presence.begin_ms < restart_ms < presence.end_ms - _COMES_BACK_MS:
            continue
        if chance.random() > _AT_RESTARTED_NODE:
            continue
        at_ms = restart_ms + chance.randrange(_COMES_BACK_MS)
        node = (restarted + 1 + chance.randrange(max(1, desk.nodes - 1))) % desk.nodes
        if chance.random() < _TOLD_LATER:
            yield desk.login(at_ms - 900, refused(login, RefusalReason.UNAVAILABLE), node)
        yield desk.login(at_ms, login, node)


def _kept(presence: _Presence) -> str:
    """Name the connection that a process keeps: the same on all of its days, and no other process's."""
    instance = zlib.crc32(f"{presence.life.token_id}{presence.session.begin_ms}".encode())
    return f"{instance:08x}-c{presence.session.port}"
