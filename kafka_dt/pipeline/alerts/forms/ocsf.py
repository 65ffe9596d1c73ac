"""OCSF 1.5: each finding is a Detection Finding (class 2004), its token a resource, its owner and address evidence.

`metadata.uid` and `finding_info.uid` are the finding's id, `metadata.correlation_uid` is the case's. `risk_score` is
the score of the case.

Source: https://schema.ocsf.io/1.5.0/classes/detection_finding
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka_dt.pipeline.alerts.forms.message import PRODUCT, Message, for_each_finding, milliseconds, product_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_dt.pipeline.alerts.alert import Alert
    from kafka_dt.pipeline.cases import Sighting

_VERSION: Final = "1.5.0"
_FINDINGS: Final = 2
_DETECTION_FINDING: Final = 2004
_CREATE: Final = 1
_NEW: Final = 1
_RULE: Final = 1
_SEVERITIES: Final[Mapping[str, tuple[int, str]]] = {"low": (2, "Low"), "medium": (3, "Medium"), "high": (4, "High")}
_ADDRESS, _USER, _RESOURCE = (2, "IP Address"), (4, "User Name"), (10, "Resource UID")
"""Types of observables."""


def as_ocsf(alert: Alert) -> tuple[Message, ...]:
    """Write each new finding as a Detection Finding."""
    return for_each_finding(alert, _finding)


def _finding(alert: Alert, sighting: Sighting) -> dict[str, Any]:
    finding = sighting.finding
    severity_id, severity = _SEVERITIES[finding.severity]
    first, last = milliseconds(finding.first_seen), milliseconds(finding.last_seen)
    document: dict[str, Any] = {
        "activity_id": _CREATE,
        "activity_name": "Create",
        "category_uid": _FINDINGS,
        "category_name": "Findings",
        "class_uid": _DETECTION_FINDING,
        "class_name": "Detection Finding",
        "type_uid": _DETECTION_FINDING * 100 + _CREATE,
        "type_name": "Detection Finding: Create",
        "severity_id": severity_id,
        "severity": severity,
        "status_id": _NEW,
        "status": "New",
        "time": last,
        "start_time": first,
        "end_time": last,
        "count": finding.events,
        "message": f"{sighting.title}: {finding.subject}",
        "risk_score": alert.case.score,
        "metadata": {
            "version": _VERSION,
            "product": {"name": PRODUCT, "vendor_name": PRODUCT, "version": product_version()},
            "uid": sighting.id,
            "correlation_uid": alert.case.id,
            "event_code": finding.kind,
        },
        "finding_info": {
            "uid": sighting.id,
            "title": sighting.title,
            "desc": sighting.meaning,
            "types": [finding.kind],
            "first_seen_time": first,
            "last_seen_time": last,
            "analytic": {"name": sighting.title, "uid": finding.kind, "type_id": _RULE, "type": "Rule"},
        },
        "evidences": [_evidence(sighting)],
        "observables": _observables(sighting),
    }
    if finding.token_id:
        document["resources"] = [{"uid": finding.token_id, "type": "delegation token"}]
    if sighting.responses:
        document["remediation"] = {"desc": sighting.responses[0]["why"]}
    return document


def _evidence(sighting: Sighting) -> dict[str, Any]:
    address = {"src_endpoint": {"ip": sighting.address}} if sighting.address else {}
    actor = {"actor": {"user": {"name": sighting.finding.owner}}} if sighting.finding.owner else {}
    return {"data": {fact.label: fact.text for fact in sighting.finding.evidence}, **address, **actor}


def _observables(sighting: Sighting) -> list[dict[str, Any]]:
    named = (
        ("evidences[].src_endpoint.ip", _ADDRESS, sighting.address),
        ("evidences[].actor.user.name", _USER, sighting.finding.owner),
        ("resources[].uid", _RESOURCE, sighting.finding.token_id),
    )
    return [
        {"name": name, "type_id": type_id, "type": type_, "value": value}
        for name, (type_id, type_), value in named
        if value
    ]
