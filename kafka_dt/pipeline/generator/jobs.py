"""Plan the tokens of programs: batch jobs, and processes that run for weeks while tokens come and go.

A batch job runs mostly at night, with one token a run. It starts most executors within two minutes; some are lost and
replaced, at another address, and some runs are a backfill with several times the executors. Most jobs cancel their
token when they are done, and an executor that is still shutting down may try once more. On YARN the resource manager
renews a token when it accepts the job, and once more on long runs.

A streaming job, or a service with replicas, has processes that are restarted now and then, or all one after the other
in a rollout, and get another address of their subnet. The tokens of such a job follow each other (`_Term`): processes
move to the next one within two hours. A streaming job gets it at three quarters of the longest life, a service with
each deployment. Sometimes no renewal comes: then the token ends under the service, which goes on trying until it is
deployed again.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kafka_dt.pipeline.generator.clients import YARN
from kafka_dt.pipeline.generator.lives import Granted, Retries, TokenLife, TokenSession, port, token_id
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
    from collections.abc import Iterator

    from kafka_dt.pipeline.generator.clients import Place
    from kafka_dt.pipeline.generator.owners import Owner

_LOOK_BACK_DAYS: Final = 4
"""A run may take 30 hours, and its token ends a day later."""
_NIGHT: Final = (0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 22, 23)
_BACKFILL: Final = 0.04
_LOST: Final = 0.04
_LATE: Final = 0.25
_LEAD_DAYS: Final = 9
"""Processes that run for weeks run before the scenario begins."""
_RESTARTS_A_DAY: Final = 0.02
_DEPLOYS_A_DAY: Final = 0.2
"""Of a service; they bring new pods and not always a new token."""
_FORGOTTEN: Final = 0.04
"""The share of the tokens of services that are not renewed."""
_RETRY_MS: Final = 2 * MINUTE_MS


@dataclass(frozen=True, slots=True)
class _Job:
    name: str
    begins_ms: int
    """After midnight."""
    executors: float
    usual_ms: float
    """How long it takes."""
    weekends: bool
    cancels: bool
    """Whether it ends its token when it is done."""


def batch_lives(scenario: Scenario, owner: Owner, day: int, runs: float, executors: float) -> Iterator[TokenLife]:
    """Plan the tokens of the runs that may touch a day: so many runs a working day, so many executors a run."""
    jobs = _jobs(scenario, owner, runs, executors)
    for begun in range(day - _LOOK_BACK_DAYS, day + 1):
        for job in jobs:
            if job.weekends or scenario.is_working_day(begun):
                yield _run(scenario, owner, job, begun)


def _jobs(scenario: Scenario, owner: Owner, runs: float, executors: float) -> list[_Job]:
    chance = scenario.chance("jobs", owner.number)
    count = int(runs) + (chance.random() < runs % 1)
    made = []
    for number in range(max(1, count)):
        # An owner with many runs has some by day, too.
        hour = chance.choice(_NIGHT) if number % 4 else chance.randrange(24)
        long = chance.random() < 0.02  # noqa: PLR2004 - one in fifty
        usual_ms = 14 * HOUR_MS if long else chance.lognormvariate(3.4, 0.7) * MINUTE_MS
        made.append(
            _Job(
                f"{owner.name}-{number}",
                hour * HOUR_MS + chance.randrange(60) * MINUTE_MS,
                max(1.0, executors * chance.lognormvariate(-0.2, 0.6)),
                usual_ms,
                chance.random() < 0.7,  # noqa: PLR2004 - most
                chance.random() < 0.65,  # noqa: PLR2004 - two in three
            )
        )
    return made


def _run(scenario: Scenario, owner: Owner, job: _Job, day: int) -> TokenLife:
    chance = scenario.chance("run", job.name, day)
    issued_ms = scenario.begin_ms(day) + job.begins_ms + chance.randrange(10 * MINUTE_MS)
    lasts_ms = min(30 * HOUR_MS, int(job.usual_ms * chance.lognormvariate(0, 0.25)) + MINUTE_MS)
    done_ms = issued_ms + lasts_ms
    token = token_id(chance)
    renewals = _renewals(owner, issued_ms, done_ms, chance)
    sessions = tuple(_executors(owner, job, (issued_ms, done_ms), chance))
    cancelled: Granted | None = None
    retries: tuple[Retries, ...] = ()
    if job.cancels:
        # A requester may not; YARN's resource manager does it for the jobs that it has run.
        by = owner.account if owner.requester is owner.account else owner.renewer(issued_ms)
        cancelled = Granted(done_ms + chance.randrange(500, 8 * SECOND_MS), by)
        if chance.random() < _LATE:
            retries = tuple(_late(sessions, cancelled.at_ms, chance))
    return TokenLife(
        token, owner.requester, owner.renewers(issued_ms), issued_ms, renewals, cancelled, sessions, retries
    )


def _executors(owner: Owner, job: _Job, span: tuple[int, int], chance: random.Random) -> Iterator[TokenSession]:
    begun_ms, done_ms = span
    lasts_ms = done_ms - begun_ms
    count = job.executors * chance.lognormvariate(0, 0.15) * (4 if chance.random() < _BACKFILL else 1)
    prefix = f"consumer-spark-kafka-source-{chance.getrandbits(32):08x}"
    places = _places(owner, max(1, round(count)) * 2 + 2, chance)

    def process(name: str, begin_ms: int, end_ms: int) -> TokenSession:
        software, end_ms = owner.versions.at(begin_ms), max(end_ms, begin_ms + 1)
        client_id = f"{prefix}-{name}"
        return TokenSession(places.pop(), client_id, software, begin_ms, end_ms, port(chance), bursty=True)

    yield process("driver-0", begun_ms + 2 * SECOND_MS, done_ms)
    for number in range(max(1, round(count))):
        at_once = number < 0.7 * count
        delay_ms = chance.randrange(4 * SECOND_MS, 120 * SECOND_MS) if at_once else int(lasts_ms * chance.random() / 3)
        first_ms = begun_ms + min(delay_ms, lasts_ms // 3)
        lost_ms = int(first_ms + (done_ms - first_ms) * chance.random()) if chance.random() < _LOST else done_ms
        yield process(f"executor-{number + 1}", first_ms, lost_ms)
        if lost_ms + 30 * SECOND_MS < done_ms:
            yield process(f"executor-{number + 1001}", lost_ms + 20 * SECOND_MS, done_ms)


def _places(owner: Owner, count: int, chance: random.Random) -> list[Place]:
    """Draw addresses in turns of the subnets; hosts of a Hadoop cluster are fewer, and have several executors."""
    hosts = 60 if owner.home == YARN else 240
    return [owner.home[number % len(owner.home)].host(chance.randrange(hosts)) for number in range(count)]


def _renewals(owner: Owner, issued_ms: int, done_ms: int, chance: random.Random) -> tuple[Granted, ...]:
    if owner.home != YARN and done_ms - issued_ms < DAY_MS // 2:
        return ()
    renewer = owner.renewer(issued_ms)
    instants = [issued_ms + chance.randrange(2 * SECOND_MS, 20 * SECOND_MS)]
    while instants[-1] + 18 * HOUR_MS < done_ms:
        instants.append(instants[-1] + 18 * HOUR_MS + chance.randrange(10 * MINUTE_MS))
    return tuple(Granted(each, renewer) for each in instants if each < done_ms)


def _late(sessions: tuple[TokenSession, ...], ended_ms: int, chance: random.Random) -> Iterator[Retries]:
    for session in chance.sample(sessions, min(len(sessions), chance.choice((1, 1, 2, 3)))):
        first_ms = ended_ms + chance.randrange(800, 10 * SECOND_MS)
        yield Retries(session, tuple(first_ms + number * 1500 for number in range(chance.choice((1, 2, 4)))))


@dataclass(frozen=True, slots=True)
class _Term:
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


def standing_lives(scenario: Scenario, owner: Owner, day: int, processes: float) -> Iterator[TokenLife]:
    """Plan the tokens whose life touches a day, of streaming jobs and services with so many processes on average."""
    begin_ms, end_ms = scenario.begin_ms(day), scenario.begin_ms(day + 1)
    jobs = scenario.chance("standing", owner.number).choice((1, 1, 2, 3))
    for number in range(jobs):
        name = f"{owner.name}-{number}"
        terms = [
            each
            for each in _terms(scenario, owner, scenario.chance("terms", name))
            if each.issued_ms < end_ms and each.last_ms >= begin_ms
        ]
        starts = list(_processes(scenario, owner, name, processes, day + 1)) if terms else []
        for term in terms:
            yield _term_life(scenario, owner, name, term, starts)


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
            term = replace(term, next_ms=term.end_ms + chance.randrange(10 * MINUTE_MS, 5 * HOUR_MS))
        yield term
        issued_ms = term.next_ms


def _processes(scenario: Scenario, owner: Owner, name: str, mean: float, until: int) -> Iterator[TokenSession]:
    """Walk every process of a job from start to start, until a day; whatever tokens it has meanwhile."""
    chance = scenario.chance("processes", name)
    count = max(1, round(mean * chance.lognormvariate(-0.1, 0.5)))
    later = round(count * chance.choice((0, 0, 0.5, 1)))
    scaled_ms = scenario.begin_ms(chance.randrange(scenario.days)) + 13 * HOUR_MS
    rollouts = sorted(_rollouts(scenario, owner, chance))
    until_ms = scenario.begin_ms(until)
    for number in range(count + later):
        own = scenario.chance("process", name, number)
        begin_ms = scenario.begin_ms(-_LEAD_DAYS) if number < count else scaled_ms
        while begin_ms < until_ms:
            end_ms = begin_ms + int(own.expovariate(_RESTARTS_A_DAY) * DAY_MS) + MINUTE_MS
            mine = (each + number * 40 * SECOND_MS for each in rollouts)
            end_ms = next((each for each in mine if begin_ms < each < end_ms), end_ms)
            place, software = owner.home[0].any_host(own), owner.versions.at(begin_ms)
            yield TokenSession(place, _client_id(owner, name, number), software, begin_ms, end_ms, port(own))
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


def _term_life(scenario: Scenario, owner: Owner, name: str, term: _Term, starts: list[TokenSession]) -> TokenLife:
    chance = scenario.chance("token", name, term.issued_ms)
    token = token_id(chance)
    renewer = owner.renewer(term.issued_ms)
    cancelled = None
    if chance.random() < 0.3 and term.end_ms > term.next_ms + 3 * HOUR_MS:  # noqa: PLR2004 - few are tidy
        cancelled = Granted(term.next_ms + 2 * HOUR_MS + chance.randrange(HOUR_MS // 2), owner.account)
    ends_ms = cancelled.at_ms if cancelled else term.end_ms
    sessions, retries = [], []
    for number, each in enumerate(starts):
        takes_ms, leaves_ms = (at + _moves_after(scenario, name, number, at) for at in (term.issued_ms, term.next_ms))
        begin_ms, end_ms = max(each.begin_ms, takes_ms), min(each.end_ms, leaves_ms, ends_ms)
        if begin_ms >= end_ms:
            continue
        session = replace(each, begin_ms=begin_ms, end_ms=end_ms)
        sessions.append(session)
        instants = range(end_ms + 3 * SECOND_MS, term.next_ms, _RETRY_MS)
        if end_ms == term.end_ms < term.next_ms and instants:  # it goes on trying
            retries.append(Retries(session, tuple(instants)))
    return TokenLife(
        token,
        owner.requester,
        owner.renewers(term.issued_ms),
        term.issued_ms,
        tuple(Granted(each, renewer) for each in term.renewals),
        cancelled,
        tuple(sessions),
        tuple(retries),
    )


def _moves_after(scenario: Scenario, name: str, number: int, issued_ms: int) -> int:
    """Say how long after its issue a process takes a token; a sum is enough for that, and far quicker than chance."""
    drawn = zlib.crc32(f"{scenario.seed}/{name}/{number}/{issued_ms}".encode())
    return MINUTE_MS + drawn % (2 * HOUR_MS - MINUTE_MS)
