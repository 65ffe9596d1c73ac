"""The report as one JSON document, for machines.

Keys are those of the values in `contents.py`; instants are ISO 8601 in UTC, durations seconds. Findings have the
commands of their sign beside them. Lists are cut as on the page, `total` says how many there are.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kafka_dt.pipeline.report.contents import Contents

VERSION: Final = 1
"""Grows when a key changes its meaning or goes away."""


def document(contents: Contents) -> dict[str, Any]:
    """Give a report as JSON's types."""
    found = asdict(contents)
    del found["findings"], found["finding_counts"], found["signs"]
    signs = {sign.kind: sign for sign in contents.signs}
    return {
        "version": VERSION,
        **_plain(found),
        "thresholds": {row.name: row.value for sign in contents.signs for row in sign.threshold_rows},
        "finding_counts": [
            {"kind": kind, "severity": severity.value, "count": count}
            for (kind, severity), count in sorted(contents.finding_counts.items())
        ],
        "findings": [
            {
                **finding.as_document(),
                "responses": [each.as_document() for each in signs[finding.kind].responses(finding, contents.table)],
            }
            for finding in contents.findings
        ],
    }


def as_json(contents: Contents) -> str:
    """Write a report as JSON."""
    return json.dumps(document(contents), indent=2) + "\n"


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _plain(each) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case datetime():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case _:
            return value
