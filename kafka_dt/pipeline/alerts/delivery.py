"""Delivers alerts of cases: to each destination what it was not told yet.

A message that was not taken is sent again after 1, 2, 4 and 8 seconds, or after the time that the destination asks for.
What was taken is remembered at once. If the process ends between the two, the next report sends the message again: each
alert comes at least once, and its id tells a second copy.

A destination that does not answer, or is busy, is left alone: the others are told all the same, and the next delivery
goes on with it. An alert that a destination refuses keeps none of the others from it. Neither is remembered as told,
since a destination may be repaired. A watch, which delivers every few seconds, has a `History`: a refused alert is sent
again after an hour, and a destination that asks for some time gets it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from kafka_dt.pipeline.alerts.alert import Alert
from kafka_dt.pipeline.alerts.destination import NotDelivered
from kafka_dt.pipeline.cases import reaches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from kafka_dt.pipeline.alerts.destination import Destination
    from kafka_dt.pipeline.alerts.memory import Memory
    from kafka_dt.pipeline.cases import Case

PAUSES_S: Final = (1.0, 2.0, 4.0, 8.0)
"""How long it waits before each further try."""
LONGEST_PAUSE_S: Final = 60.0
"""How long a destination can make it wait."""
LONGEST_REST_S: Final = 3600.0
"""How long a destination can keep later deliveries away, and when a refused alert is sent to it again."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A destination that did not take all alerts."""

    name: str
    reason: str
    left: int
    """How many alerts it was not told."""
    tried: bool = True
    """Whether one of them was sent now; otherwise all of them wait for a later time."""
    findings: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """The ids of the findings that they tell of."""


@dataclass(frozen=True, slots=True)
class _Rest:
    reason: str
    until: datetime


@dataclass(slots=True)
class History:
    """What destinations have answered to earlier deliveries of this process."""

    busy: dict[str, _Rest] = field(default_factory=dict)
    """By the key of a destination."""
    refused: dict[tuple[str, str], _Rest] = field(default_factory=dict)
    """By the key of a destination and the id of an alert."""

    def forget(self, now: datetime) -> None:
        """Forget what is over."""
        self.busy = {key: rest for key, rest in self.busy.items() if now < rest.until}
        self.refused = {key: rest for key, rest in self.refused.items() if now < rest.until}

    def reason(self, key: str, alerts: Iterable[Alert]) -> str:
        """Give one of the reasons why a destination was not told of alerts."""
        rests = (self.busy.get(key), *(self.refused.get((key, alert.id)) for alert in alerts))
        return next(rest.reason for rest in rests if rest is not None)


class Delivery:
    """Delivers alerts.

    Args:
        memory: knows what was told.
        now: the time, in UTC.
        sleep: waits for seconds.
        pauses_s: how long it waits before each further try of a message.
        history: what the last delivery of this process was given; None = there was none.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        now: datetime,
        sleep: Callable[[float], None],
        pauses_s: Sequence[float] = PAUSES_S,
        history: History | None = None,
    ) -> None:
        self._memory = memory
        self._now = now
        self._sleep = sleep
        self._pauses_s = pauses_s
        self._history = history or History()
        self.sent = 0
        """How many alerts were delivered."""

    def deliver(self, cases: Sequence[Case], destinations: Iterable[Destination], level: str) -> list[Failure]:
        """Tell destinations of cases of a severity, or of a graver one; returns what failed."""
        self._history.forget(self._now)
        self._memory.keep((each.id for case in cases for each in case.sightings), self._now)
        grave = [case for case in cases if reaches(case.severity, level)]
        failures = (self._deliver(each, self._alerts(grave, each.key)) for each in destinations)
        return [failure for failure in failures if failure is not None]

    def _alerts(self, cases: Iterable[Case], key: str) -> list[Alert]:
        new = ((case, tuple(one for one in case.sightings if not self._memory.knows(key, one.id))) for case in cases)
        return [Alert(case, unknown) for case, unknown in new if unknown]

    def _deliver(self, destination: Destination, alerts: Sequence[Alert]) -> Failure | None:
        key, history = destination.key, self._history
        left, reason = {alert.id: alert for alert in alerts}, None
        due = [alert for alert in alerts if (key, alert.id) not in history.refused]
        for message in [due] if destination.digest and due else [[alert] for alert in due]:
            if key in history.busy:
                break
            try:
                self._send(destination, message)
            except NotDelivered as error:
                self._note(key, message, error)
                reason = error.reason
                if error.again:
                    break
                continue
            self._memory.add(key, (one.id for alert in message for one in alert.new), self._now)
            for alert in message:
                del left[alert.id]
            self.sent += len(message)
        if not left:
            return None
        untold = frozenset(one.id for alert in left.values() for one in alert.new)
        why, tried = reason or history.reason(key, alerts), reason is not None
        return Failure(destination.name, why, len(left), tried=tried, findings=untold)

    def _note(self, key: str, message: Sequence[Alert], error: NotDelivered) -> None:
        """Note when to try again, if not with the next delivery."""
        rest_s = min(error.after_s, LONGEST_REST_S) if error.again else LONGEST_REST_S
        rest = _Rest(error.reason, self._now + timedelta(seconds=rest_s))
        if not error.again:
            self._history.refused.update({(key, alert.id): rest for alert in message})
        elif rest_s:
            self._history.busy[key] = rest

    def _send(self, destination: Destination, message: Sequence[Alert]) -> None:
        for pause_s in self._pauses_s:
            try:
                return destination.send(message)
            except NotDelivered as error:
                if not error.again:
                    raise
                self._sleep(min(max(pause_s, error.after_s), LONGEST_PAUSE_S))
        return destination.send(message)
