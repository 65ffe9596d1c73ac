"""Whether a node is fit to serve, by what its workers and its supervisor say.

    health = Health(memory, time.monotonic)
    health.report()          # Report(state=State.STALE, reasons=("worker 1: ...",))

A node is ready when a worker listens, every worker that listens knows all revocations as of a moment within the
staleness limit, and every upstream that it needs can be reached. A worker that hangs does not sample its gauges, so its
staleness is counted on here.

Source: docs/how-to/monitor.md#health; Kubernetes, "Liveness, Readiness, and Startup Probes".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from kafka_dt.metrics import Gauges, MetricsMemory, WorkerPhase
from kafka_dt.metrics.gauges import SAMPLE_SECONDS

LATE_S: Final = 2 * SAMPLE_SECONDS
"""At which age gauges tell that their worker hangs, or is very busy."""


class State(StrEnum):
    """What a node is doing; the later one of several counts."""

    STARTING = "starting"
    """No worker serves yet."""
    READY = "ready"
    UNREACHABLE = "unreachable"
    """The cluster behind a gateway cannot be reached or refuses its login, or audit events cannot be written."""
    STALE = "stale"
    """A worker cannot know which tokens were revoked, and refuses logins by token."""
    DRAINING = "draining"
    """The node is about to stop: clients should go to another one."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a node is doing, and why that is not what it should."""

    state: State
    reasons: tuple[str, ...] = ()

    @property
    def is_ready(self) -> bool:
        """Whether clients should come."""
        return self.state is State.READY


class Health:
    """The health of a node.

    Args:
        memory: what its processes say.
        monotonic: the monotonic clock of the machine, in seconds.
    """

    def __init__(self, memory: MetricsMemory, monotonic: Callable[[], float]) -> None:
        self._memory = memory
        self._monotonic = monotonic

    def living(self) -> Iterator[tuple[int, Gauges]]:
        """Give the gauges of the workers that serve, as they are now."""
        for number in range(self._memory.workers):
            gauges = self._memory.gauges(number)
            if gauges is not None and self._memory.phase(number) is WorkerPhase.READY:
                yield number, _now(gauges, self._monotonic())

    def report(self) -> Report:
        """Say what the node is doing."""
        if self._memory.draining:
            return Report(State.DRAINING, ("the node was told to stop",))
        living = dict(self.living())
        if not living:
            return Report(State.STARTING, ("no worker serves yet",))
        if stale := [f"worker {number}: {reason}" for number, each in living.items() for reason in _staleness(each)]:
            return Report(State.STALE, tuple(stale))
        unready = [f"worker {number}: {reason}" for number, each in living.items() for reason in each.unready]
        return Report(State.UNREACHABLE if unready else State.READY, tuple(unready))


def _now(gauges: Gauges, now_s: float) -> Gauges:
    """Add to gauges the time that has passed since they were sampled, where they tell one that goes on."""
    age_s = max(0.0, now_s - gauges.sampled_s)
    staleness_s = None if gauges.staleness_s is None else gauges.staleness_s + age_s
    lag_s = gauges.loop_lag_s if age_s < LATE_S else max(gauges.loop_lag_s, age_s - SAMPLE_SECONDS)
    return replace(gauges, staleness_s=staleness_s, loop_lag_s=lag_s)


def _staleness(gauges: Gauges) -> Iterator[str]:
    staleness_s, limit_s = gauges.staleness_s, gauges.staleness_limit_s
    if staleness_s is None or limit_s is None or staleness_s <= limit_s:
        return
    if math.isinf(staleness_s):
        yield "it is not known which tokens were revoked"
    else:
        yield f"changes of tokens have not been heard of for {staleness_s:.0f} s, the limit is {limit_s:g} s"
