"""What follows a batch: findings become cases, tokens are ended, and people and programs are told.

    keeper = Keeper(path=state_file, table=table, deliver=..., responder=..., told=print_case, now=now)
    keeper.take(rows, habits, series, number)       # by the stream, for each batch
    keeper.tend()                                   # now and then: what failed, and what is over

The order is: end tokens, tell, write the state. If the process ends in between, Spark gives the batch again, and the
same follows once more: a token that has ended stays so, and the ids of alerts tell a second copy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from kafka_dt.files import replace_file
from kafka_dt.pipeline.cases import finding_id, form_cases, metrics_text
from kafka_dt.pipeline.report.cases import sightings
from kafka_dt.pipeline.report.expressions import EPOCH
from kafka_dt.pipeline.report.signs import SIGNS
from kafka_dt.pipeline.report.suppressions import suppress
from kafka_dt.pipeline.watch.rules import judge
from kafka_dt.pipeline.watch.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from kafka_dt.pipeline.cases import Case
    from kafka_dt.pipeline.report.signs.finding import Finding
    from kafka_dt.pipeline.report.suppressions import Suppression
    from kafka_dt.pipeline.watch.habits import Habits
    from kafka_dt.pipeline.watch.responding import Responder
    from kafka_dt.pipeline.watch.seen import Seen

    Deliver = Callable[[Sequence[Case]], bool]
    """Sends alerts of cases that are new; False if some were not taken."""

AGAIN: Final = timedelta(seconds=10)
"""When alerts that were not taken are sent again."""


@dataclass(slots=True, kw_only=True)
class Keeper:
    """Keeps the state, and acts on it."""

    path: Path
    """The file of the state."""
    table: str
    """The path of the events, for the commands that are suggested."""
    now: Callable[[], datetime]
    """The clock, in UTC."""
    deliver: Deliver = lambda _cases: True
    responder: Responder | None = None
    told: Callable[[Case], None] = lambda _case: None
    """Is called with each case that has a new finding; a theft that goes on is none."""
    suppressions: Sequence[Suppression] = ()
    metrics: Path | None = None
    """A file for Prometheus."""
    state: State = field(default_factory=State)
    open_cases: int = 0
    """How many cases are open. All else is for one thread at a time."""
    _untold: bool = False
    _tended: datetime = EPOCH
    _crowds: Mapping[str, int] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)
    """The ids of the findings that `told` was called with."""

    def load(self) -> None:
        """Read the state.

        Raises:
            TableBroken: the file is something else.
        """
        self.state = State.of(self.path)
        self._untold = True  # the last run may have ended before it told
        shown = self._shown(self.state.findings.values())
        self._known = set(map(finding_id, shown))
        if self.responder is not None:
            self.responder.resume(shown)

    def take(self, rows: Iterable[Seen], habits: Habits, series: str, number: int) -> None:
        """Judge a batch and act on it, unless the state has it already."""
        state = self.state
        if state.series == series and number <= state.batch:
            return
        found = judge(rows, habits, state, lambda finding: bool(self._shown([finding])))
        shown = self._shown(found)
        self._crowds = habits.crowds
        if shown and self.responder is not None:
            self.responder.respond(shown)
        state.series, state.batch = series, number
        self._forget(self.now())
        cases = self._counted()
        new = set(map(finding_id, shown)) - self._known
        for case in cases:
            if not new.isdisjoint(sighting.id for sighting in case.sightings):
                self.told(case)
        self._known |= new
        if shown:
            self._tell(cases)
        state.save(self.path)

    def tend(self) -> None:
        """Do again what failed, ends of tokens and alerts; and forget what is over, also if no events come."""
        now = self.now()
        if now - self._tended < AGAIN:
            return
        self._tended = now
        if self.responder is not None:
            self.responder.again()
        self._forget(now)
        cases = self._counted()
        if self._untold:
            self._tell(cases)

    def cases(self) -> tuple[Case, ...]:
        """Form the open cases, the most urgent first."""
        shown = self._shown(self.state.findings.values())
        return form_cases(sightings(shown, SIGNS, self.table), self._crowds)

    def _forget(self, now: datetime) -> None:
        """Forget what is over, and that it was told."""
        self.state.forget(now)
        self._known.intersection_update(self.state.findings)

    def _counted(self) -> tuple[Case, ...]:
        """Form the open cases, and tell how many there are."""
        cases = self.cases()
        self.open_cases = len(cases)
        if self.metrics is not None:
            outcomes = self.responder.outcomes if self.responder is not None else {}
            replace_file(self.metrics, metrics_text(cases, self.now(), outcomes), new_mode=0o644)  # it has no names
        return cases

    def _shown(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        return suppress(findings, self.suppressions, self.now())[0]

    def _tell(self, cases: Sequence[Case]) -> None:
        self._untold = not self.deliver(cases)
