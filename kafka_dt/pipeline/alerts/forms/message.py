"""One message: what is sent at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from datetime import datetime

    from kafka_dt.pipeline.alerts.alert import Alert
    from kafka_dt.pipeline.cases import Sighting

PRODUCT: Final = "kafka-dt"


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent at a time."""

    id: str
    """16 hex digits, the same whenever it is sent."""
    severity: str
    text: str
    """One line."""
    content_type: str = "application/json"


def for_each_finding(alert: Alert, write: Callable[[Alert, Sighting], Mapping[str, Any]]) -> tuple[Message, ...]:
    """Write each new finding of an alert as JSON in ASCII."""
    return tuple(
        Message(each.id, each.finding.severity, json.dumps(write(alert, each), separators=(",", ":")))
        for each in alert.new
    )


def product_version() -> str:
    """Give the version of kafka-dt."""
    return version(PRODUCT)


def milliseconds(instant: datetime) -> int:
    """Give an instant as milliseconds since 1970."""
    return int(instant.timestamp() * 1000)
