"""How much each owner does: a scenario's events and tokens, divided among its owners and days.

Services work every day, batches somewhat less at weekends, people hardly. What is divided are the events; how many
executors, processes and runs an owner has follows from its part, so that a process always logs in a few times, and a
larger scenario has more of everything instead of more logins of the same.

The tokens of programs are planned in `jobs.py`, those of people here. A person gets a token in the morning and works in
the hub, in the office (whose addresses are leased by the day) or at home through the VPN; in some evenings the person
continues at another place with the same token and the same client. A person renews some tokens for another day and
revokes some when the work is done; most tokens simply expire, and some are never used. A kernel that stays open
overnight goes on trying to log in after its token has ended.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kafka_dt.pipeline.generator.jobs import batch_lives, standing_lives
from kafka_dt.pipeline.generator.lives import Granted, Retries, TokenLife, TokenSession, port, token_id
from kafka_dt.pipeline.generator.owners import LOGINS_SHARE, Owner, Work, population
from kafka_dt.pipeline.generator.scenario import EXPIRY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Scenario

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping

    from kafka_dt.pipeline.generator.clients import Place

_WEEKEND: Final[Mapping[Work, float]] = {
    Work.BATCH: 0.75,
    Work.STREAMING: 1.0,
    Work.SERVICE: 1.0,
    Work.NOTEBOOK: 0.08,
}
_TOKENS_A_DAY: Final[Mapping[Work, float]] = {Work.STREAMING: 0.33, Work.SERVICE: 0.35, Work.NOTEBOOK: 0.68}
"""How many tokens an owner makes whose number does not depend on the scenario's."""
_JOBS: Final = 1.75
_LOGINS_OF_AN_EXECUTOR: Final = 6
_LOGINS_OF_A_PROCESS: Final = 12
"""A day."""
_MOST_EXECUTORS: Final = 60.0
_MOST_PROCESSES: Final = 24.0
_LOOK_BACK_DAYS: Final = 3
"""A person's token may be renewed once, and retried for hours after its end."""
_AT_WORK: Final = 0.75
_ON_A_WEEKEND: Final = 0.06
_NEVER_USED: Final = 0.12
_RENEWED: Final = 0.12
_ENDED: Final = 0.15
_EVENING: Final = 0.25
_LEFT_OPEN: Final = 0.06


class Workloads:
    """What each owner does on each day."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self.owners = population(scenario)
        self._of_work = {work: sum(each.share for each in self.owners if each.work is work) for work in Work}
        self._days = {work: sum(self._weight(work, day) for day in range(scenario.days)) for work in Work}
        others = sum(_TOKENS_A_DAY.get(owner.work, 0.0) for owner in self.owners)
        self._runs = max(0.0, scenario.tokens_a_day - others)

    def events(self, owner: Owner, day: int) -> float:
        """Say how many events an owner should have on a day."""
        share = self._share(owner) * self._weight(owner.work, day) / self._days[owner.work]
        # People at work do what the absent ones leave.
        return self._scenario.events * share / (_AT_WORK if owner.work is Work.NOTEBOOK else 1.0)

    def lives(self, owner: Owner, day: int) -> Iterator[TokenLife]:
        """Plan an owner's tokens whose life touches a day."""
        scenario = self._scenario
        usual = scenario.events * self._share(owner) / scenario.days
        if owner.work in {Work.STREAMING, Work.SERVICE}:
            processes = min(_MOST_PROCESSES, usual / _JOBS / _LOGINS_OF_A_PROCESS)
            return standing_lives(scenario, owner, day, processes)
        if owner.work is Work.BATCH:
            runs = max(1.0, self._runs * owner.share / self._of_work[owner.work])
            executors = min(_MOST_EXECUTORS, usual / runs / _LOGINS_OF_AN_EXECUTOR)
            planned = batch_lives(scenario, owner, day, runs, executors)
        else:
            planned = _notebook_lives(scenario, owner, day)
        begin_ms, end_ms = scenario.begin_ms(day), scenario.begin_ms(day + 1)
        return (life for life in planned if life.issued_ms < end_ms and life.last_ms >= begin_ms)

    def _share(self, owner: Owner) -> float:
        return LOGINS_SHARE[owner.work] * owner.share / self._of_work[owner.work]

    def _weight(self, work: Work, day: int) -> float:
        return 1.0 if self._scenario.is_working_day(day) else _WEEKEND[work]


