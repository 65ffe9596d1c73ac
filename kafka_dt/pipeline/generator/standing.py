"""Processes that run for weeks while their tokens come and go: streaming jobs, and services with replicas.

A job has so many processes, each of which is restarted now and then and gets another address of its subnet
(`_Incarnation`): by the platform on any day, all of them one after the other when a new version of the client library
or of the service itself is rolled out, and more of them from the day on which the job is scaled up.

Its tokens follow each other. One is renewed until the next is there, and processes move to the next within two hours,
so both are in use for a while. A streaming job gets its next token at three quarters of the longest life; a service
gets one with each deployment, every five or six days. Sometimes no renewal comes: then the token ends under the
service, which goes on trying until it is deployed again.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_dt.pipeline.generator.lives import Cancellation, Renewal, Retries, TokenLife, TokenSession, port, token_id
from kafka_dt.pipeline.generator.owners import Work
from kafka_dt.pipeline.generator.scenario import (
    CHECK_MS,
    DAY_MS,
    EXPIRY_MS,
    HOUR_MS,
    MAX_LIFE_MS,
    MINUTE_MS,
    SECOND_MS,
    Scenario,
)

if TYPE_CHECKING:
    import random

    from kafka_dt.pipeline.generator.clients import Place, Software
    from kafka_dt.pipeline.generator.owners import Owner

_LEAD_DAYS: Final = 9
"""The jobs run before the scenario begins."""
_RESTARTS_A_DAY: Final = 0.02
_DEPLOYS_A_DAY: Final = 0.2
"""Of a service; they bring new pods and not always a new token."""
_FORGOTTEN: Final = 0.04
"""The share of the tokens of services that are not renewed."""
_RETRY_MS: Final = 2 * MINUTE_MS


@dataclass(frozen=True, slots=True)
class _Incarnation:
    """A process from one start to the next."""

    place: Place
    client_id: str
    software: Software
    begin_ms: int
    end_ms: int
    port: int


@dataclass(frozen=True, slots=True)
class _Term:
    """A token's time in a job."""

    issued_ms: int
    next_ms: int
    """When the next one is issued."""
    renewals: tuple[int, ...]

    @property
    def end_ms(self) -> int:
        """When it ends by its age."""
        return min((self.renewals or (self.issued_ms,))[-1] + EXPIRY_MS, self.issued_ms + MAX_LIFE_MS)

    @property
    def last_ms(self) -> int:
        """When the last of it can happen."""
        return max(self.end_ms + CHECK_MS, self.next_ms + 3 * HOUR_MS)


def lives(scenario: Scenario, owner: Owner, day: int, processes: float) -> Iterator[TokenLife]:
    """Plan the tokens whose life touches a day.

    Args:
        scenario: whose days.
        owner: of the jobs.
        day: which one.
        processes: how many a job has, on average.
    """
    begin_ms, end_ms = scenario.begin_ms(day), scenario.begin_ms(day + 1)
    jobs = scenario.chance("standing", owner.number).choice((1, 1, 2, 3))
    for number in range(jobs):
        name = f"{owner.name}-{number}"
        terms = [
            each
            for each in _terms(scenario, owner, scenario.chance("terms", name))
            if each.issued_ms < end_ms and each.last_ms >= begin_ms
        ]
        if not terms:
            continue
        incarnations = list(_processes(scenario, owner, name, processes, day + 1))
        for term in terms:
            yield _life(scenario, owner, (name, term), incarnations)


def _terms(scenario: Scenario, owner: Owner, chance: random.Random) -> Iterator[_Term]:
    issued_ms = scenario.begin_ms(-_LEAD_DAYS) + chance.randrange(5 * DAY_MS)
    while issued_ms < scenario.end_ms:
        if owner.work is Work.STREAMING:
            next_ms = issued_ms + int(0.75 * MAX_LIFE_MS) + chance.randrange(HOUR_MS)
            every_ms, forgotten = 18 * HOUR_MS, False
        else:
            # It is deployed in working hours.
            next_ms = issued_ms + chance.choice((4, 5, 5, 6)) * DAY_MS
            next_ms += 9 * HOUR_MS + chance.randrange(8 * HOUR_MS) - (next_ms - scenario.start_ms) % DAY_MS
            every_ms, forgotten = 12 * HOUR_MS, chance.random() < _FORGOTTEN
        renewals = []
        at_ms = issued_ms + every_ms + chance.randrange(5 * MINUTE_MS)
        while at_ms < next_ms and not (forgotten and at_ms > issued_ms + 2 * DAY_MS):
            renewals.append(at_ms)
            at_ms += every_ms + chance.randrange(5 * MINUTE_MS)
        term = _Term(issued_ms, next_ms, tuple(renewals))
        if term.end_ms < next_ms:
            # It ends under the job; after a while its team notices.
            term = _Term(issued_ms, term.end_ms + chance.randrange(10 * MINUTE_MS, 5 * HOUR_MS), tuple(renewals))
        yield term
        issued_ms = term.next_ms


