"""ECS 8: each finding is an event of kind `alert`.

`event.id` is the finding's id, `kafka_dt.case.id` the case's. `event.severity` has the numbers of Elastic Security (low
21, medium 47, high 73).

Source: https://www.elastic.co/guide/en/ecs/8.17/ecs-field-reference.html
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.pipeline.alerts.forms.message import PRODUCT, Message, for_each_finding, product_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_dt.pipeline.alerts.alert import Alert
    from kafka_dt.pipeline.cases import Sighting

_VERSION: Final = "8.17.0"
_SEVERITIES: Final[Mapping[str, int]] = {"low": 21, "medium": 47, "high": 73}


def as_ecs(alert: Alert) -> tuple[Message, ...]:
    """Write each new finding as an event."""
    return for_each_finding(alert, _event)


def _event(alert: Alert, sighting: Sighting) -> dict[str, Any]:
    finding = sighting.finding
    document: dict[str, Any] = {
        "@timestamp": finding.last_seen.isoformat(),
        "ecs": {"version": _VERSION},
        "event": {
            "kind": "alert",
            "category": ["intrusion_detection"],
            "type": ["info"],
            "id": sighting.id,
            "module": PRODUCT,
            "dataset": "kafka_dt.finding",
            "code": finding.kind,
            "severity": _SEVERITIES[finding.severity],
            "start": finding.first_seen.isoformat(),
            "end": finding.last_seen.isoformat(),
            "reason": "; ".join(f"{fact.label}: {fact.text}" for fact in finding.evidence),
        },
        "message": f"{sighting.title}: {finding.subject}",
        "rule": {"id": finding.kind, "name": sighting.title, "description": sighting.meaning},
        "observer": {"product": PRODUCT, "vendor": PRODUCT, "version": product_version()},
        "kafka_dt": {
            "case": {"id": alert.case.id, "severity": alert.case.severity, "score": alert.case.score},
            "finding": {"severity": str(finding.severity), "events": finding.events},
            **({"token": {"id": finding.token_id}} if finding.token_id else {}),
        },
    }
    related: dict[str, list[str]] = {}
    if finding.owner:
        document["user"] = {"name": finding.owner}
        related["user"] = [finding.owner]
    if sighting.address:
        document["source"] = {"address": sighting.address}
        if _is_address(sighting.address):  # Elasticsearch refuses an event whose field of type ip has something else
            document["source"]["ip"] = sighting.address
            related["ip"] = [sighting.address]
    if related:
        document["related"] = related
    return document


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