def _notebook_lives(scenario: Scenario, owner: Owner, day: int) -> Iterator[TokenLife]:
    for begun in range(day - _LOOK_BACK_DAYS, day + 1):
        chance = scenario.chance("notebook", owner.number, begun)
        if chance.random() < (_AT_WORK if scenario.is_working_day(begun) else _ON_A_WEEKEND):
            for _ in range(chance.choice((1, 1, 1, 2))):
                yield _notebook_life(scenario, owner, begun, chance)


def _notebook_life(scenario: Scenario, owner: Owner, day: int, chance: random.Random) -> TokenLife:
    issued_ms = scenario.begin_ms(day) + 7 * HOUR_MS + chance.randrange(6 * HOUR_MS)
    token = token_id(chance)
    renewers = owner.renewers(issued_ms)
    if chance.random() < _NEVER_USED:
        return TokenLife(token, owner.account, renewers, issued_ms)
    renewals: tuple[Granted, ...] = ()
    if chance.random() < _RENEWED:
        renewals = (Granted(issued_ms + 20 * HOUR_MS + chance.randrange(3 * HOUR_MS), owner.account),)
    sessions = list(_kernels(owner, issued_ms, chance))
    if renewals:
        sessions += _kernels(owner, renewals[0].at_ms, chance)
    cancelled: Granted | None = None
    retries: tuple[Retries, ...] = ()
    way = chance.random()
    if way < _ENDED:
        done_ms = max(each.end_ms for each in sessions) + chance.randrange(MINUTE_MS, 20 * MINUTE_MS)
        cancelled = Granted(done_ms, owner.account)
    elif way < _ENDED + _LEFT_OPEN:
        end_ms = (renewals[0].at_ms if renewals else issued_ms) + EXPIRY_MS
        left = sessions[-1] = replace(sessions[-1], end_ms=end_ms)
        until_ms = end_ms + chance.randrange(10 * MINUTE_MS, 3 * HOUR_MS)
        retries = (Retries(left, tuple(range(end_ms + 5 * SECOND_MS, until_ms, 5 * MINUTE_MS))),)
    return TokenLife(token, owner.account, renewers, issued_ms, renewals, cancelled, tuple(sessions), retries)


def _kernels(owner: Owner, begin_ms: int, chance: random.Random) -> Iterator[TokenSession]:
    hub, office, vpn = owner.home
    # Each owner has a usual way of working, and exceptions.
    usual = (hub, office, vpn)[owner.number % 3]
    place = (usual if chance.random() < 0.8 else chance.choice((hub, office))).any_host(chance)  # noqa: PLR2004
    at_ms = begin_ms + chance.randrange(MINUTE_MS, 30 * MINUTE_MS)
    for _ in range(chance.choice((1, 2, 2, 3, 5))):
        lasts_ms = chance.randrange(10 * MINUTE_MS, 3 * HOUR_MS)
        yield _kernel(owner, place, at_ms, at_ms + lasts_ms, chance)
        at_ms += lasts_ms // 2 + chance.randrange(HOUR_MS)
    if chance.random() < _EVENING:
        at_ms = begin_ms + 9 * HOUR_MS + chance.randrange(2 * HOUR_MS)
        place = vpn.any_host(chance)
        yield _kernel(owner, place, at_ms, at_ms + chance.randrange(HOUR_MS) + MINUTE_MS, chance)


def _kernel(owner: Owner, place: Place, begin_ms: int, end_ms: int, chance: random.Random) -> TokenSession:
    software = owner.versions.at(begin_ms)
    client_id = "rdkafka" if software.name == "confluent-kafka-python" else software.name or "aiokafka-0.12.0"
    return TokenSession(place, client_id, software, begin_ms, end_ms, port(chance))
