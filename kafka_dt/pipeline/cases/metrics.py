"""Open cases as metrics, for the textfile collector of Prometheus' node exporter.

    replace_file(path, metrics_text(cases, now))

No name of a client is in it, only kinds and severities.

Source: Prometheus, "Exposition formats"
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kafka_dt.pipeline.cases.severity import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from kafka_dt.pipeline.cases.case import Case


def metrics_text(cases: Sequence[Case], now: datetime, responses: Mapping[str, int] | None = None) -> str:
    """Write the metrics of cases.

    Args:
        cases: the open ones.
        now: when they were formed.
        responses: outcome -> how often, of a watch that responds.
    """
    by_severity = Counter(case.severity for case in cases)
    kinds = Counter((each.finding.kind, str(each.finding.severity)) for case in cases for each in case.sightings)
    newest = max((case.last_seen.timestamp() for case in cases), default=0.0)
    lines = [
        *_metric(
            "kafka_dt_cases",
            "gauge",
            "Open cases, by severity.",
            ((f'severity="{severity}"', by_severity[severity]) for severity in SEVERITIES),
        ),
        *_metric(
            "kafka_dt_case_findings",
            "gauge",
            "Findings of open cases, by kind and severity.",
            ((f'kind="{kind}",severity="{severity}"', number) for (kind, severity), number in sorted(kinds.items())),
        ),
        *_metric("kafka_dt_cases_newest_seconds", "gauge", "The last event of any case.", [("", newest)]),
        *_metric("kafka_dt_cases_made_seconds", "gauge", "When these metrics were made.", [("", now.timestamp())]),
        *_metric(
            "kafka_dt_responses_total",
            "counter",
            "Decisions of the watch about tokens, by outcome.",
            ((f'outcome="{outcome}"', number) for outcome, number in sorted((responses or {}).items())),
        ),
    ]
    return "\n".join(lines) + "\n"


def _metric(name: str, kind: str, doc: str, samples: Iterable[tuple[str, float]]) -> Iterator[str]:
    values = [f"{name}{f'{{{labels}}}' if labels else ''} {value:.15g}" for labels, value in samples]
    if values:
        yield from (f"# HELP {name} {doc}", f"# TYPE {name} {kind}", *values)
