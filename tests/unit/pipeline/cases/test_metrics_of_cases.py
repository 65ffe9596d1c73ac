"""Open cases as Prometheus reads them."""

from __future__ import annotations

from datetime import UTC, datetime

from prometheus_client.parser import text_string_to_metric_families

from kafka_dt.pipeline.cases import form_cases, metrics_text
from tests.support.findings import sighting

NOW = datetime(2026, 4, 1, tzinfo=UTC)


def samples(text: str) -> dict[tuple[str, ...], float]:
    families = text_string_to_metric_families(text)
    return {(each.name, *each.labels.values()): each.value for family in families for each in family.samples}


def test_without_a_case_there_are_zeros() -> None:
    found = samples(metrics_text([], NOW))
    assert found == {
        ("kafka_dt_cases", "high"): 0,
        ("kafka_dt_cases", "medium"): 0,
        ("kafka_dt_cases", "low"): 0,
        ("kafka_dt_cases_newest_seconds",): 0,
        ("kafka_dt_cases_made_seconds",): NOW.timestamp(),
    }


def test_cases_findings_and_responses_are_counted() -> None:
    cases = form_cases([sighting("t1", address="10.0.0.1"), sighting("t2", address="10.0.0.2", day=1)])
    (case,) = cases
    found = samples(metrics_text(cases, NOW, {"revoked": 2}))
    kind, severity = case.sightings[0].finding.kind, case.sightings[0].finding.severity
    assert found["kafka_dt_cases", case.severity] == 1
    assert found["kafka_dt_case_findings", kind, severity] == 2
    assert found["kafka_dt_cases_newest_seconds",] == case.last_seen.timestamp()
    assert found["kafka_dt_responses_total", "revoked"] == 2