def _processes(scenario: Scenario, owner: Owner, name: str, mean: float, until: int) -> Iterator[_Incarnation]:
    """Walk every process of a job from start to start, until a day."""
    chance = scenario.chance("processes", name)
    count = max(1, round(mean * chance.lognormvariate(-0.1, 0.5)))
    later = round(count * chance.choice((0, 0, 0.5, 1)))
    scaled_ms = scenario.begin_ms(chance.randrange(scenario.days)) + 13 * HOUR_MS
    rollouts = sorted(_rollouts(scenario, owner, chance))
    until_ms = scenario.begin_ms(until)
    for number in range(count + later):
        own = scenario.chance("process", name, number)
        begin_ms = scenario.begin_ms(-_LEAD_DAYS) if number < count else scaled_ms
        client_id = _client_id(owner, name, number)
        while begin_ms < until_ms:
            end_ms = begin_ms + int(own.expovariate(_RESTARTS_A_DAY) * DAY_MS) + MINUTE_MS
            for rollout_ms in rollouts:
                mine_ms = rollout_ms + number * 40 * SECOND_MS
                if begin_ms < mine_ms < end_ms:
                    end_ms = mine_ms
                    break
            place = owner.home[0].any_host(own)
            yield _Incarnation(place, client_id, owner.versions.at(begin_ms), begin_ms, end_ms, port(own))
            begin_ms = end_ms + own.randrange(5 * SECOND_MS, 40 * SECOND_MS)


def _rollouts(scenario: Scenario, owner: Owner, chance: random.Random) -> Iterator[int]:
    if owner.versions.moves_ms < scenario.end_ms:
        yield owner.versions.moves_ms
    if owner.work is Work.SERVICE:
        for day in range(-_LEAD_DAYS, scenario.days):
            deployed, at_ms = chance.random() < _DEPLOYS_A_DAY, 9 * HOUR_MS + chance.randrange(8 * HOUR_MS)
            if deployed and scenario.is_working_day(day):
                yield scenario.begin_ms(day) + at_ms


def _client_id(owner: Owner, name: str, number: int) -> str:
    if owner.work is Work.STREAMING:
        return f"{name}-KafkaSource-{number}"
    return f"{name}-{number}" if owner.versions.before.name else "aiokafka-0.12.0"


def _life(scenario: Scenario, owner: Owner, named: tuple[str, _Term], incarnations: list[_Incarnation]) -> TokenLife:
    name, term = named
    chance = scenario.chance("token", name, term.issued_ms)
    token = token_id(chance)
    renewer = owner.renewer(term.issued_ms)
    cancelled = None
    if chance.random() < 0.3 and term.end_ms > term.next_ms + 3 * HOUR_MS:  # noqa: PLR2004 - few are tidy
        cancelled = Cancellation(term.next_ms + 2 * HOUR_MS + chance.randrange(HOUR_MS // 2), owner.account)
    ends_ms = cancelled.at_ms if cancelled else term.end_ms
    sessions, retries = [], []
    for number, each in enumerate(incarnations):
        takes_ms = term.issued_ms + _moves_after(scenario, name, number, term.issued_ms)
        leaves_ms = term.next_ms + _moves_after(scenario, name, number, term.next_ms)
        begin_ms, end_ms = max(each.begin_ms, takes_ms), min(each.end_ms, leaves_ms, ends_ms)
        if begin_ms >= end_ms:
            continue
        session = TokenSession(each.place, each.client_id, each.software, begin_ms, end_ms, each.port)
        sessions.append(session)
        if end_ms == term.end_ms < term.next_ms:  # it goes on trying
            retries.append(Retries(session, tuple(range(end_ms + 3 * SECOND_MS, term.next_ms, _RETRY_MS))))
    renewals = tuple(Renewal(each, renewer) for each in term.renewals)
    return TokenLife(
        token,
        owner.requester,
        owner.renewers(term.issued_ms),
        term.issued_ms,
        renewals,
        cancelled,
        tuple(sessions),
        tuple(each for each in retries if each.instants_ms),
    )


def _moves_after(scenario: Scenario, name: str, number: int, issued_ms: int) -> int:
    """Say how long after its issue a process takes a token; a sum is enough for that, and far quicker than chance."""
    drawn = zlib.crc32(f"{scenario.seed}/{name}/{number}/{issued_ms}".encode())
    return MINUTE_MS + drawn % (2 * HOUR_MS - MINUTE_MS)
