"""A few days of a small cluster, made once for all tests of this folder."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from kafka_dt.audit import AuditEvent
from kafka_dt.pipeline.generator import parts
from kafka_dt.pipeline.generator.incidents import Planted, plant
from kafka_dt.pipeline.generator.scenario import Scenario
from kafka_dt.pipeline.generator.workloads import Workloads

SMALL = Scenario(
    start=datetime(2026, 9, 7, tzinfo=UTC), days=8, owners=16, tokens_a_day=25, events=12_000, seed=7, incidents=3
)
"""From a Monday on."""


@dataclass(frozen=True, slots=True)
class Played:
    """A scenario with everything that is made of it."""

    scenario: Scenario
    planted: list[Planted]
    by_worker: list[list[AuditEvent]]
    """What one worker of one node has written on one day, in its order."""

    @property
    def events(self) -> list[AuditEvent]:
        """All events in the order of time."""
        return sorted((event for each in self.by_worker for event in each), key=lambda event: event.time)


def play(scenario: Scenario) -> Played:
    planted = plant(scenario, Workloads(scenario))
    made = [list(events) for part in parts(scenario, planted) for _, events in part.events()]
    return Played(scenario, planted, made)


@pytest.fixture(scope="package")
def played() -> Played:
    return play(SMALL)
