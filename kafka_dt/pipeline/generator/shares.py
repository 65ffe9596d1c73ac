"""How much each owner does: a scenario's numbers of events and tokens, divided among its owners and days.

Services work every day, batches somewhat less at weekends, people hardly. What is divided are the events; how many
executors, processes and runs an owner has follows from its part, so that a process always logs in a few times, and a
larger scenario has more of everything instead of more logins of the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_dt.pipeline.generator import batch, notebooks, standing
from kafka_dt.pipeline.generator.owners import LOGINS_SHARE, Owner, Work, population

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kafka_dt.pipeline.generator.lives import TokenLife
    from kafka_dt.pipeline.generator.scenario import Scenario

_WEEKEND: Final[Mapping[Work, float]] = {
    Work.BATCH: 0.75,
    Work.STREAMING: 1.0,
    Work.SERVICE: 1.0,
    Work.NOTEBOOK: 0.08,
}
_TOKENS_A_DAY: Final[Mapping[Work, float]] = {Work.STREAMING: 0.33, Work.SERVICE: 0.35, Work.NOTEBOOK: 0.68}
"""How many tokens an owner makes whose number does not depend on the scenario's."""
_AT_WORK: Final = 0.75
_JOBS: Final = 1.75
_LOGINS_OF_AN_EXECUTOR: Final = 6
_LOGINS_OF_A_PROCESS: Final = 12
"""A day."""
_MOST_EXECUTORS: Final = 60.0
_MOST_PROCESSES: Final = 24.0


class Shares:
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
        usual = self._scenario.events * self._share(owner) / self._scenario.days
        if owner.work is Work.BATCH:
            runs = max(1.0, self._runs * owner.share / self._of_work[owner.work])
            executors = min(_MOST_EXECUTORS, usual / runs / _LOGINS_OF_AN_EXECUTOR)
            return batch.lives(self._scenario, owner, day, runs, executors)
        if owner.work is Work.NOTEBOOK:
            return notebooks.lives(self._scenario, owner, day)
        processes = min(_MOST_PROCESSES, usual / _JOBS / _LOGINS_OF_A_PROCESS)
        return standing.lives(self._scenario, owner, day, processes)

    def _share(self, owner: Owner) -> float:
        return LOGINS_SHARE[owner.work] * owner.share / self._of_work[owner.work]

    def _weight(self, work: Work, day: int) -> float:
        return 1.0 if self._scenario.is_working_day(day) else _WEEKEND[work]
