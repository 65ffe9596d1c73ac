"""Measure which planted incidents the report finds: precision and recall on generated months.

The generator (`kafka_dt/pipeline/generator`) knows nothing of the detectors: they share the names of the kinds only.
Its noise is theirs to live with: pods that start again elsewhere in their subnet, jobs that scale, clients that are
upgraded, ids that are mistyped, renewers that are new with a token, retries after an expiry.

The table is printed with `pytest -s`, and is part of every failure.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from kafka_dt.pipeline.engines import SparkEngine
from kafka_dt.pipeline.generator import IncidentKind, Scenario, Truth, generate
from kafka_dt.pipeline.report.signs import SIGNS, look_for
from kafka_dt.pipeline.report.signs.finding import collected
from kafka_dt.pipeline.report.store import Store
from kafka_dt.pipeline.table import Table
from tests.integration.pipeline.audit_story import write_table
from tests.support.spark.observed import observed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka_dt.pipeline.report.signs import Finding

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Py4J leaves its sockets to the garbage collector."""
START = datetime(2026, 10, 1, tzinfo=UTC)
SCENARIO = Scenario(start=START, days=14, owners=24, tokens_a_day=50, events=25_000, incidents=6, seed=20)
"""A seed that no detector was looked at with."""
PRECISION, RECALL = 0.9, 0.75
"""Of each kind. A sign that cries wolf is not looked at twice; a theft in the usual place is not seen."""


@dataclass(frozen=True, slots=True)
class Score:
    """How well incidents of a kind were found."""

    planted: int
    found: int
    others: int
    """Findings about something else."""

    @property
    def precision(self) -> float:
        return self.found / (self.found + self.others) if self.found + self.others else 1.0

    @property
    def recall(self) -> float:
        return self.found / self.planted if self.planted else 1.0


def scores(truth: Truth, findings: tuple[Finding, ...]) -> dict[IncidentKind, Score]:
    """Compare findings with what was planted: the same kind, the same subject, and a time in common."""
    by_kind = {}
    for kind in IncidentKind:
        planted = truth.of(kind)
        of_kind = [finding for finding in findings if finding.kind == kind]
        about = {
            id(finding)
            for finding in of_kind
            for incident in planted
            if finding.subject == incident.subject
            and finding.first_seen <= incident.end
            and incident.begin <= finding.last_seen
        }
        found = {
            incident.subject
            for incident in planted
            if any(finding.subject == incident.subject and id(finding) in about for finding in of_kind)
        }
        by_kind[kind] = Score(len(planted), len(found), len(of_kind) - len(about))
    return by_kind


def as_table(by_kind: dict[IncidentKind, Score]) -> str:
    lines = [f"{'':22}{'planted':>8}{'found':>8}{'others':>8}{'precision':>11}{'recall':>8}"]
    lines += [
        f"{kind.value:22}{score.planted:8}{score.found:8}{score.others:8}{score.precision:11.2f}{score.recall:8.2f}"
        for kind, score in by_kind.items()
    ]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def scored(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[IncidentKind, Score]:
    folder = tmp_path_factory.mktemp("incidents")
    generated = generate(SCENARIO, folder / "events")
    write_table(spark, str(folder / "events" / "*.jsonl"), folder / "table")
    events = Table(str(folder / "table")).events(spark)
    assert events.count() == generated.written.events
    work = Store(SparkEngine(spark), str(folder / "work")).work
    return scores(generated.truth, collected(look_for(SIGNS, observed(events, work))))


@pytest.mark.soak
@pytest.mark.parametrize("kind", IncidentKind)
def test_planted_incidents_are_found_and_noise_is_not(scored: dict[IncidentKind, Score], kind: IncidentKind) -> None:
    print(as_table(scored))  # noqa: T201 - for pytest -s
    assert scored[kind].planted >= 4
    assert scored[kind].precision >= PRECISION, as_table(scored)
    assert scored[kind].recall >= RECALL, as_table(scored)
