"""Delivers alerts of cases: to each destination what it was not told yet.

A message that was not taken is sent again after 1, 2, 4 and 8 seconds, or after the time that the destination asks for.
What was taken is remembered at once. If the process ends between the two, the next report sends the message again: each
alert comes at least once, and its id tells a second copy. If a destination takes nothing, the others are tried all the
same, and the next report goes on with it.
"""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Failure:
    """A destination that did not take all alerts."""

    name: str
    reason: str
    left: int
    """How many alerts it was not told."""


class Delivery:
    """Delivers alerts.

    Args:
        memory: knows what was told.
        now: the time, in UTC.
        sleep: waits for seconds.
        pauses_s: how long it waits before each further try of a message.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        now: datetime,
        sleep: Callable[[float], None],
        pauses_s: Sequence[float] = PAUSES_S,
    ) -> None:
        self._memory = memory
        self._now = now
        self._sleep = sleep
        self._pauses_s = pauses_s
        self.sent = 0
        """How many alerts were delivered."""

    def deliver(self, cases: Sequence[Case], destinations: Iterable[Destination], level: str) -> list[Failure]:
        """Tell destinations of cases of a severity, or of a graver one; returns what failed."""
        self._memory.keep((each.id for case in cases for each in case.sightings), self._now)
        grave = [case for case in cases if reaches(case.severity, level)]
        failures = (self._deliver(each, self._alerts(grave, each.key)) for each in destinations)
        return [failure for failure in failures if failure is not None]

    def _alerts(self, cases: Iterable[Case], key: str) -> list[Alert]:
        new = ((case, tuple(one for one in case.sightings if not self._memory.knows(key, one.id))) for case in cases)
        return [Alert(case, unknown) for case, unknown in new if unknown]

    def _deliver(self, destination: Destination, alerts: Sequence[Alert]) -> Failure | None:
        if not alerts:
            return None
        left = len(alerts)
        for message in [alerts] if destination.digest else [[alert] for alert in alerts]:
            try:
                self._send(destination, message)
            except NotDelivered as error:
                return Failure(destination.name, error.reason, left)
            self._memory.add(destination.key, (one.id for alert in message for one in alert.new), self._now)
            left -= len(message)
            self.sent += len(message)
        return None

    def _send(self, destination: Destination, message: Sequence[Alert]) -> None:
        for pause_s in self._pauses_s:
            try:
                return destination.send(message)
            except NotDelivered as error:
                if not error.again:
                    raise
                self._sleep(min(max(pause_s, error.after_s), LONGEST_PAUSE_S))
        return destination.send(message)
