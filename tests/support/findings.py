"""Findings and their sightings for tests of cases, alerts and formats: one about each token that a test names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from kafka_dt.pipeline.cases import Sighting
from kafka_dt.pipeline.report.signs import Evidence, Finding, Severity, SubjectType

MONDAY: Final = datetime(2026, 3, 2, tzinfo=UTC)


def sighting(
    token: str | None = "W23eVbJOQheJ-v0f6A8uRg",
    owner: str | None = "User:alice",
    address: str | None = "203.0.113.9",
    *,
    kind: str = "stolen_token",
    severity: Severity = Severity.MEDIUM,
    day: float = 0,
    lasts: timedelta = timedelta(hours=1),
    evidence: str = "203.0.113.0/24",
) -> Sighting:
    """Make a sighting; without a token it is about the address, and there is no token to end."""
    finding = Finding(
        kind=kind,
        severity=severity,
        subject_type=SubjectType.TOKEN if token else SubjectType.ADDRESS,
        subject=token or address or "",
        token_id=token,
        owner=owner,
        address=address,
        first_seen=MONDAY + timedelta(days=day),
        last_seen=MONDAY + timedelta(days=day) + lasts,
        events=3,
        evidence=(Evidence("in networks", evidence),),
    )
    title = kind.replace("_", " ").capitalize()
    responses = ({"why": "Ask the owner."}, {"why": "See more:", "command": "kafka-dt pipeline report"})
    return Sighting(finding, title, f"{title} means something.", responses, ends_token=token is not None)
