"""The model of further workers: what follows from costs that are known."""

from __future__ import annotations

import pytest

from benchmarks.metrics import SERVER_CPU, ZOOKEEPER_CPU
from benchmarks.results import Measurement, ScenarioResults
from benchmarks.scenarios.workers import CREATE, LOGIN, SUBJECTS
from benchmarks.sizing import Costs, sizing_table


def results(*, login: float, create: float, heard: float, zookeeper: float) -> ScenarioResults:
    """What `workers` would measure, with these costs in milliseconds."""
    measured = []
    for subject in SUBJECTS:
        measured.append(Measurement(LOGIN, subject.name, 1, {SERVER_CPU: login, ZOOKEEPER_CPU: 0}))
        cost = create + heard * (subject.workers - 1)
        measured.append(Measurement(CREATE, subject.name, 1, {SERVER_CPU: cost, ZOOKEEPER_CPU: zookeeper}))
    return ScenarioResults({}, measured)


def test_the_costs_are_those_that_were_measured() -> None:
    costs = Costs.of(results(login=0.25, create=0.5, heard=0.1, zookeeper=0.2))
    assert costs.login == pytest.approx(0.25)
    assert costs.create == pytest.approx(0.5)
    assert costs.heard == pytest.approx(0.1)
    assert costs.zookeeper == pytest.approx(0.2)


def test_logins_grow_with_the_workers_and_creates_until_zookeeper_or_hearing_bounds_them() -> None:
    _, rows = sizing_table(results(login=0.25, create=0.5, heard=0.1, zookeeper=0.2))
    assert [row[1] for row in rows] == ["4,000", "8,000", "16,000", "32,000", "64,000"]
    assert [row[2] for row in rows] == ["2,000", "3,333", "5,000", "5,000", "5,000"]
    assert [row[3] for row in rows] == ["the workers' cores"] * 2 + ["ZooKeeper"] * 3
