"""What is known of a node as a whole: the metrics that no worker measures.

The process that shows the metrics knows them itself: the supervisor tells it which workers live.

Source: docs/metrics.md, which is made of this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kafka_dt.metrics.declaration import PREFIX, Across, Kind, Metric


def _gauge(name: str, doc: str, *labels: str) -> Metric:
    return Metric(PREFIX + name, Kind.GAUGE, doc, {label: {} for label in labels}, across=Across.MAX)


NODE_METRICS: Final[Mapping[str, Metric]] = MappingProxyType(
    {
        "state": _gauge(
            "state",
            "1 for the state of the node, as `/readyz` says it, and 0 for the others: `starting`, `ready`, `stale`, "
            "`unreachable`, `draining`.",
            "state",
        ),
        "workers": _gauge("workers", "Workers of the node: `configured`, and `ready` to serve.", "phase"),
        "build": _gauge("build_info", "The version of kafka-dt.", "version"),
        "start": _gauge("start_time_seconds", "When the supervisor started, in seconds since 1970."),
        "certificate": _gauge(
            "metrics_certificate_expiry_timestamp_seconds",
            "When the certificate of the metrics listener ends, in seconds since 1970.",
        ),
    }
)
"""By what the code calls them."""
