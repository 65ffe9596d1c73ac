"""How many logins and creates nodes of 1 to 16 workers make, modelled from the costs that `workers` measured.

A login costs one worker the same processor time, however many workers there are. A create costs the worker that makes
it, and each of the others, which read it: `own + others * heard`. With a core for each worker, and clients and
ZooKeeper elsewhere, the rates follow. A create costs ZooKeeper processor time too, and the leader does most of its work
on one thread; the rate at which that thread is busy all the time bounds the creates of all nodes.

Limits: the model knows neither the network nor an ensemble, and takes a core to be as fast as those of the measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from benchmarks.metrics import SERVER_CPU, ZOOKEEPER_CPU, digits
from benchmarks.results import Case, ScenarioResults
from benchmarks.scenarios.workers import CREATE, LOGIN, SUBJECTS
from benchmarks.statistics import Spread, fitted

WORKERS: Final = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Costs:
    """Processor time in milliseconds."""

    login: float
    create: float
    """Of the worker that makes it."""
    heard: float
    """Of each other worker."""
    zookeeper: float
    """Of a create."""

    @classmethod
    def of(cls, measured: ScenarioResults) -> Self:
        """Take the costs from the results of `workers`."""
        create, heard = fitted(_by_workers(measured, CREATE, SERVER_CPU))
        logins = _by_workers(measured, LOGIN, SERVER_CPU)
        zookeeper = _by_workers(measured, CREATE, ZOOKEEPER_CPU)
        return cls(_mean(logins), create, max(heard, 0.0), _mean(zookeeper))

    def logins(self, workers: int) -> float:
        """Tell how many logins a second so many workers make."""
        return 1000 * workers / self.login

    def creates(self, workers: int) -> float:
        """Tell how many creates a second so many workers of all nodes make, whatever ZooKeeper takes."""
        return 1000 * workers / (self.create + (workers - 1) * self.heard)

    @property
    def zookeepers_creates(self) -> float:
        """How many creates a second one core of ZooKeeper takes."""
        return 1000 / self.zookeeper


def sizing_table(measured: ScenarioResults) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Give the headings and rows of the model: a row for each number of workers."""
    costs = Costs.of(measured)
    bound = costs.zookeepers_creates
    rows: list[Sequence[str]] = []
    for workers in WORKERS:
        creates = costs.creates(workers)
        first = "the workers' cores" if creates < bound else "ZooKeeper"
        rows.append((str(workers), digits(costs.logins(workers)), digits(min(creates, bound)), first))
    return ("workers, a core each", "logins a second", "creates a second", "what creates use up first"), rows


def _by_workers(measured: ScenarioResults, case: Case, metric: str) -> list[tuple[float, float]]:
    """Give (workers other than the first, median value)."""
    found = ((subject.workers - 1.0, measured.by_round(case, subject.name, metric)) for subject in SUBJECTS)
    return [(others, Spread.of(list(values.values())).median) for others, values in found if values]


def _mean(points: Sequence[tuple[float, float]]) -> float:
    return sum(value for _, value in points) / len(points)
