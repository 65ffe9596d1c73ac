"""What follows a batch: findings become cases, tokens are ended, and people and programs are told.

    keeper = Keeper(path=state_file, table=table, deliver=..., responder=..., told=print_case, now=now)
    keeper.take(rows, habits, series, number)       # by the stream, for each batch
    keeper.tend()                                   # now and then: what failed, and what is over
    keeper.end()                                    # at the end

The order is: end tokens, print, write the state. If the process ends in between, Spark gives the batch again, and the
same follows once more: a token that has ended stays so. Alerts are sent meanwhile, by `telling.py`. A finding whose
alert was not taken is kept for longer, and first of all where there are too many of a sign. The next run sends alerts
of all findings in the state: the memory of alerts knows which ones were taken, and their ids tell a second copy.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Final

from kafka_dt.files import replace_file
from kafka_dt.pipeline.cases import finding_id, form_cases, metrics_text
from kafka_dt.pipeline.report.cases import sightings
from kafka_dt.pipeline.report.signs import SIGNS
from kafka_dt.pipeline.report.suppressions import suppress
from kafka_dt.pipeline.watch.rules import judge
from kafka_dt.pipeline.watch.state import State
from kafka_dt.pipeline.watch.telling import Teller

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
    from kafka_dt.pipeline.watch.telling import Deliver

AGAIN_S: Final = 10.0
"""After how many seconds alerts that were not taken are sent again."""
PATIENCE_S: Final = 20.0
"""How many seconds `end` waits for alerts."""


@dataclass(slots=True, kw_only=True)
class Keeper:
    """Keeps the state, and acts on it."""

    path: Path
    """The file of the state."""
    table: str
    """The path of the events, for the commands that are suggested."""
    now: Callable[[], datetime]
    """The clock, in UTC."""
    deliver: Deliver = lambda _cases: ()
    """Is called in a thread of its own."""
    responder: Responder | None = None
    told: Callable[[Case], None] = lambda _case: None
    """Is called with each case that has a new finding; a theft that goes on is none."""
    suppressions: Sequence[Suppression] = ()
    metrics: Path | None = None
    """A file for Prometheus."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds of a clock that never goes back."""
    state: State = field(default_factory=State)
    open_cases: int = 0
    """How many cases are open. All else is for one thread at a time."""
    _teller: Teller = field(init=False)
    _untold: set[str] = field(default_factory=set)
    """The ids of the findings of which alerts have still to be sent."""
    _under_way: set[str] = field(default_factory=set)
    """Those of the findings of which alerts are being sent."""
    _is_due: bool = False
    """Whether there is more to tell as soon as the alerts under way are done."""
    _tended_s: float = -inf
    _crowds: Mapping[str, int] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)
    """The ids of the findings that `told` was called with."""

    def __post_init__(self) -> None:
        """Make what sends alerts."""
        self._teller = Teller(self.deliver)

    def load(self) -> None:
        """Read the state.

        Raises:
            TableBroken: the file is something else.
        """
        self.state = State.of(self.path)
        shown = self._shown(self.state.findings.values())
        self._known = set(map(finding_id, shown))
        self._untold = set(self._known)  # the last run may have ended before it told
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
        self._untold.update(map(finding_id, shown))
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
        if self._is_due and not self._teller.is_busy:
            self._tell(self.cases())
        if self.monotonic() - self._tended_s < AGAIN_S:
            return
        self._forget(self.now())
        self._tell(self._counted())
        if self.responder is not None:
            self.responder.again()
        self._tended_s = self.monotonic()  # the node may have taken its time

    def end(self) -> None:
        """Wait for alerts, for `PATIENCE_S` at most; the next run sends what was not taken."""
        until_s = self.monotonic() + PATIENCE_S
        self._teller.wait(PATIENCE_S)
        self._tell(self.cases())
        self._teller.wait(until_s - self.monotonic())
        if not self._teller.is_busy:
            self._collect()

    @property
    def is_behind(self) -> bool:
        """Whether an alert was not taken yet, or a token could not be ended."""
        failing = 0 if self.responder is None else self.responder.failing
        return bool(self._untold or self._under_way or failing)

    def cases(self) -> tuple[Case, ...]:
        """Form the open cases, the most urgent first, and keep their ids."""
        shown = self._shown(self.state.findings.values())
        cases = form_cases(sightings(shown, SIGNS, self.table), self._crowds, named=self.state.cases)
        self.state.cases = {each.id: case.id for case in cases for each in case.sightings}
        return cases

    def _forget(self, now: datetime) -> None:
        """Forget what is over and told, and that it was told."""
        self.state.forget(now, self._untold | self._under_way)
        self._untold.intersection_update(self.state.findings)
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
        """Begin to send alerts of what is untold, or let `tend` do so when those under way are done."""
        self._is_due = self._teller.is_busy
        if not self._is_due:
            self._collect()
            if self._untold:
                self._under_way, self._untold = self._untold, set()
                self._teller.tell(cases)

    def _collect(self) -> None:
        """See what came of the alerts that were sent last."""
        self._untold |= self._under_way.intersection(self._teller.not_taken())
        self._under_way = set()
