from __future__ import annotations

from datetime import UTC, datetime

from kafka_dt.pipeline.demo import Verdict, judge
from kafka_dt.pipeline.generator import Incident, IncidentKind, Strength
from kafka_dt.pipeline.report.signs import Finding, Severity, SubjectType
from kafka_dt.pipeline.report.signs.foreign_renewal import FOREIGN_RENEWAL
from kafka_dt.pipeline.report.signs.rare_zone import RARE_ZONE
from kafka_dt.pipeline.report.signs.stolen_token import STOLEN_TOKEN
from kafka_dt.pipeline.report.signs.unknown_id_burst import UNKNOWN_ID_BURST
from kafka_dt.pipeline.report.signs.use_after_revocation import USE_AFTER_REVOCATION

AT = datetime(2026, 9, 7, 12, tzinfo=UTC)


def _incident(kind: IncidentKind, token_id: str) -> Incident:
    return Incident(kind=kind, strength=Strength.PLAIN, begin=AT, end=AT, events=1, token_id=token_id)


def _finding(kind: str, subject: str) -> Finding:
    return Finding(kind, Severity.HIGH, SubjectType.TOKEN, subject, subject, None, None, AT, AT, 1, ())


def test_incidents_and_findings_are_compared_kind_by_kind() -> None:
    stolen, renewed = IncidentKind.STOLEN_TOKEN, IncidentKind.FOREIGN_RENEWAL
    verdicts = judge(
        [_incident(stolen, "a"), _incident(stolen, "b"), _incident(renewed, "c")],
        [_finding(stolen, "a"), _finding(stolen, "c"), _finding(stolen, "d"), _finding(stolen, "a")],
        (STOLEN_TOKEN, USE_AFTER_REVOCATION, UNKNOWN_ID_BURST, FOREIGN_RENEWAL),
    )
    assert verdicts == (
        Verdict(stolen, planted=2, found=1, others=1),
        Verdict(IncidentKind.USE_AFTER_REVOCATION, planted=0, found=0, others=0),
        Verdict(IncidentKind.UNKNOWN_ID_BURST, planted=0, found=0, others=0),
        Verdict(renewed, planted=1, found=0, others=0),
    )


def test_an_incident_is_found_by_any_sign_that_tells_of_its_use() -> None:
    verdicts = judge(
        [_incident(IncidentKind.STOLEN_TOKEN, "a")],
        [_finding(RARE_ZONE.kind, "a")],
        (STOLEN_TOKEN, RARE_ZONE, FOREIGN_RENEWAL),
    )
    assert [(each.kind, each.found) for each in verdicts] == [
        (STOLEN_TOKEN.kind, 1),
        (RARE_ZONE.kind, 0),
        (FOREIGN_RENEWAL.kind, 0),
    ]
