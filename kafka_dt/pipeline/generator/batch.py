"""Batch jobs: most at night, one token a run, executors that log in all at once.

A job (`_Job`) has its hour, its number of executors and its usual duration. A run gets a token, starts most executors
within two minutes and the others when there is more to do; some are lost and replaced, at another address. Now and
then a run is a backfill with several times the executors. Most jobs cancel their token when they are done, and an
executor that is still shutting down may try once more, seconds later; the others leave it to its age.

On YARN the resource manager renews a token when it accepts the job, and once more on long runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_dt.pipeline.generator.clients import YARN
from kafka_dt.pipeline.generator.lives import (
    Cancellation,
    Renewal,
    Retries,
    TokenLife,
    TokenSession,
    port,
    token_id,
)
from kafka_dt.pipeline.generator.scenario import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Scenario

if TYPE_CHECKING:
    import random

    from kafka_dt.pipeline.generator.clients import Place
    from kafka_dt.pipeline.generator.owners import Owner

LOOK_BACK_DAYS: Final = 4
"""A run may take 30 hours, and its token ends a day later."""
_NIGHT: Final = (0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 22, 23)
_BACKFILL: Final = 0.04
_LOST: Final = 0.04
_LATE: Final = 0.25


@dataclass(frozen=True, slots=True)
class _Job:
    name: str
    begins_ms: int
    """After midnight."""
    executors: float
    """Usually."""
    usual_ms: float
    """How long it takes."""
    weekends: bool
    cancels: bool
    """Whether it ends its token when it is done."""


def lives(scenario: Scenario, owner: Owner, day: int, runs: float, executors: float) -> Iterator[TokenLife]:
    """Plan the tokens whose life touches a day.

    Args:
        scenario: whose days.
        owner: of the jobs.
        day: which one.
        runs: how many there are on a working day, on average.
        executors: how many a run has, on average.
    """
    jobs = _jobs(scenario, owner, runs, executors)
    begin_ms, end_ms = scenario.begin_ms(day), scenario.begin_ms(day + 1)
    for begun in range(day - LOOK_BACK_DAYS, day + 1):
        for job in jobs:
            if not job.weekends and not scenario.is_working_day(begun):
                continue
            life = _run(scenario, owner, job, begun)
            if life.issued_ms < end_ms and life.last_ms >= begin_ms:
                yield life


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
    sessions = tuple(_sessions(owner, job, (issued_ms, done_ms), chance))
    cancelled: Cancellation | None = None
    retries: tuple[Retries, ...] = ()
    if job.cancels:
        # A requester may not; YARN's resource manager does it for the jobs that it has run.
        by = owner.account if owner.requester is owner.account else owner.renewer(issued_ms)
        cancelled = Cancellation(done_ms + chance.randrange(500, 8 * SECOND_MS), by)
        if chance.random() < _LATE:
            retries = tuple(_late(sessions, cancelled.at_ms, chance))
    return TokenLife(
        token, owner.requester, owner.renewers(issued_ms), issued_ms, renewals, cancelled, sessions, retries
    )


def _sessions(owner: Owner, job: _Job, span: tuple[int, int], chance: random.Random) -> Iterator[TokenSession]:
    begun_ms, done_ms = span
    lasts_ms = done_ms - begun_ms
    count = job.executors * chance.lognormvariate(0, 0.15) * (4 if chance.random() < _BACKFILL else 1)
    run_id = f"{chance.getrandbits(32):08x}"
    places = _places(owner, max(1, round(count)) * 2 + 2, chance)
    client_id = f"consumer-spark-kafka-source-{run_id}-driver-0"
    yield _process(owner, places.pop(), client_id, (begun_ms + 2 * SECOND_MS, done_ms), chance)
    for number in range(max(1, round(count))):
        at_once = number < 0.7 * count
        delay_ms = chance.randrange(4 * SECOND_MS, 120 * SECOND_MS) if at_once else int(lasts_ms * chance.random() / 3)
        first_ms = begun_ms + min(delay_ms, lasts_ms // 3)
        client_id = f"consumer-spark-kafka-source-{run_id}-executor-{number + 1}"
        lost_ms = int(first_ms + (done_ms - first_ms) * chance.random()) if chance.random() < _LOST else done_ms
        yield _process(owner, places.pop(), client_id, (first_ms, lost_ms), chance)
        if lost_ms + 30 * SECOND_MS < done_ms:
            client_id = f"consumer-spark-kafka-source-{run_id}-executor-{number + 1001}"
            yield _process(owner, places.pop(), client_id, (lost_ms + 20 * SECOND_MS, done_ms), chance)


def _process(owner: Owner, place: Place, client_id: str, span: tuple[int, int], chance: random.Random) -> TokenSession:
    begin_ms, end_ms = span
    return TokenSession(
        place, client_id, owner.versions.at(begin_ms), begin_ms, max(end_ms, begin_ms + 1), port(chance), bursty=True
    )


def _places(owner: Owner, count: int, chance: random.Random) -> list[Place]:
    """Draw addresses in turns of the subnets; hosts of a Hadoop cluster are fewer, and have several executors."""
    hosts = 60 if owner.home == YARN else 240
    return [owner.home[number % len(owner.home)].host(chance.randrange(hosts)) for number in range(count)]


def _renewals(owner: Owner, issued_ms: int, done_ms: int, chance: random.Random) -> tuple[Renewal, ...]:
    if owner.home != YARN and done_ms - issued_ms < DAY_MS // 2:
        return ()
    renewer = owner.renewer(issued_ms)
    instants = [issued_ms + chance.randrange(2 * SECOND_MS, 20 * SECOND_MS)]
    while instants[-1] + 18 * HOUR_MS < done_ms:
        instants.append(instants[-1] + 18 * HOUR_MS + chance.randrange(10 * MINUTE_MS))
    return tuple(Renewal(each, renewer) for each in instants if each < done_ms)


def _late(sessions: tuple[TokenSession, ...], ended_ms: int, chance: random.Random) -> Iterator[Retries]:
    for session in chance.sample(sessions, min(len(sessions), chance.choice((1, 1, 2, 3)))):
        first_ms = ended_ms + chance.randrange(800, 10 * SECOND_MS)
        yield Retries(session, tuple(first_ms + number * 1500 for number in range(chance.choice((1, 2, 4)))))
